"""A release in small: which texts its models take, what comes out, and what is not done twice."""

import lzma
import runpy
import sys
from collections import Counter
from pathlib import Path

import pytest
import torch
import yaml
from huggingface_hub import ModelCard
from support.data import make_pairs

import st_paragram
from st_paragram.core.model_directory.languages import read_languages
from st_paragram.core.model_directory.model_files import table_type
from st_paragram.core.settings import read_yaml
from st_paragram.core.tokenizers.character_map import rules_of
from st_paragram.runs.families import family_named
from st_paragram.tools.preparation.settings import PrepareSettings

RECIPE = Path(__file__).parents[2] / "recipes" / "release.py"
SETTINGS = {"dim": 8, "epochs": 1, "batch_size": 16, "megabatch_size": 4, "device": "cpu"}
DESCRIPTION = {
    "models": {
        "small": {
            "languages": ["en", "es"],
            "config": "small",
            "rules": True,
            "spelling": True,
            "caps": {"theirs": 150},
            "settings": SETTINGS,
            "preparation": {"vocab_size": 200, "vocab_threads": 1},
            "pack": [
                {"name": "small-int8", "dtype": "int8", "dim": 4},
                {"name": "small-int4", "dtype": "int4", "languages": True},
            ],
            "license": "cc0-1.0",
        },
        "open": {
            "languages": ["es"],
            "open_only": True,
            "begin_with": "small",
            "rules": True,
            "settings": {**SETTINGS, "learning_rate": 1e-9},
        },
    },
    "sources": {
        "ours": {"license": "CC0-1.0", "open": True},
        "theirs": {"license": "none stated", "note": "Near a test set."},
        "words": {"license": "CC BY 4.0", "open": True, "words": True, "from": "a dictionary"},
    },
}


@pytest.fixture(autouse=True)
def texts(tmp_path, monkeypatch):
    """Two sources of Spanish and a list of words, one source of English paraphrases."""
    monkeypatch.chdir(tmp_path)
    for place, seed in (("es/ours.tsv", 0), ("es/theirs.tsv.xz", 1), ("en/ours.tsv", 2)):
        path = tmp_path / "texts" / place
        path.parent.mkdir(parents=True, exist_ok=True)
        opened = lzma.open if place.endswith(".xz") else open
        with opened(path, "wt", encoding="utf-8") as file:
            file.writelines(f"{a}\t{b}\n" for a, b in make_pairs(200, seed))
    Path("texts/es/words.tsv").write_text("".join(f"one{n}\tuno{n}\n" for n in range(30)))


def release(description, *arguments):
    """Run the recipe; return its exit status."""
    Path("release.yaml").write_text(yaml.safe_dump(description, sort_keys=False))
    sys.argv = [
        "release",
        "--texts",
        "texts",
        "--output",
        "out",
        "--config",
        "release.yaml",
        *arguments,
    ]
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(RECIPE), run_name="__main__")
    return ended.value.code


def test_models_are_trained_packed_and_described_once(capsys):
    Path("Unihan_Variants.txt").write_text("U+570B\tkSimplifiedVariant\tU+56FD\n")
    assert release(DESCRIPTION, "--unihan", "Unihan_Variants.txt") == 0
    assert capsys.readouterr().out.splitlines()[-4:] == [
        "out/small",
        "out/small-int8",
        "out/small-int4",
        "out/open",
    ]
    assert set(read_languages(Path("out/small-int4"))) == {"en", "es"}
    kinds = [table_type(Path("out") / name).value for name in ("small", "small-int8", "small-int4")]
    assert kinds == ["float32", "int8", "int4"] and st_paragram.load("out/small-int8").encode(
        ["ba"]
    ).shape == (1, 4)

    card = ModelCard.load("out/small-int8/README.md")
    assert (card.data.license, card.data.language) == ("cc0-1.0", ["en", "es"])
    assert (
        'SentenceTransformer("small-int8")' in card.text and "A smaller copy of small" in card.text
    )
    assert (
        "| ours | en 200, es 200 | CC0-1.0 |" in card.text
        and "| theirs | es 150 | none stated |" in card.text
    )
    rows = Path("out/stores/small.words/es/words.tsv").read_text().splitlines()
    sides = [[side.split() for side in row.split("\t")] for row in rows]
    words = Counter(pair for one, other in sides for pair in zip(one, other, strict=True))
    assert (
        words == {(f"one{n}", f"uno{n}"): 2 for n in range(30)}
        and max(len(one) for one, _ in sides) <= 7
    )
    assert f"| words | es {len(rows)} | CC BY 4.0 | a dictionary |" in card.text
    assert (
        "4 dimensions," in card.text
        and card.text.count("Near a test set.") == card.text.count("## Sources") == 1
    )
    small = ModelCard.load("out/small-int4/README.md").text
    assert 'st_paragram.load("small-int4")' in small and small.count("## Table of int4") == 1
    assert "theirs" not in Path("out/open/README.md").read_text()

    first, opened = (st_paragram.load(f"out/{name}", device="cpu")[0] for name in ("small", "open"))
    assert opened.tokenizer == first.tokenizer
    rules = rules_of(first.tokenizer.content)
    assert (rules["أ"], rules["國"], rules["ﬁ"]) == ("ا", "国", "fi")
    assert (rules["ș"], rules["٣"]) == ("ş", "3") and "Spellings that writers" in card.text
    assert torch.allclose(opened.embedding.weight, first.embedding.weight, atol=1e-6)

    before = {path: path.stat().st_mtime_ns for path in Path("out").rglob("*") if path.is_file()}
    assert release(DESCRIPTION) == 0
    assert before == {
        path: path.stat().st_mtime_ns for path in Path("out").rglob("*") if path.is_file()
    }


def test_what_is_refused(capsys):
    for change, message in (
        (
            lambda models, sources: sources.pop("theirs"),
            "theirs.tsv.xz: a source without a license; describe",
        ),
        (
            lambda models, sources: [each.update(open=False) for each in sources.values()],
            "es: no text to train open on",
        ),
        (
            lambda models, sources: models["open"].update(epochs=3),
            "open: unknown entry 'epochs'; known entries:",
        ),
    ):
        description = yaml.safe_load(yaml.safe_dump(DESCRIPTION))
        change(description["models"], description["sources"])
        assert release(description) == 1
        assert message in capsys.readouterr().err and not Path("out").exists()
    assert release(DESCRIPTION) == 1
    assert (
        "small is to read traditional Chinese as simplified; give --unihan"
        in capsys.readouterr().err
    )
    assert release(DESCRIPTION, "--only", "x") == 1
    assert "no model 'x' in release.yaml; it has small, open" in capsys.readouterr().err


def test_the_published_release_is_sound():
    description = read_yaml(RECIPE.with_suffix(".yaml"))
    for model in description["models"].values():
        family_named("psp").read_settings(model.get("config", "short"), model["settings"])
        PrepareSettings(("en", "-".join(model["languages"])), **model["preparation"])
        assert set(model.get("leave_out", ())) <= set(description["sources"])
    for name in ("p-sp-mini-float32", "p-sp-base-float32", "p-sp-large-float32"):
        assert description["models"][name]["open_only"]
    for source in description["sources"].values():
        assert not (
            source.get("open") and source["license"].startswith(("none", "GPL", "CC BY-NC"))
        )
