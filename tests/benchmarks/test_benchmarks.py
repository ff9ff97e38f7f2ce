"""Benchmarks: arithmetic by hand, processes that are watched, every script on little data."""

import argparse
import contextlib
import importlib
import io
import json
import os
import random
import re
import runpy
import shlex
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import language_choice
import length
import mining
import peers
import probing
import pytest
import report
import speed
import speed_by_language
import style_transfer
import sweep
from harness.encoding import later_rate, paragraphs, single_ms
from harness.models import Model
from harness.peer_process import paper_rate, part
from harness.processes import Program, Run, command, in_turn
from harness.texts import write_distinct, write_repeats

from st_paragram import GenerativeEncoder, sample_pairs
from st_paragram.cli.main import main
from st_paragram.core.sample import graded_pairs, held_out_pairs
from st_paragram.errors import EvaluationError, SettingsError, TextError

FOLDER = Path(speed.__file__).parent
SCRIPTS = sorted(path.stem for path in FOLDER.glob("*.py"))
SWEEPS = sorted((FOLDER / "sweeps").glob("*.yaml"))
linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
HOLD = (
    'import sys, time; held = bytearray(int(sys.argv[1]) << 20); time.sleep(0.6); print(\'{"held":'
    " 1}')"
)
DOGS = """\
# text = The dogs of my aunt don't chase cats.
1 The the DET DT _ 2 det _ _
2 dogs Dog NOUN NNS Number=Plur 8 nsubj _ _
3 of of ADP IN _ 5 case _ _
4 my my PRON PRP$ Number=Sing 5 nmod:poss _ _
5 aunt aunt NOUN NN Number=Sing 2 nmod _ _
6-7 don't _ _ _ _ _ _ _ _
6 do do AUX VBP _ 8 aux _ _
7 n't not PART RB _ 8 advmod _ _
7.1 do do AUX VBP _ _ _ _ _
8 chase chase VERB VB _ 0 root _ _
9 cats cat NOUN NNS Case=Acc|Number=Plur 8 obj:x _ _
10 . . PUNCT . _ 8 punct _ _
"""
PARENT = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {HOLD!r}, sys.argv[1]])"


def run_script(monkeypatch, name, *words):
    """What a script prints; it must succeed."""
    monkeypatch.setattr(sys, "argv", [str(FOLDER / f"{name}.py"), *map(str, words)])
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), pytest.raises(SystemExit) as ended:
        runpy.run_path(sys.argv[0], run_name="__main__")
    assert not ended.value.code, printed.getvalue()
    return printed.getvalue()


@pytest.fixture
def in_this_process(monkeypatch):
    """Run programs here: they need not import torch again, and nothing measures their memory."""

    def run(program):
        first, *words = program.arguments
        started = time.perf_counter()
        printed = io.StringIO()
        with monkeypatch.context() as patch, contextlib.redirect_stdout(printed):
            if first == "-m":
                assert main(words[1:]) == 0
            elif first == "-c":
                patch.setattr(sys, "argv", words)
                exec(words[0], {"__name__": "__main__"})
            else:
                patch.setattr(sys, "argv", [first, *words])
                assert importlib.import_module(Path(first).stem).main() == 0
        return Run(printed.getvalue(), 0.5, started, 100.0, 200.0)

    monkeypatch.setattr(Program, "run", run)


@pytest.fixture(scope="module")
def bitext(tmp_path_factory):
    path = tmp_path_factory.mktemp("bitext") / "en-es.tsv"
    path.write_text("".join(f"{a}\t{b}\n" for a, b in sample_pairs("es", 1500)), encoding="utf-8")
    return path


@pytest.mark.parametrize("script", SCRIPTS)
def test_scripts_have_help(script, monkeypatch):
    assert "usage:" in run_script(monkeypatch, script, "--help")


