"""`st-paragram train`: what it refuses at once, and what it makes."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
from support.data import make_pairs
from transformers import TrainerState

from st_paragram.cli.main import main
from st_paragram.core.folders import make_own_folder
from st_paragram.core.model_directory.record import read_training_record
from st_paragram.core.pair_store import PairStore
from st_paragram.core.sample import held_out_pairs, sample_pairs
from st_paragram.core.settings import read
from st_paragram.errors import SettingsError, TextError
from st_paragram.families.psp.settings import TrainingSettings
from st_paragram.runs.development import hold_out
from st_paragram.runs.families import family_named
from st_paragram.runs.run import TrainingRun, run_training

FAMILY = family_named("psp")
HEAVY = (
    "torch",
    "sentence_transformers",
    "transformers",
    "datasets",
    "faiss",
    "mteb",
    "matplotlib",
)
QUICK = [
    "--dim",
    "8",
    "--epochs",
    "2",
    "--batch-size",
    "16",
    "--megabatch-size",
    "4",
    "--anneal-interval",
    "5",
    "--device",
    "cpu",
]
BITEXT = ["train", "bitext", "--lang", "es", "--data", "pairs.tsv", "--vocab-size", "200", *QUICK]

REFUSED = {
    "train bitext": "--lang",
    "train --lang es --epcohs 3": (
        "train bitext: error: unrecognized arguments: --epcohs 3; there is no "
        "--epcohs; did you mean --epochs?"
    ),
    "train es --data pairs.tsv": "there is no kind 'es'; did you mean --lang es?",
    "train bitext --lang es --dim 0": "dim is 0; it must be greater than or equal to 1",
    "train bitext --lang es --config large": (
        "config is 'large'; give one of demo, paper, paper_paraphrase, "
    ),
    "train bitext --lang es --config bad.yaml": (
        "bad.yaml: unknown setting 'dims'; known settings: anneal_interval, "
    ),
    "train bitext --lang es --data none.h5": "none.h5: no such file; check the path",
    "train bitext --lang es --output left": (
        "left.checkpoints/checkpoint-7: left by an earlier training run; resume"
    ),
    "train bitext --lang es --teacher none.npy": (
        "none.npy: no such file of teacher vectors; check the path"
    ),
    "train bitext --lang ../es": "unknown language code '../es'",
    "train bitext --lang xx --data built-in": "unknown language code 'xx'; use an ISO 639 code",
    "train bitext --pair fr cz": "unknown language code 'cz'; did you mean cs?",
    "train bgt --lang Spanish": "unknown language code 'Spanish'; did you mean es?",
    "prepare --lang ES --text pairs.tsv --output s.h5": "code 'ES'; did you mean es?",
    "train bitext --lang fi": "no data/en-fi.h5, and no built-in bitext for 'fi'",
    "train bitext --lang es --output taken": (
        "taken exists; choose another name or give --overwrite"
    ),
    "train paraphrase --output full --overwrite": (
        "full exists and is not a model directory of st_paragram"
    ),
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pairs.tsv").write_text(
        "".join(f"{a}\t{b}\n" for a, b in make_pairs(400)), encoding="utf-8"
    )
    return tmp_path


def test_refusals_come_before_heavy_imports(tmp_path):
    (tmp_path / "bad.yaml").write_text("dims: 3\n")
    for name in ("left.checkpoints/checkpoint-7/complete.json", "taken/st_paragram.json", "full/x"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text("{}")
    program = f"""
import io, json, sys
from contextlib import redirect_stderr, redirect_stdout
from st_paragram.cli.main import main
seen = {{}}
for line in {list(REFUSED)!r}:
    out = io.StringIO()
    with redirect_stdout(out), redirect_stderr(out):
        try:
            status = main(line.split())
        except SystemExit as ended:
            status = ended.code
    seen[line] = [status, out.getvalue(), [name for name in {HEAVY!r} if name in sys.modules]]
