"""`st-paragram train muse`, its recipe and its configurations: from texts of tasks to a directory
for every reader.
"""

import lzma
from pathlib import Path

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer
from support.data import make_pairs
from support.dual_encoder import write_data

import st_paragram
from st_paragram.cli.main import main
from st_paragram.core.model_directory.record import read_training_record
from st_paragram.core.settings import read
from st_paragram.families.muse.settings import DualEncoderSettings
from st_paragram.learning.models import load_save
from st_paragram.learning.models.sentence_transformers_encoder import pipeline
from st_paragram.learning.modules.token_embedding import SentencePieceEmbedding
from st_paragram.runs.families import family_named

QUICK = (
    "--dim 16 --filters 4 --heads 2 --ffn-dim 16 --max-length 30 --batch-size 8 --steps 8"
    " --warmup-updates 2 --evaluate-steps 8 --device cpu"
)


@pytest.fixture
def folder(tmp_path, monkeypatch, vocabulary):
    """A store of translations and a folder of texts, and questions, responses and inference of two
    languages.
    """
    monkeypatch.chdir(tmp_path)
    write_data(tmp_path, vocabulary, rows=60, few=10)
    (tmp_path / "texts").mkdir()
    lines = "".join(f"{one}\t{other}\n" for one, other in make_pairs(100))
    (tmp_path / "texts" / "en-es.tsv.xz").write_bytes(lzma.compress(lines.encode()))
    return tmp_path


def asked(*more, langs=("xx", "yy"), bitext="bitext.h5"):
    return ["train", "muse", "--langs", *langs, "--bitext", bitext, *QUICK.split(), *more]


def test_the_command_makes_directories_that_every_reader_opens(folder, capsys, caplog):
    caplog.set_level("INFO")
    shares = "--translation-share 1 --qa-share 1 --response-share 1 --nli-share 1".split()  # noqa: SIM905
    assert main(asked("--qa", "qa", "--responses", "response", "--nli", "nli", *shares)) == 0
    out = capsys.readouterr().out
    assert (
        any(line.endswith("60 pairs, 8 steps") for line in caplog.messages)
        and "; model in muse-cnn\n" in out
    )
    assert not Path("muse-cnn.checkpoints").exists()
    record = read_training_record("muse-cnn")
    assert record.settings["architecture"] == "cnn" and record.settings["dim"] == 16
    assert {"translation", "qa", "response", "nli"} & set().union(*record.history)
    card = Path("muse-cnn/README.md").read_text(encoding="utf-8")
    assert "ACL 2020" in card and "EMNLP 2022" not in card
    texts = [pair[0] for pair in make_pairs(3)]
    ours, stock = (
        st_paragram.load("muse-cnn"),
        SentenceTransformer("muse-cnn", trust_remote_code=True),
    )
    for way in ("encode", "encode_query", "encode_document"):
        assert np.abs(getattr(stock, way)(texts) - getattr(ours, way)(texts)).max() < 1e-5
    assert ours.tasks == ("nli", "qa", "response", "translation")
    assert ours.encode_answers(texts, texts[::-1]).shape == (3, 16) and ours.classify(
        texts, texts
    ).shape == (3, 3)
    assert (
        main(
            asked(
                "--architecture",
                "transformer",
                "--steps",
                "2",
                "--vocab-size",
                "200",
                langs=["es"],
                bitext="texts",
            )
        )
        == 0
    )
    assert "; model in muse-transformer\n" in capsys.readouterr().out
    assert st_paragram.load("muse-transformer").tasks == ("translation",)


REFUSED = {
    "--architecture transformer --heads 3": (
        "dim is 16 and heads 3; dim must be a multiple of heads"
    ),
    "--translation-share 0 --qa-share 0 --response-share 0 --nli-share 0": (
        "the shares of all tasks are 0"
    ),
    "--config small": (
        "config is 'small'; give one of muse_cnn, muse_paper, muse_small, muse_transformer"
    ),
    "--init other-dim": "dim is 16, but other-dim has 12 dimensions",
    "--bitext texts --langs es fi": (
        "texts: no translations for fi (en-fi.tsv, also .gz or .xz); add the file"
    ),
    "--qa other": "other: no qa file for en, xx, yy; add one, or leave the option out",
}


@pytest.mark.parametrize("options", REFUSED)
def test_bad_input_is_told_in_one_line(folder, capsys, vocabulary, options):
    Path("other").mkdir()
    Path("other/de.tsv").touch()
    if "other-dim" in options:
        load_save.save(pipeline(SentencePieceEmbedding(vocabulary, 12), device="cpu"), "other-dim")
    try:
        status = main(asked(*options.split()))
    except SystemExit as ended:
        status = ended.code
    err = capsys.readouterr().err
    assert status in (1, 2) and REFUSED[options] in err.splitlines()[-1] and "Traceback" not in err
    assert not Path("muse-cnn").exists()


def test_configurations():
    found = {
        name: read(DualEncoderSettings, path).architecture
        for name, path in family_named("muse").configs.items()
    }
    assert list(found) == ["muse_cnn", "muse_paper", "muse_small", "muse_transformer"]
    assert list(found.values()) == ["cnn", "transformer"] * 2