class TestProcesses:
    @linux
    def test_memory_of_a_process_and_its_children(self):
        small, large = (Program(["-c", PARENT, str(mib)]).run() for mib in (1, 101))
        for run in (small, large):
            assert run.figures == {"held": 1} and 0.6 < run.seconds < 60
            assert 0 < run.peak_anonymous_mb < run.peak_resident_mb
        assert large.peak_anonymous_mb - small.peak_anonymous_mb == pytest.approx(100, abs=8)
        assert large.peak_resident_mb - small.peak_resident_mb == pytest.approx(100, abs=8)

    def test_variables_and_failures(self):
        code = "import os; print(os.environ['OMP_NUM_THREADS'] + os.environ['MINE'])"
        assert Program(["-c", code], 2, {"MINE": "x"}).run().output == "2x\n"
        with pytest.raises(SystemExit, match=r"-c .* failed:\n.*no such thing"):
            Program(["-c", "raise SystemExit('no such thing')"]).run()
        with pytest.raises(SystemExit, match="No such file"):
            command("evaluate", "p-sp-mini", "--graded", "nowhere.tsv").run()

    @pytest.mark.parametrize("is_installed", [True, False])
    def test_processes_use_the_package_of_this_process(self, monkeypatch, is_installed):
        if is_installed:
            monkeypatch.setattr("st_paragram.__file__", "/installed/st_paragram/__init__.py")
        monkeypatch.setenv("PYTHONPATH", "")
        output = Program(["-c", "import os; print(os.environ['PYTHONPATH'])"]).run().output
        expected = [FOLDER] if is_installed else [FOLDER, FOLDER.parent]
        assert [Path(folder) for folder in output.strip().split(os.pathsep)] == expected


class TestTexts:
    def test_repeats_are_mostly_changed_and_distinct_sentences_are(self, bitext, tmp_path):
        def lines(path):
            return path.read_text(encoding="utf-8").split("\n")[:-1]

        repeats = lines(write_repeats(bitext, tmp_path / "more", 3000))
        assert repeats[:1500] == lines(bitext) and len(repeats) == 3000
        assert 0.05 < len({*lines(bitext)} & set(repeats[1500:])) / 1500 < 0.15
        for path in write_distinct(bitext, tmp_path, 2000):
            assert len(lines(path)) == len(set(lines(path))) == 2000


class TestDuplicates:
    def test_duplicates_go_and_other_sentences_stay(self, monkeypatch, tmp_path):
        printed = run_script(monkeypatch, "duplicates")
        assert (
            "precision 100.0%, recall 99.9%" in printed and "| negation | no | 127 | 0 |" in printed
        )
        path = tmp_path / "th.txt"
        path.write_text(
            "".join(f"วันนี้ฉันไปตลาดกับแม่ของเพื่อนคน{sign}ก\n" for sign in "กขคงจฉชซฌญฎฏฐฑ"),
            encoding="utf-8",
        )
        assert "| letter or vowel sign | no | 1 | 0 |" in run_script(
            monkeypatch, "duplicates", f"th:{path}"
        )


def test_hybrid_search_finds_what_vectors_or_words_find(monkeypatch, tmp_path):
    folder = tmp_path / "set"
    folder.mkdir()
    texts = [
        "the train is late",
        "error E-1042 while printing",
        "the bus is late",
        "we like cheese",
    ]
    rows = [f"d{number}\t{text}" for number, text in enumerate(texts)]
    (folder / "corpus.tsv").write_text("\n".join([*rows, ""]))
    (folder / "queries.tsv").write_text("q0\tE-1042\nq1\tel autobús llega tarde\n")
    (folder / "qrels.tsv").write_text("q0\td1\nq1\td2\n")
    printed = run_script(monkeypatch, "hybrid", folder)
    assert "| set | vectors | 100.0 | 100.0 | 100.0 | 100.0 |" in printed
    assert "| set | words | 50.0 | 50.0 | 50.0 | 50.0 |" in printed
    assert "| set | hybrid | 100.0 | 100.0 | 100.0 | 100.0 |" in printed