print(json.dumps(seen))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    for line, (status, out, heavy) in json.loads(done.stdout).items():
        assert REFUSED[line] in out and heavy == [], line
        assert status == (2 if "usage:" in out else 1), line


def test_a_model_is_trained_and_described(folder, capsys, caplog):
    caplog.set_level("INFO")
    data = [*BITEXT[4:], "--config", "small"]
    assert main(["train", "--lang", "es", *data]) == 0
    assert "training on pairs.tsv: 400 pairs, 2 epochs" in caplog.messages
    assert sum("WARNING: 400 pairs are few" in line for line in caplog.messages) == 1
    out = capsys.readouterr().out
    assert "built-in-en-es, Pearson x 100: " in out and out.endswith("; model in p-sp-es\n")
    quick = {
        "dim": 8,
        "epochs": 2,
        "batch_size": 16,
        "megabatch_size": 4,
        "anneal_interval": 5,
        "device": "cpu",
    }
    settings = replace(read(TrainingSettings, FAMILY.config_path("small")), **quick)
    assert read_training_record("p-sp-es").settings == {"family": "psp", **asdict(settings)}
    assert main(["train", "paraphrase", *data, "--output", "mine"]) == 0
    assert read_training_record("mine").languages == ("en", "en")
    assert sorted(path.name for path in folder.iterdir()) == ["mine", "p-sp-es", "pairs.tsv"]


def test_pairs_of_the_text_are_held_out_and_scored(folder, capsys, store, vocabulary):
    (folder / "pairs.tsv").write_text(
        "".join(f"{a}\t{b}\n" for a, b in make_pairs(1200)), encoding="utf-8"
    )
    assert main(BITEXT) == 0
    out, record = capsys.readouterr().out, read_training_record("p-sp-es")
    assert record.pairs == 1140 and [score.pairs for score in record.translations] == [60, 60]
    assert out.startswith("translations found among 60 held-out pairs: ") and "Pearson" not in out
    assert (
        main(
            [
                "prepare",
                "--lang",
                "es",
                "--text",
                "pairs.tsv",
                "--vocab-size",
                "200",
                "--output",
                "s.h5",
            ]
        )
        == 0
    )
    rest, held = hold_out(whole := PairStore("s.h5"))
    assert len(rest) == 1140 and held.second == list(whole.texts("b", np.arange(1140, 1200)))
    assert hold_out(store) == (store, None)  # of 700 pairs
    assert main(["train", "--lang", "de", "--data", "s.h5"]) == 1
    assert "pairs of en and es, not of en and de" in capsys.readouterr().err


def test_which_configuration_serves(folder):
    def settings(**asked):
        return TrainingRun("es", Path("x"), **asked).settings

    demo, short, paraphrase = (
        read(TrainingSettings, FAMILY.config_path(n)) for n in ("demo", "short", "paraphrase")
    )
    assert (settings(), settings(data=["pairs.tsv"]), settings(config="paraphrase")) == (
        demo,
        short,
        paraphrase,
    )
    assert settings(data=["pairs.tsv"], default_config="paraphrase") == paraphrase
    Path("own.yaml").write_text("dim: 10\nmargin: 1e-1\n")
    assert settings(config="own.yaml", overrides={"dim": 11}) == TrainingSettings(
        dim=11, margin=0.1
    )


def test_standard_input_devices_and_several_processes_are_refused(folder, monkeypatch, capsys):
    with pytest.raises(TextError, match="standard input"):
        TrainingRun("es", Path("x"), ["-"]).check()
    with pytest.raises(SettingsError, match=r"device gpu: not available \(.*\); try cpu"):
        run_training(TrainingRun("es", Path("model"), ["pairs.tsv"], overrides={"device": "gpu"}))
    monkeypatch.setenv("WORLD_SIZE", "2")
    for kind in ("bitext --lang es", "paraphrase", "bgt --lang es", "muse --langs es"):
        assert main(["train", *kind.split()]) == 1
        assert (
            "2 processes, but training uses only one; start without torchrun\n"
            in capsys.readouterr().err
        )


def test_a_plan_says_what_is_read_and_made_and_does_nothing(folder, capsys):
    command = ["train", "--lang", "es", "--data", "built-in", "--dim", "100", "--plan"]
    assert main(command) == 0
    assert capsys.readouterr().out.splitlines() == [
        "train a model of the family psp (en, es)",
        "reads  the built-in bitext of en-es: 9,000 pairs, a demonstration",
        "makes  p-sp-es: the model directory",
        "       p-sp-es.checkpoints: checkpoints, removed when the model is saved",
        "with   configuration demo, 20 epochs",
        "       dim 100",
    ]
    assert [path.name for path in folder.iterdir()] == ["pairs.tsv"]


def test_pairs_without_english(folder, capsys):
    pair = ["--pair", "fr", "de"]
    french = write_pairs(folder / "french.tsv", sample_pairs(("fr", "de"), 300))
    english = write_pairs(folder / "english.tsv", sample_pairs("fr", 300))
    vocabulary = ["--vocab-size", "300"]
    assert main(["prepare", *pair, "--text", french, *vocabulary, "--output", "s.h5"]) == 0
    assert PairStore("s.h5").languages == ("fr", "de")
    assert main(["train", *pair, "--data", "s.h5", *QUICK]) == 0
    assert read_training_record("p-sp-fr-de").languages == ("fr", "de")
    card = Path("p-sp-fr-de", "README.md").read_text(encoding="utf-8")
    assert "Sentence embeddings for fr and de" in card and "\n- fr\n- de\n" in card
    assert "\n- en\n" not in card and "built-in-fr-de" in card
    # two language pairs, each from its own text
    texts = ["--text", f"fr-de:{french}", "--text", f"en-fr:{english}"]
    texts_of_pairs = [*pair, "--pair", "en", "fr", *texts, *vocabulary]
    assert main(["prepare", *texts_of_pairs, "--output", "two.h5"]) == 0
    assert PairStore("two.h5").language_pairs == (("fr", "de"), ("en", "fr"))
    assert PairStore("two.h5").languages == ("fr-en", "de-fr")
    capsys.readouterr()
    built_in = ["train", *pair, "--data", "built-in", "--output", "new", "--plan"]
    assert main(built_in) == 0
    assert "the built-in bitext of fr-de: 9,000 pairs" in capsys.readouterr().out
    assert main(["train", "--pair", "fr", "uk"]) == 1
    assert "`st-paragram prepare --pair fr uk --text FILE --output data/fr-uk.h5`" in (
        capsys.readouterr().err
    )
    with pytest.raises(SystemExit):
        main(["train", *pair, "--lang", "es"])
    assert "not allowed with argument" in capsys.readouterr().err


def write_pairs(path, pairs):
    path.write_text("".join(f"{a}\t{b}\n" for a, b in pairs), encoding="utf-8")
    return str(path)


def test_the_plan_of_a_grid_has_its_runs(folder, capsys):
    command = ["train", "--lang", "es", "--data", "built-in", "--tune", "--plan"]
    assert main(command) == 0
    assert capsys.readouterr().out.splitlines()[2:] == [
        "makes  p-sp-es: the model directory",
        "       p-sp-es.grid: 9 models, removed when the best model is saved",
        "with   configuration demo, 20 epochs",
        "       9 runs: dropout 0.0, 0.1, 0.3 x megabatch_size 60, 100, 140",
    ]
    make_own_folder(Path("p-sp-es.grid"))
    finished = Path("p-sp-es.grid/dropout-0.1-m-60")
    finished.mkdir()
    (finished / "training.json").touch()
    assert main(command) == 1
    out, err = capsys.readouterr()
    assert "; it exists with 1 model, so the run needs --resume\n" in out
    assert "p-sp-es.grid: left by an earlier search; resume it with --resume" in err
    assert main([*command, "--resume"]) == 1
    out, err = capsys.readouterr()
    assert "; the run resumes with 1 of them finished\n" in out
    assert "dropout-0.1-m-60/training.json: not the record of a training run" in err