class TestScores:
    def rows(self, path, model, value, **more):
        row = {
            "model": model,
            "benchmark": "sts",
            "set": "2012",
            "measure": "Pearson",
            "value": value,
        } | more
        path.write_text(
            json.dumps(
                [row, row | {"set": "2013", "value": None, "low": None}, row | {"against": "other"}]
            )
        )
        return path

    def test_of_equal_scores_the_newest_counts(self, tmp_path):
        old = self.rows(tmp_path / "old.json", "models/one", 0.5, low=0.4, high=0.6)
        new = self.rows(tmp_path / "new.json", "models/one", 0.7, low=0.6, high=0.8)
        other = self.rows(tmp_path / "other.json", "two", 0.25)
        os.utime(old, (1, 1))
        page = report.markdown(report.read_scores([new, old, other]))
        assert "## sts: Pearson x 100" in page and "| one | 70.0 [60.0, 80.0] | - |" in page
        assert "| two | 25.0 | - |" in page

    def test_models_of_one_name_are_not_merged(self, tmp_path):
        files = [
            self.rows(tmp_path / "a.json", "a/one", 0.5, digest="a" * 64),
            self.rows(tmp_path / "b.json", "b/one", 0.25, digest="b" * 64),
            self.rows(tmp_path / "c.json", "c/two", 0.75, digest="c" * 64),
            self.rows(tmp_path / "d.json", "c/renamed", 0.8, digest="c" * 64),
            self.rows(tmp_path / "e.json", "old/one", 0.1),
        ]
        for age, file in enumerate(files, 1):
            os.utime(file, (age, age))
        page = report.markdown(report.read_scores(files))
        for row in (
            "one (aaaaaaaa) | 50.0",
            "one (bbbbbbbb) | 25.0",
            "renamed | 80.0",
            "one (old/one, no digest) | 10.0",
        ):
            assert f"| {row} | - |" in page, row
        assert "| two |" not in page

    def test_a_page_and_a_picture_are_written(self, tmp_path, monkeypatch):
        files = [self.rows(tmp_path / f"{name}.json", name, 0.5) for name in ("one", "two")]
        run_script(
            monkeypatch,
            "report",
            *files,
            "--output",
            tmp_path / "r.md",
            "--plot",
            tmp_path / "r.png",
        )
        assert f"({tmp_path / 'r.png'})" in (tmp_path / "r.md").read_text()
        assert (tmp_path / "r.png").read_bytes().startswith(b"\x89PNG")

    def test_a_sweep_trains_and_scores_each_row_once(self, tmp_path, monkeypatch):
        calls = []

        def done(*words):
            words = [str(word) for word in words]
            calls.append(words)
            if words[0] == "train":
                (folder := Path(words[words.index("--output") + 1])).mkdir()
                (folder / "modules.json").touch()
                (folder / "training.json").write_text('{"seconds": 12.4}')
            else:
                self.rows(
                    Path(words[-1]),
                    words[1],
                    (0.2 if "margin" in words[1] else 0.1) + 0.01 * len(calls),
                )

        monkeypatch.setattr(
            sweep, "command", lambda *words: SimpleNamespace(run=lambda: done(*words))
        )
        file = tmp_path / "sweep.yaml"
        file.write_text(
            "train: bitext --lang $lang\nevaluate: --data eval\n"
            "columns: {2012: sts 2012 Pearson, time: seconds, none: sts 1999 Pearson}\n"
            'rows: [{default: "", margin 0.4: --margin 0.4}, {M 1: --megabatch-size 1}]\n'
        )
        monkeypatch.setattr(
            sys,
            "argv",
            [
                *("sweep", str(file), "--output", str(tmp_path / "out")),
                *("--seeds", "1", "2", "--values", "lang=es"),
            ],
        )
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            assert sweep.main() == sweep.main() == 0
        assert [words[0] for words in calls] == ["train", "evaluate"] * 4
        assert " ".join(calls[2][:8]) == "train bitext --lang es --margin 0.4 --megabatch-size 1"
        assert calls[4][-2:] == ["--seed", "2"]
        row = "| margin 0.4, M 1 | 26.0 (24.0 - 28.0) | 12 (12 - 12) | - |"
        assert printed.getvalue().count(row) == 2

    @pytest.mark.parametrize("file", SWEEPS, ids=[file.stem for file in SWEEPS])
    def test_sweeps_are_of_options_that_exist(self, file, monkeypatch, tmp_path):
        names = set(re.findall(r"\$(\w+)", file.read_text(encoding="utf-8")))
        rows = sweep.read_sweep(file, [f"{name}=es" for name in names])
        (tmp_path / "es").write_text("one\tuno\n", encoding="utf-8")
        monkeypatch.chdir(tmp_path)
        for options in rows["rows"].values():
            words = shlex.split(f"{rows['train']} {options}")
            assert main(["train", *words, "--no-checks", "--plan"]) == 0
        with pytest.raises(SettingsError, match=rf"{file.name}: give --values NAME=VALUE for '"):
            sweep.read_sweep(file, [])