@pytest.mark.parametrize(
    ("options", "runs"),
    [
        ("--dropout 0.2", "3 runs: dropout 0.2 x megabatch_size 60, 100, 140"),
        ("--megabatch-size 7", "3 runs: dropout 0.0, 0.1, 0.3 x megabatch_size 7"),
        ("--config own.yaml", "3 runs: dropout 0.2 x megabatch_size 60, 100, 140"),
        ("--config small --margin 0.5", "9 runs: dropout 0.0, 0.1, 0.3 x megabatch_size 60, 100"),
    ],
)
def test_a_search_keeps_what_is_given(folder, capsys, options, runs):
    Path("own.yaml").write_text("dim: 8\ndropout: 0.2\n")
    command = ["train", "--lang", "es", "--data", "built-in", "--tune", "--plan"]
    assert main([*command, *options.split()]) == 0
    assert runs in capsys.readouterr().out.splitlines()[-1]
    if "9 runs" not in runs:
        assert main([*command, *options.split(), "--dropout", "0.1", "--megabatch-size", "9"]) == 1
        assert "dropout and megabatch_size are given, so nothing is" in capsys.readouterr().err


def test_a_search_is_not_resumed_with_other_values(folder, capsys):
    make_own_folder(Path("p-sp-es.grid"))
    Path("p-sp-es.grid/dropout-0.1-m-60.checkpoints").mkdir()
    command = ["train", "--lang", "es", "--data", "built-in", "--tune", "--resume", "--plan"]
    assert main(command) == 0
    assert main([*command, "--dropout", "0.2"]) == 1
    message = "dropout-0.1-m-60.checkpoints: other settings; resume with the same, or remove"
    assert message in capsys.readouterr().err


def test_a_plan_is_shown_before_an_output_is_refused(folder, capsys):
    model = Path("p-sp-es")
    model.mkdir()
    (model / "st_paragram.json").touch()
    command = ["train", "--lang", "es", "--data", "built-in", "--plan"]
    assert main(command) == 1
    out, err = capsys.readouterr()
    assert "makes  p-sp-es: the model directory, which exists; the run refuses it\n" in out
    assert "p-sp-es exists; choose another name or give --overwrite\n" in err
    checkpoint = Path("p-sp-es.checkpoints/checkpoint-30")
    checkpoint.mkdir(parents=True)
    settings = asdict(TrainingRun("es", model, ["built-in"]).settings)
    (checkpoint / "complete.json").write_text(json.dumps({"settings": settings}))
    command.append("--overwrite")
    assert main(command) == 1
    out, err = capsys.readouterr()
    assert "p-sp-es: the model directory, which exists; it is replaced\n" in out
    assert "; checkpoint-30 exists, so the run needs --resume\n" in out
    assert "checkpoint-30: left by an earlier training run; resume it with --resume" in err
    assert main([*command, "--resume"]) == 0
    assert "; the run resumes from checkpoint-30\n" in capsys.readouterr().out
    assert main([*command, "--resume", "--dim", "100"]) == 1
    assert (
        "checkpoint-30: started with dim 300, not 100; resume with the same\n"
        in capsys.readouterr().err
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--data built-in --device gpu", "device gpu: not available"),
        ("--data built-in --dev pairs.tsv", "pairs.tsv"),
        ("--data store.h5 --encoder trigram", "a store of sentencepiece ids, but the encoder"),
        ("--data built-in --resume", "no complete checkpoint to resume from"),
        ("--data built-in --workers 0", "workers is 0; it must be at least 1"),
        ("--data built-in --output .", ".: the folder cannot be created; choose another place"),
        ("--data built-in --output no/such/model", "no: no such folder; create it, or correct"),
        ("--data utf16.tsv --drop-invalid", "utf16.tsv: UTF-16 text; convert it: iconv -f UTF-16"),
        ("--data later.tsv", "later.tsv: row 401 has 1 column, but 2 are expected: 'only one'"),
        ("--data cut.tsv.gz", "cut.tsv.gz: cannot be read (Compressed file ended before"),
        ("--data one.txt --drop-invalid", "one.txt: no row is UTF-8 text in two columns"),
        ("--data built-in --init p-sp-mini --dim 8", "dim is 8, but p-sp-mini has 256 dimensions"),
        ("--data built-in --teacher one.txt", "one.txt: not a .npy file of teacher vectors; make"),
        ("--data built-in --teacher .", ". is a folder, but a file is expected; name a .npy file"),
        ("--data store.h5 --teacher few.npy", "few.npy: float32 of shape (2, 4), but store.h5 has"),
    ],
)
def test_a_plan_refuses_what_the_run_refuses(folder, store, capsys, options, message):
    Path("store.h5").symlink_to(store.path)
    Path("utf16.tsv").write_text("one two\tuno dos\n" * 9, encoding="utf-16")
    Path("one.txt").write_text("only one column\n" * 9, encoding="utf-8")
    rows = "one two\tuno dos\n" * 400
    Path("later.tsv").write_text(f"{rows}only one\n", encoding="utf-8")
    Path("cut.tsv.gz").write_bytes(gzip.compress(rows.encode())[:-9])
    np.save("few.npy", np.zeros((2, 4), dtype=np.float32))
    command = ["train", "--lang", "xx" if "store" in options else "es", *options.split()]
    refusals = []
    for more in (["--plan"], []):
        assert main([*command, *more]) == 1
        refusals.append(capsys.readouterr().err.splitlines()[-1])
    assert message in refusals[0]
    assert refusals[0] == refusals[1]