class TestQuality:
    def test_tatoeba_agrees_with_evaluate(self, tmp_path, monkeypatch, capsys):
        (tmp_path / "tatoeba").mkdir()
        rows = "".join(f"{other}\t{english}\n" for english, other in held_out_pairs("en", "es"))
        (tmp_path / "tatoeba" / "spa-eng.tsv").write_text(rows, encoding="utf-8")
        printed = run_script(monkeypatch, "tatoeba", "p-sp-mini", "--data", tmp_path)
        to_english, from_english, _ = [
            cell.strip() for cell in printed.split("\n")[2].split("|")[4:7]
        ]
        assert (
            main(["evaluate", "p-sp-mini", "--data", str(tmp_path), "--benchmarks", "tatoeba"]) == 0
        )
        found = capsys.readouterr().out
        assert f" {to_english} " in found and f" {from_english} " in found


class TestProbing:
    def test_tasks_of_texts_and_of_senteval(self, tmp_path, monkeypatch):
        texts = [f"{' '.join(['word'] * (5 + n % 12))} {n}{'.!?'[n % 3]}" for n in range(600)]
        tasks = probing.text_tasks(texts, [100, 20, 30], random.Random(0))
        assert [len(part) for part in tasks["first mark"]] == [100, 20, 30]
        lengths = {example.label for example in tasks["sentence length"][0]}
        assert lengths == {"5-8", "9-12", "13-16", "17-20"}
        (tmp_path / "sub").mkdir()
        parts = "tr", "tr", "va", "te"
        rows = (
            f"{parts[n % 4]}\t{n % 8 // 4}\t{'a' if n % 8 < 4 else 'b'} {n}\n" for n in range(400)
        )
        (tmp_path / "sub" / "odd.txt").write_text("".join(rows))
        sizes = ["--sizes", 99, 50, 60]
        out = run_script(
            monkeypatch, "probing", "p-sp-mini", "--senteval", tmp_path / "sub", *sizes
        )
        assert "| odd | 99 / 50 / 60 |" in out

    def test_a_sentence_of_word_content_has_one_of_the_words(self, monkeypatch):
        monkeypatch.setattr(probing, "FIRST_RANK", 3)
        monkeypatch.setattr(probing, "WORDS", 2)
        # sentences with a: 4, b: 3, c: 3, d: 2, e: 1
        texts = ["A a, b", "a b c", "a c d.", "B", "C!", "a", "d e"]
        examples = probing.word_examples(texts)
        found = [(example.text, example.label) for example in examples]
        assert found == [("a b c", "c"), ("C!", "c"), ("d e", "d")]

    def test_articles_are_swapped_in_half_of_the_sentences(self):
        texts = [f"La mesa {n} y el perro: las gatas, él" for n in range(10)]
        texts += ["sin nada", texts[0].lower()]
        examples = probing.gender_examples(texts, "es", random.Random(0))
        own = [example.text for example in examples if example.label == "own"]
        swapped = [example.text for example in examples if example.label == "swapped"]
        assert len(own) == len(swapped) == 5
        assert all(re.fullmatch(r"la mesa \d y el perro: las gatas, él", text) for text in own)
        assert all(re.fullmatch(r"el mesa \d y la perro: los gatas, él", text) for text in swapped)
        french = probing.gender_examples(["Une femme, le jour, l'eau"] * 2, "fr", random.Random(0))
        assert [example.text for example in french] == ["une femme, le jour, l'eau"]
        both = probing.gender_examples(["el a", "la a"], "es", random.Random(0))
        assert {example.group for example in both} == {"el a"}

    def test_number_and_depth_of_a_sentence_by_hand(self, tmp_path):
        (tmp_path / "deep").mkdir()
        comment, rows = DOGS.split("\n", 1)
        rows = comment + "\n" + rows.replace(" ", "\t")
        (tmp_path / "deep" / "a.conllu").write_text(rows, encoding="utf-8")
        ((text, words),) = probing.read_treebank(tmp_path)
        assert text == "The dogs of my aunt don't chase cats."
        assert len(words) == 10
        subject = [probing.Example("Number=Plur", text, "dog")]
        assert probing.number_examples(text, words, "nsubj") == subject
        assert probing.number_examples(text, words, "obj")[0].group == "cat"
        assert probing.depth(words) == 4  # chase > dogs > aunt > my

    def test_groups_are_never_divided(self):
        examples = []
        for n in range(600):
            examples.append(probing.Example("AB"[n % 2], f"{n}", f"noun {n // 6}"))
        examples += [probing.Example("rare", f"rare {n}") for n in range(9)]
        parts = probing.divided(examples, [100, 20, 30], random.Random(0), balanced=True)
        assert [len(part) for part in parts] == [100, 20, 30]
        groups = [{example.group for example in part} for part in parts]
        assert not (groups[0] & groups[1] or groups[0] & groups[2] or groups[1] & groups[2])
        assert [example.label for example in parts[0]].count("A") == 50
        assert probing.divided(examples, [100, 20, 30], random.Random(0), balanced=True) == parts

    def test_what_is_missing_is_reported(self, tmp_path, capsys):
        with pytest.raises(EvaluationError, match="conllu files; download a treebank such as"):
            list(probing.read_treebank(tmp_path))
        (tmp_path / "a.conllu").write_text("# text = a\n1\ta\n")
        with pytest.raises(TextError, match=r"a.conllu: row 2 is not CoNLL-U"):
            list(probing.read_treebank(tmp_path))
        (tmp_path / "pairs").write_text("a dog\tein Hund\n")
        tasks = probing.bitext_tasks(str(tmp_path / "pairs"), "de", [3, 2, 1], random.Random(0))
        assert probing.with_labels(tasks) == {}
        report = capsys.readouterr().err
        assert "gender: left out, only for es and fr\n" in report
        assert "word content: left out, too few sentences for three splits\n" in report

    def test_information_is_printed_for_generative_models_only(self, tmp_path, monkeypatch):
        (tmp_path / "pairs").write_text("a dog\tun perro\n" * 3)
        words = ["probing", "p-sp-mini", "--information", str(tmp_path / "pairs")]
        monkeypatch.setattr(sys, "argv", words)
        with pytest.raises(EvaluationError, match="the pairs need --lang CODE"):
            probing.main()
        monkeypatch.setattr(sys, "argv", [*words, "--lang", "es"])
        with pytest.raises(EvaluationError, match="p-sp-mini: not from `st-paragram train bgt`"):
            probing.main()
        model = GenerativeEncoder.__new__(GenerativeEncoder)
        monkeypatch.setattr(probing, "load", lambda name: model)
        monkeypatch.setattr(
            probing,
            "information",
            lambda of, pairs: {"log likelihood": -len(pairs) - (of is model)},
        )
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            assert probing.main() == 0
        assert "| p-sp-mini, 3 pairs | nats |" in printed.getvalue()
        assert "| log likelihood | -4.0 |" in printed.getvalue()


class TestSpeed:
    def test_encoders_side_by_side(self, in_this_process, tmp_path, monkeypatch):
        monkeypatch.setattr(speed, "ENCODERS", {speed.OURS: speed.load_encoder})
        monkeypatch.setattr(speed, "LEAST_SECONDS", 0.01)
        assert main(["export", "p-sp-mini", str(tmp_path / "model"), "--dtype", "float32"]) == 0
        programs = speed.encode_programs(tmp_path, None, 40, 1)
        runs = in_turn(programs, 1)
        assert list(runs) == [speed.OURS, speed.WITHOUT_KERNELS]
        table = speed.table({name: [run.figures for run in some] for name, some in runs.items()})
        assert all(
            f"{kind}/s, {which}" in table
            for kind in ("sentences", "paragraphs")
            for which in ("first", "later")
        )

    def test_peers_on_little_text(self, in_this_process, tmp_path, monkeypatch):
        (tmp_path / "sts2017").mkdir()
        (tmp_path / "tatoeba").mkdir()
        graded = [f"{grade}\t{a}\t{b}" for a, b, grade in zip(*graded_pairs(), strict=True)]
        lines = ["\t".join(row) for row in held_out_pairs("es", "en")]
        files = {"sts2017/track5.en-en.tsv": graded}
        for code in ("ara", "cmn", "deu", "fra", "rus", "spa", "tur"):
            files[f"tatoeba/{code}-eng.tsv"] = lines
        for file, rows in files.items():
            text = "".join(f"{row}\n" for row in rows)
            (tmp_path / file).write_text(text, encoding="utf-8")
        programs = {name: peers.PROGRAMS[name] for name in ("p-sp-mini", "p-sp-mini, load")}
        copied = peers.Peer("Encoder", "p-sp-mini", "torch", "torch", is_copied=True)
        programs["p-sp-mini, copied"] = copied
        programs["absent"] = peers.Peer("", "", "no_such_module", "it")
        monkeypatch.setattr(peers, "PROGRAMS", programs)
        words = [
            "--count",
            "400",
            "--seconds",
            "0.01",
            "--rounds",
            "1",
            "--threads",
            "1",
            "--data",
            str(tmp_path),
        ]
        monkeypatch.setattr(sys, "argv", ["peers", *words])
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            assert peers.main() == 0
        assert "absent" not in printed.getvalue()
        lines = printed.getvalue().split("\n")
        plain = [line.split("|")[2:] for line in lines if line.startswith("| p-sp-mini |")]
        piped = [line.split("|")[2:] for line in lines if line.startswith("| p-sp-mini, load |")]
        assert len(plain) == 4  # speed, size, and two protocols of STS
        start, single, new, known, *_ = [
            float(cell.split()[0].replace(",", "")) for cell in plain[0][:-1]
        ]
        assert 0 < start < 60 and 0 < single < 1000 and min(new, known) > 100
        assert sum(line.startswith("| p-sp-mini, copied |") for line in lines) == 4
        assert plain[1:] == piped[1:]

    def test_peers_refuses_too_few_sentences(self, monkeypatch):
        monkeypatch.setattr(sys, "argv", ["peers", "--programs", "p-sp-mini", "--count", "100"])
        with pytest.raises(TextError, match="100 sentences; give --count 344 or more"):
            peers.main()

    def test_the_measures_of_encoding(self):
        calls = []
        assert later_rate(calls.append, ["a", "b"], 0.0) > 0
        assert single_ms(lambda texts: calls.append(texts), "cd") >= 0
        assert calls == [["a", "b"], ["c"], ["d"]]
        assert paragraphs([str(number) for number in range(17)]) == [
            "0 1 2 3 4 5 6 7",
            "8 9 10 11 12 13 14 15",
        ]
        assert part([*range(10)], 2.5) == [2, 7] and part([1, 2], 9) == [1, 2]
        lengths = []
        model = Model(None, lambda texts: [*map(len, texts)], lengths.append, [])
        assert paper_rate(model, ["abc", "a"], 1000) > 0
        # 1,000 sentences are 15 batches, and the middle batch has sentences of both lengths
        assert len(lengths) == 15 and {len(batch) for batch in lengths} == {64}
        assert lengths[0] == [1] * 64 and lengths[-1] == [3] * 64

    def test_speed_by_language(self, in_this_process, tmp_path, monkeypatch):
        monkeypatch.setattr(speed_by_language, "LEAST_SECONDS", 0.01)
        few = ["--models", "p-sp-mini", "--count", 50, "--rounds", 1]
        printed = run_script(monkeypatch, "speed_by_language", *few)
        assert "### p-sp-mini, threads: 1" in printed
        assert len(re.findall(r"^\| [a-z]{2} \|", printed, re.MULTILINE)) == 8
        text = tmp_path / "greek.txt"
        text.write_text("μία πρόταση\n" * 50, encoding="utf-8")
        output = tmp_path / "figures.json"
        more = ["--text", f"el={text}", "--json", output]
        assert "| el |" in run_script(monkeypatch, "speed_by_language", *few, *more)
        (figures,) = json.loads(output.read_text())["rounds"]["p-sp-mini, threads: 1"]["el"]
        new, alone = figures["sentences/s"], figures["sentencepiece: sentences/s"]
        assert figures["ratio"] == pytest.approx(new / alone)
        with pytest.raises(argparse.ArgumentTypeError, match="'el' is not LANG=FILE"):
            speed_by_language.language_and_file("el")

    def test_peers_refuses_missing_sets_before_it_measures(self, tmp_path, monkeypatch):
        monkeypatch.setattr(peers, "in_turn", None)  # not reached
        words = ["peers", "--programs", "p-sp-mini", "--data", str(tmp_path)]
        monkeypatch.setattr(sys, "argv", words)
        with pytest.raises(EvaluationError, match="no test sets"):
            peers.main()
        (tmp_path / "tatoeba").mkdir()
        rows = ("\t".join(row) for row in held_out_pairs("es", "en"))
        (tmp_path / "tatoeba/spa-eng.tsv").write_text("\n".join(rows), encoding="utf-8")
        with pytest.raises(EvaluationError, match="no test set for ar"):
            peers.main()

    def test_an_interrupted_load_test_ends_without_a_traceback(self, monkeypatch, capsys):
        def interrupt(*_):
            raise KeyboardInterrupt

        monkeypatch.setattr("st_paragram.core.sample.sample_pairs", interrupt)
        monkeypatch.setattr(sys, "argv", ["serving"])
        with pytest.raises(SystemExit) as ended:
            runpy.run_path(str(FOLDER / "serving.py"), run_name="__main__")
        assert ended.value.code == 130 and "serving: interrupted" in capsys.readouterr().err

    def test_mining_finds_the_pairs_of_its_peer(
        self, in_this_process, bitext, monkeypatch, tmp_path
    ):
        words = [
            "--bitext",
            bitext,
            "--folder",
            tmp_path,
            "--sizes",
            200,
            "--json",
            tmp_path / "figures.json",
        ]
        found = run_script(
            monkeypatch, "mining", *words, "--paraphrases", 200, "--top-k", 5, "--rounds", 1
        )
        assert "| 200 |" in found
        assert json.loads((tmp_path / "figures.json").read_text())["figures"]["200"]["pairs"] > 150
        ours, theirs, *shares = [
            cell.strip() for cell in found.rstrip().split("\n")[-2].split("|")[2:6]
        ]
        assert ours == theirs != "0" and shares == ["100.000"] * 2

    def test_figures_by_hand(self):
        ours, theirs = {("a", "b"): 0.9, ("c", "d"): 0.5}, {("a", "b"): 0.8}
        assert mining.agreement(ours, theirs, 0.0)[1:5] == ["2", "1", "50.000", "100.000"]
        assert mining.agreement(ours, theirs, 0.85) == [
            "0.85",
            "1",
            "0",
            "100.000",
            "0.000",
            "0.10000",
        ]
        assert (
            length.exponent([8, 64, 128, 256], [9, 1, 4, 16]) == "2.00"
            and length.exponent([8, 64], [1, 2]) == "-"
        )
        assert language_choice.correlation("x", [1, 2, 3, 4], [1, 2, 3, 5]) == [
            "x",
            "100.0",
            "4",
            "0.083",
        ]
        assert style_transfer.measures("a b, c.", "A b d", "c c!") == [2 / 3, 1 / 3, 2 / 3, 0.0]

    def test_memory_and_preparation(self, in_this_process, bitext, monkeypatch, tmp_path):
        given = ["--text", bitext, "--lang", "es", "--folder", tmp_path, "--pairs", 1500]
        assert (
            run_script(monkeypatch, "preparation", *given, "--workers", 1).count(
                "| 1,500 | 1 | 1,500 |"
            )
            == 1
        )
        assert "| 1,500 |" in run_script(monkeypatch, "memory", *given, "--steps", 10, "--dim", 16)