def test_a_plan_says_what_it_has_not_checked(folder, capsys):
    Path("qa").mkdir()
    Path("qa/en.tsv").write_text("who is it ?\tit is me .\n" * 9)
    options = "muse --langs es --bitext pairs.tsv --qa qa --plan"
    assert main(["train", *options.split()]) == 0
    assert capsys.readouterr().out.splitlines()[1:4] == [
        "reads  pairs.tsv: text, prepared once into a store of the cache",
        "       checked: the first 1,000,000 rows of a text, not how many pairs the filters leave",
        "       qa: texts of the task qa, of which only first rows are checked",
    ]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("bgt --lang en --data pairs.tsv", "en on both sides: pairs of one language; a generative"),
        (
            "muse --langs es --bitext pairs.tsv --translation-share 0",
            "no task has both data and a share of the steps; add data, or change the shares",
        ),
    ],
)
def test_a_plan_refuses_languages_and_tasks_that_the_run_refuses(folder, capsys, options, message):
    for more in (["--plan"], []):
        assert main(["train", *options.split(), *more]) == 1
        assert message in capsys.readouterr().err.splitlines()[-1]


def test_a_plan_refuses_to_resume_with_other_data(folder, store, capsys):
    Path("store.h5").symlink_to(store.path)
    checkpoint = Path("p-sp-xx.checkpoints/checkpoint-30")
    checkpoint.mkdir(parents=True)
    TrainerState().save_to_json(str(checkpoint / "trainer_state.json"))
    values = {
        "contents": [["digest of other data", 300]],
        "settings": asdict(TrainingRun("xx", Path("p-sp-xx"), ["store.h5"]).settings),
        "spent": {"wall_seconds": 1.0, "seconds": 1.0, "pairs": 300},
    }
    (checkpoint / "complete.json").write_text(json.dumps(values))
    assert main(["train", "--lang", "xx", "--data", "store.h5", "--resume", "--plan"]) == 1
    message = "checkpoint-30: started with other data than store.h5; resume with the same\n"
    assert message in capsys.readouterr().err
    make_own_folder(Path("other.grid"))
    Path("other.grid/data.json").write_text('"digest of other data"')
    tuned = "train --lang xx --data store.h5 --output other --tune --resume --plan"
    assert main(tuned.split()) == 1
    assert "other.grid: started with other data than store.h5" in capsys.readouterr().err


@pytest.mark.parametrize(
    "kind", ["bitext --lang tr --data", "bgt --lang tr --data", "muse --langs tr --bitext"]
)
def test_suspicious_text_is_reported_before_torch_is_imported(kind, tmp_path, monkeypatch, caplog):
    monkeypatch.chdir(tmp_path)
    rows = [
        f"{one}\t{other}\n" for one, other in [("English", "Spanish"), *held_out_pairs("en", "es")]
    ]
    Path("en-es.tsv").write_text("".join(rows), encoding="utf-8")
    for more in ([], ["--no-checks"]):
        caplog.clear()
        assert main(["train", *kind.split(), "en-tr:en-es.tsv", "--plan", *more]) == 0
        seen = [line for line in caplog.messages if line.startswith("WARNING: en-es.tsv: ")]
        assert len(seen) == 1 - len(more) and all(
            "Spanish where Turkish (tr) is expected" in line for line in seen
        )


def test_a_model_learns_from_a_teacher(folder):
    """From text to text and store, to the teacher's vectors, to a model whose record names the
    teacher.
    """
    steps = [
        "prepare --lang haw --text pairs.tsv --output s.h5 --vocab-size 100 --keep-text text",
        "embed text/a.txt --output a.npy --model p-sp-mini --dtype float16",
        (
            "train bitext --lang haw --data s.h5 --teacher a.npy --teacher-weight 2 --output m"
            f" {' '.join(QUICK)}"
        ),
    ]
    assert [main(step.split()) for step in steps] == [0, 0, 0]
    settings = read_training_record("m").settings
    assert (settings["teacher"], settings["teacher_weight"]) == ("a.npy", 2.0)
    assert not Path("m.checkpoints").exists()


@pytest.mark.parametrize("resume", [[], ["--resume"]])
def test_a_folder_of_the_user_does_not_serve_as_grid(folder, capsys, resume):
    Path("p-sp-es.grid").mkdir()
    Path("p-sp-es.grid/precious").touch()
    assert main([*BITEXT, "--tune", *resume]) == 1
    reason = (
        "not a search to resume; tune without"
        if resume
        else "exists, and this version of st_paragram did not"
    )
    assert f"p-sp-es.grid{':' * bool(resume)} {reason}" in capsys.readouterr().err
    assert [path.name for path in Path("p-sp-es.grid").iterdir()] == ["precious"]


def test_a_grid_keeps_the_best_and_is_gone_on_with_where_it_was_interrupted(
    folder, capsys, monkeypatch
):
    """A grid of two points; the second is interrupted once."""
    from st_paragram.families.psp.mega_batch_trainer import MegaBatchTrainer
    from st_paragram.runs import tune

    monkeypatch.setattr(tune, "TUNED_DROPOUT", (0.0, 0.3))
    command = [*BITEXT, "--megabatch-size", "2", "--tune"]
    step, made = MegaBatchTrainer.make_step, []

    def interrupted(trainer, number):
        made.append(number)
        if len(made) == 70:  # of 50 steps a point
            trainer._interrupt._handle(2, None)
        return step(trainer, number)

    monkeypatch.setattr(MegaBatchTrainer, "make_step", interrupted)
    assert main(command) == 130
    assert (
        main(command) == 1
        and "left by an earlier search; resume it with --resume" in capsys.readouterr().err
    )
    text, given = Path("pairs.tsv"), Path("pairs.tsv").read_text()
    text.write_text(given.replace("ba", "be"))
    assert main([*command, "--resume"]) == 1
    assert "p-sp-es.grid: started with other data than " in capsys.readouterr().err
    text.write_text(given)
    assert main([*command, "--resume"]) == 0
    assert len(made) == 100, "nothing is trained twice"
    record = read_training_record("p-sp-es")
    assert record.name == "p-sp-es" and record.settings["megabatch_size"] == 2
    assert sorted(path.name for path in folder.iterdir()) == ["p-sp-es", "pairs.tsv"]
