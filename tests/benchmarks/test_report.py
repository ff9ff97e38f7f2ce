"""The report of results: every table's figures, what is missing, constant or measured twice, paths, pictures."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import ClassVar

import pytest
from harness.families.ablation_results import AblationResult, AblationRun, AblationsRun
from harness.speed.results import Measure, Round, Row, Table
from reports.ablations import seeds_table
from reports.introduction import read_notes
from reports.report import report_markdown
from reports.sources import collect, read_sources, short_name, shorten, shorten_command

from st_paragram.cli.main import run_reporting_errors
from st_paragram.core.files import write_text
from st_paragram.core.machine import MachineDescription
from st_paragram.errors import EvaluationError
from st_paragram.tools.evaluation.bucc import BuccResult, BuccRun, BuccScores, MarginResult
from st_paragram.tools.evaluation.record import Record, Training, write_records
from st_paragram.tools.evaluation.results import (
    Against,
    Comparison,
    GradedResult,
    HardStsResult,
    HardStsRun,
    MtebResult,
    MtebRun,
    MtebScores,
    StsResult,
    StsRun,
)
from st_paragram.tools.evaluation.sts.catalogue import select_sets
from st_paragram.tools.evaluation.tatoeba import RetrievalError, RetrievalScores, TatoebaResult, TatoebaRun

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "report.py"
KNOWN = "sts, hard-sts, tatoeba, bucc, semantic-retrieval, answer-retrieval, transfer, nli, mteb, ablations"
MACHINE = MachineDescription(cpu="Test CPU", cores=2, threads=1)
TRAINING = Training(("en", "es"), 123_456, 96.4, 4321.5, "x86_64", 300, 20_000, 2.5, 60)
SMT = next(info for info in select_sets(["2013"]) if info.name == "SMT")
TIMES = (("p-sp-zh", 30.2), ("p-sp-mul", 22.3))
needs_matplotlib = pytest.mark.skipif(importlib.util.find_spec("matplotlib") is None, reason="no matplotlib")


@dataclass(frozen=True)
class ChessRun:
    """Of a benchmark that the report does not know."""

    benchmark: ClassVar[str] = "chess"
    models: dict[str, int]


def record(run, **changes) -> Record:
    return replace(Record(run, f"python benchmarks/{run.benchmark}.py one", "2030-01-02", MACHINE), **changes)


def graded(pearson: float | None, spearman: float | None = None, pairs: int = 250, **ends: float) -> GradedResult:
    return GradedResult(pairs, pearson, spearman, **ends)


def sts_results(pearson: float | None = 0.701, average: float | None = 0.722) -> StsResult:
    return StsResult(
        sentences_per_second=98_765.4,
        sets={
            "2012/MSRpar": graded(pearson, 0.512, 750, low=0.65, high=0.75),
            "2013/FNWN": graded(0.456, 0.467, 189, low=0.4, high=0.5),
            "2017/es-en": graded(0.617, 0.6009, low=0.55, high=0.68),
            "stsb/dev": graded(0.8123, 0.8034, 1500),
        },
        papers={
            **{"2012": 0.641, "2013": None, "2014": 0.752, "2015": 0.783, "2016": 0.774, "average": None},
            **{"2013 without SMT": 0.655, "average without SMT": average},
        },
        sentence_bert={"2012": 0.611, "2013": 0.7, "2014": 0.71, "2015": 0.8, "2016": 0.75, "average": 0.7142},
        mteb={"STS12": 0.611, "STS17/es-en": 0.6009, "STSBenchmark": 0.777},
    )


def sts(**models: StsResult) -> Record:
    return record(StsRun(models or {"one": sts_results()}))


def section(text: str, title: str) -> str:
    """The section whose heading begins so."""
    found = [part for part in text.split("\n## ") if part.startswith(title)]
    assert len(found) == 1, f"{len(found)} sections {title!r}"
    return found[0]


def cells(text: str, row: str, table: int = 0) -> list[str]:
    """The cells of a row, in that table of those that have it."""
    rows = [line for line in text.split("\n") if line.startswith(f"| {row} |")]
    return [cell.strip() for cell in rows[table].strip("|").split("|")[1:]]


class TestShortening:
    @pytest.mark.parametrize(
        ("command", "short"),
        [
            (
                "python benchmarks/sts.py /home/me/m/p-sp-es --data /data/eval/",
                "python benchmarks/sts.py p-sp-es --data eval",
            ),
            ("python /home/me/benchmarks/sts.py --data=/data/eval", "python benchmarks/sts.py --data=eval"),
            ("python benchmarks/sts.py models/a ../data", "python benchmarks/sts.py models/a ../data"),
            ("python x.py '/a b/c d' --only 2012/MSRpar", "python x.py 'c d' --only 2012/MSRpar"),
            ("python x.py sentence-transformers/LaBSE", "python x.py sentence-transformers/LaBSE"),
            ("python x.py /", "python x.py /"),
        ],
    )
    def test_commands(self, command, short):
        assert shorten_command(command) == short

    def test_names(self):
        names = ("/a/b/p-sp", "b/p-sp/", "p-sp", "random (like /a/b/p-sp)", "untrained")
        assert [short_name(name) for name in names] == ["p-sp", "p-sp", "p-sp", "random (like p-sp)", "untrained"]

    def test_addresses_stay(self):
        assert shorten("see https://example.org/a/b") == "see https://example.org/a/b"

    def test_no_folder_reaches_the_report(self):
        run = StsRun({"/secret/one": sts_results()}, ("2013/SMT is missing under /secret/eval",))
        command = "python /secret/benchmarks/sts.py /secret/one --json /secret/out.json"
        text = report_markdown([record(run, command=command, training={"/secret/one": TRAINING})])
        assert "secret" not in text
        assert "    python benchmarks/sts.py one --json out.json\n" in text
        assert "2013/SMT is missing under eval." in text


class TestCollect:
    def test_the_later_date_counts_with_a_note(self):
        old = replace(sts(one=sts_results(average=0.5)), date="2030-01-01", command="python old.py")
        new = sts(one=sts_results(average=0.6))
        for records in ([old, new], [new, old]):
            text = report_markdown(records)
            assert cells(section(text, "STS 2012-2016, the papers'"), "one")[-1] == "60.0"
            assert (
                "Some figures of one were measured more than once. Those of 2030-01-02 count, not those of 2030" in text
            )
            assert "python old.py" not in text

    def test_parts_of_a_benchmark_come_together(self):
        one = record(TatoebaRun({"/a/one": TatoebaResult({"spa": tatoeba(0.1, 0.2)}, 1.0)}, 4))
        two = replace(
            one, run=TatoebaRun({"one": TatoebaResult({"tur": tatoeba(0.3, 0.5)}, 2.0)}, 4), command="python 2"
        )
        collected = collect([one, two], TatoebaRun, TatoebaResult)
        both = {"spa": tatoeba(0.1, 0.2), "tur": tatoeba(0.3, 0.5)}
        assert collected.results == {"one": TatoebaResult(both, 2.0)}
        assert collected.records("languages", "spa") == [one]
        assert collected.records("seconds") == [two]
        assert "python 2" in report_markdown([one, two])

    def test_empty_results_replace_nothing(self):
        later = replace(sts(one=StsResult(papers={"average": None})), date="2030-02-01")
        assert cells(section(report_markdown([sts(), later]), "STS 2012-2016, the papers'"), "one")[-1] == "72.2"

    def test_two_models_of_one_name_are_refused(self):
        with pytest.raises(EvaluationError, match="a/p-sp and b/p-sp would both be p-sp"):
            report_markdown([record(StsRun({"a/p-sp": sts_results(), "b/p-sp": sts_results()}))])

    def test_unknown_benchmarks_and_broken_results_are_refused(self, tmp_path):
        with pytest.raises(EvaluationError, match="a record of 'chess'; the report knows " + KNOWN):
            report_markdown([record(ChessRun({}))])
        with pytest.raises(EvaluationError, match="no results"):
            report_markdown([record(StsRun({}))])
        path = tmp_path / "broken.json"
        write_records([record(AblationsRun({"base": ablation("base", 0.8)}))], path)
        values = json.loads(path.read_text())
        del values["run"]["models"]["base"]["runs"]
        path.write_text(json.dumps(values))
        with pytest.raises(EvaluationError, match=r"models\.base\.runs: .*create the record again"):
            read_sources([path])
        values["run"]["models"] = 3
        path.write_text(json.dumps(values))
        with pytest.raises(EvaluationError, match=r"broken\.json: .*create the record again"):
            read_sources([path])

    def test_every_kind_of_record_is_read_back(self, tmp_path):
        runs = [
            StsRun({"one": sts_results(), "two": StsResult(against=Against("one", {"2012": None}))}, ("n",), {"k": 1}),
            HardStsRun({"one": HardStsResult({"all": graded(None)})}),
            TatoebaRun({"one": TatoebaResult({"spa": tatoeba(0.1, 0.2)})}, 4),
            BuccRun({"one": BuccResult({"zh-en": BuccScores(2, {"ratio": margin()})}, 1.0)}, {"zh-en": "h"}, 4, "max"),
            MtebRun({"one": MtebResult({"STS12": {"default": MtebScores(None, {"f1": 0.5})}})}, {"STS12": "local-1"}),
            AblationsRun({"base": ablation("base", 0.8, None, dim=8)}, ["text"], {"dev": 3}, {"dim": 8}),
        ]
        records = [record(run, training={"one": TRAINING}) for run in runs]
        write_records(records, tmp_path / "all.json")
        write_records(records[:1], tmp_path / "one.json")
        assert read_sources([tmp_path / "all.json"]) == (records, [])
        assert read_sources([tmp_path / "one.json"]) == (records[:1], [])


class TestModels:
    def test_figures(self):
        text = section(
            report_markdown([replace(sts(one=sts_results(), two=sts_results()), training={"one": TRAINING})]), "Mo"
        )
        assert cells(text, "one") == ["en, es", "123,456", "300", "20,000", "2.5", "60", "96", "4,322", "x86_64"]
        assert "The model *two*, which the tables below have too, has no record of a training." in text

    def test_models_without_a_record_are_named(self):
        several = section(report_markdown([sts(one=sts_results(), two=sts_results(), untrained=sts_results())]), "Mo")
        assert (
            "The models *one*, *two* and *untrained* have no record of a training. The model *untrained* is" in several
        )
        assert "It is a random table" in section(report_markdown([sts(untrained=sts_results())]), "Mo")

    def test_records_of_different_trainings_are_told(self):
        first = replace(sts(), training={"one": TRAINING})
        result = TatoebaResult({"spa": tatoeba(0.1, 0.2)})
        second = record(TatoebaRun({"one": result}, 4))
        same = replace(second, run=TatoebaRun({"/x/one": result}, 4))
        text = report_markdown([first, replace(same, training={"/x/one": TRAINING})])
        assert "training runs of this name" not in text
        assert "different paths" not in text
        assert "one: the records have it under different paths" in report_markdown([first, same])
        again = replace(second, training={"one": replace(TRAINING, seconds=1.0)}, date="2030-01-09")
        text = report_markdown([first, again])
        assert "one: the records are of 2 training runs of this name" in text
        assert cells(section(text, "Models"), "one")[6] == "1"


class TestSts:
    def test_papers_protocol(self):
        text = section(report_markdown([sts()]), "STS 2012-2016, the papers'")
        assert cells(text, "model")[-2:] == ["2013 without SMT", "average without SMT"]
        assert cells(text, "one") == ["64.1", "-", "75.2", "78.3", "77.4", "-", "65.5", "72.2"]
        assert cells(text, "P-SP (published, EMNLP 2022)") == ["68.7", "64.7", "78.1", "81.4", "80.0", "74.6", "-", "-"]
        assert "    python benchmarks/sts.py one\n\n2030-01-02, Test CPU, 2 cores, 1 thread." in text

    def test_sentence_bert_and_mteb(self):
        text = report_markdown([sts()])
        assert cells(section(text, "STS 2012-2016, Sentence-BERT's"), "one")[-1] == "71.4"
        assert cells(section(text, "STS by mteb's"), "one") == ["61.1", "60.1", "77.7"]

    def test_sets(self):
        text = report_markdown([sts()])
        by_year = section(text, "STS 2012-2016, every sub-data set")
        assert cells(by_year, "model") == ["MSRpar (750)"]
        assert cells(by_year, "one") == ["70.1 (65.0 to 75.0)"]
        assert cells(by_year, "one", 1) == ["45.6 (40.0 to 50.0)"]
        tracks = section(text, "STS 2017")
        assert cells(tracks, "one") == ["61.7 / 60.1"]
        assert cells(tracks, "one", 1) == ["61.7 (55.0 to 68.0)"]
        assert cells(tracks, "LASER 1024d (published, EMNLP 2022)") == ["59.7 / 58.0"]
        assert cells(section(text, "STS Benchmark"), "one") == ["81.2 / 80.3"]

    def test_constant_scores_are_named_wherever_they_would_be_averaged(self):
        results = sts_results(pearson=None, average=None)
        results.papers["2012"] = None
        text = report_markdown([sts(one=results)])
        assert cells(section(text, "STS 2012-2016, every"), "one") == ["constant"]
        papers = cells(section(text, "STS 2012-2016, the papers'"), "one")
        assert (papers[0], papers[1], papers[5]) == ("constant", "-", "constant")
        results.sets["2012/MSRpar"] = replace(results.sets["2012/MSRpar"], undefined="NaN")
        assert cells(section(report_markdown([sts(one=results)]), "STS 2012-2016, every"), "one") == ["NaN"]

    def test_what_is_missing_is_left_out(self):
        results = StsResult(sets={"2017/en-en": graded(0.8, 0.79)}, mteb={"STS17/en-en": 0.79})
        text = report_markdown([sts(one=results)])
        assert [line for line in text.split("\n") if line.startswith("## ")] == [
            "## Models",
            "## STS by mteb's protocol, computed here: Spearman x 100",
            "## STS 2017, track by track: Pearson / Spearman x 100",
        ]
        assert "published, EMNLP" not in text  # none has en-en
        assert "SP 20k, random (published, ACL 2019)" in text

    def test_models_on_other_sets_have_dashes(self):
        other = StsResult(sets={"2017/ar-ar": graded(0.7, 0.71)})
        text = section(report_markdown([sts(one=sts_results(), two=other)]), "STS 2017")
        assert cells(text, "model") == ["ar-ar (250)", "es-en (250)"]
        assert cells(text, "two") == ["70.0 / 71.0", "-"]

    def test_differences(self):
        difference = Comparison(0.012, -0.003, 0.027, 0.114)
        against = Against("/m/one", {"average": difference, "2017/es-en": None})
        models = {"one": sts_results(), "two": replace(sts_results(), against=against)}
        rec = record(StsRun(models, resamples=10_000, seed=3))
        text = section(report_markdown([rec]), "STS, differences")
        assert "Compared with one:" in text
        assert cells(text, "average") == ["+1.2 (-0.3 to +2.7), p 0.114"]
        assert cells(text, "2017/es-en") == ["-"]
        assert "The bootstrap took 10,000 resamples with seed 3." in text

    def test_hard(self):
        splits = {"all": graded(0.5, 0.4, 12_273), "negation": graded(None, None, 3)}
        rec = record(HardStsRun({"one": HardStsResult(splits)}))
        text = section(report_markdown([rec]), "Hard STS")
        assert cells(text, "model") == ["all (12,273)", "negation (3)"]
        assert cells(text, "one") == ["50.0 / 40.0", "constant / constant"]
        assert cells(text, "BGT (1M en-fr pairs) (published, EMNLP 2020)") == ["75.3", "73.1"]


def tatoeba(forward: float, backward: float) -> RetrievalScores:
    cosine, by_margin = RetrievalError(forward, backward), RetrievalError(forward / 2, backward / 2)
    return RetrievalScores(1000, cosine, by_margin, 1 - forward, 0.9 * (1 - forward))


def margin(threshold: float | None = 1.0614) -> MarginResult:
    return MarginResult(threshold, 225, 180, 0.8, 0.7, 0.747)


class TestRetrieval:
    def test_tatoeba(self):
        published = ("ara", "deu", "spa", "fra", "rus", "tur")
        every = {name: tatoeba(0.1 * place, 0.1) for place, name in enumerate(published)}
        results = {"one": TatoebaResult({"spa": tatoeba(0.1, 0.2)}, 1.26), "all": TatoebaResult(every, 7.0)}
        text = section(report_markdown([record(TatoebaRun(results, 4))]), "Tatoeba")
        assert cells(text, "model") == ["spa", "ara", "deu", "fra", "rus", "tur", "average", "seconds"]
        assert cells(text, "one") == ["15.0", "-", "-", "-", "-", "-", "-", "1.26"]
        # errors there 0, 10, ..., 50, back 10 each: mean (25 + 10) / 2
        assert cells(text, "all") == ["15.0", "5.0", "10.0", "20.0", "25.0", "30.0", "17.5", "7.00"]
        assert cells(text, "P-SP (published, EMNLP 2022)") == ["2.4", "8.8", "1.5", "5.4", "5.6", "1.4", "4.2", "-"]
        assert cells(text, "one", 1)[0] == "7.5"
        assert cells(text, "one", 2)[0] == "10.0 / 20.0"
        assert cells(text, "one", 3)[0] == "90.0 (81.0)"

    def test_many_languages_become_rows(self):
        languages = {f"l{number:02}": tatoeba(number / 100, 0.0) for number in range(20)}
        text = section(report_markdown([record(TatoebaRun({"one": TatoebaResult(languages)}, 4))]), "Tatoeba")
        assert cells(text, "language") == ["one"]
        assert cells(text, "l10") == ["5.0"]
        assert cells(text, "seconds") == ["-"]

    def test_bucc(self):
        margins = {"cosine": margin(), "ratio": margin(), "distance": margin(None)}
        results = {"one": BuccResult({"zh-en": BuccScores(257, margins)}, 12.3)}
        rec = record(BuccRun(results, {"zh-en": "oracle threshold"}, 4, "max"))
        text = section(report_markdown([rec]), "BUCC")
        assert "distance" not in text  # nothing was extracted
        assert "### zh-en: oracle threshold (257 gold pairs)" in text
        assert cells(text, "one") == ["cosine", "1.061", "80.0", "70.0", "74.7"]
        assert cells(text, "one", 1)[0] == "ratio"
        assert "This took 12.3 seconds for one." in text
        three = {
            name: replace(results["one"], seconds=seconds) for name, seconds in (("a", 1.5), ("b", 2.5), ("c", 3.5))
        }
        text = section(report_markdown([replace(rec, run=replace(rec.run, models=three))]), "BUCC")
        assert "This took 1.50 seconds for a, 2.50 for b and 3.50 for c." in text

    def test_mteb_and_agreement(self):
        tasks = {f"STS{year}": {"default": MtebScores(0.6 + year / 1000)} for year in range(12, 17)}
        tasks["STS17"] = {"es-en": MtebScores(0.60093), "en-en": MtebScores(None)}
        text = section(report_markdown([record(MtebRun({"one": MtebResult(tasks)})), sts()]), "mteb's own")
        assert cells(text, "one") == ["61.2", "61.3", "61.4", "61.5", "61.6", "61.4"]
        assert cells(text, "one", 1) == ["60.1", "constant"]
        assert cells(text, "LaBSE (transformer) (published, mteb)")[-1] == "69.3"
        # ours: STS12 0.611 against 0.612, es-en 0.6009 against 0.60093
        assert "at most 1.0e-03 from mteb's (one, STS12; 2 figures compared" in text


def ablation(group: str, *scores: float | None, pairs: int | None = None, **overrides) -> AblationResult:
    runs = [
        AblationRun(seed, {"track5.en-en": graded(score, 0.5)}, pairs, 100.0 + seed)
        for seed, score in enumerate(scores)
    ]
    return AblationResult(group, overrides, runs)


class TestNotes:
    def test_they_stand_on_top_of_the_page_and_of_sections(self, tmp_path):
        (tmp_path / "notes.md").write_text("Mind this.\n\n## Models\n\nThey are old.\n", encoding="utf-8")
        notes = read_notes(tmp_path / "notes.md")
        text = report_markdown([replace(sts(), training={"one": TRAINING})], notes=notes)
        assert text.index("# Results") < text.index("parallel text.\nMind this.\n\nHow to read") < text.index("## ")
        assert "\n## Models\n\nThey are old.\n\n*Vocabulary* is" in text

    def test_those_on_no_section_are_refused(self):
        with pytest.raises(
            EvaluationError, match="notes on 'Modles', which is no section of this report; it has Models"
        ):
            report_markdown([sts()], notes={"Modles": "They are old."})

    def test_files_that_cannot_be_used_are_refused(self, tmp_path):
        (tmp_path / "twice.md").write_text("## Models\n\nx\n\n## Models\n\ny\n", encoding="utf-8")
        with pytest.raises(EvaluationError, match=r"twice\.md: the heading 'Models' occurs more than once"):
            read_notes(tmp_path / "twice.md")
        with pytest.raises(EvaluationError, match=r"absent\.md: no notes can be read here"):
            read_notes(tmp_path / "absent.md")


class TestAblations:
    def test_table(self):
        results = {
            "megabatch_size 1": ablation("largest M", 0.70, 0.72),
            "base": ablation("base", 0.80, 0.81),
            "margin 0.2": ablation("loss", 0.9, None),
        }
        text = section(report_markdown([record(AblationsRun(results, ["/d/en-es.tsv"]))]), "Ablations")
        assert cells(text, "base") == ["base", "0, 1", "80.5 (80.0 - 81.0)", "-", "100"]
        assert cells(text, "largest M") == [
            "megabatch_size 1",
            "0, 1",
            "71.0 (70.0 - 72.0)",
            "-9.5 (-10.0 .. -9.0)",
            "100",
        ]
        assert cells(text, "loss") == ["margin 0.2", "0, 1", "constant", "-", "100"]
        assert text.index("| base |") < text.index("| largest M |")
        assert "STS 2017 en-en: difference" in text
        assert "All rows were trained on en-es.tsv. Each differs from the row *base* only in" in text
        assert "## Models" not in report_markdown([record(AblationsRun(results))])

    def test_only_rows_of_the_same_data_are_compared(self):
        one = record(AblationsRun({"base": ablation("base", 0.8)}, ["a"]))
        two = record(AblationsRun({"base": ablation("base", 0.6)}, ["b"]))
        assert report_markdown([one, two]).count("## Ablations") == 2

    def test_the_table_that_the_script_prints(self):
        rows = {"base": ablation("base", 0.8, 0.81), "margin 0.2": ablation("loss", 0.9, None)}
        text = seeds_table(AblationsRun(rows, development={"track5.en-en": 250}))
        assert cells(text, "row") == ["track5.en-en", "seconds"]
        assert cells(text, "base") == ["80.5 (80.0 - 81.0)", "100"]
        assert cells(text, "margin 0.2") == ["constant", "100"]


RECORDS = SCRIPT.parent / "records" / "2026-11"


class TestSummary:
    """The figures of docs/results.md that come from records are the records' figures."""

    page = (SCRIPT.parents[1] / "docs" / "results.md").read_text(encoding="utf-8")

    def differing(self, rows: re.Pattern[str], record: str) -> list[str]:
        """The rows of the page with a figure that no row of that name has in the record."""
        known = (RECORDS / record).read_text(encoding="utf-8").split("\n")
        found = rows.findall(self.page)
        assert found
        wrong = []
        for row in found:
            name, *shown = [cell.strip(" *") for cell in row.strip("|").split("|")]
            figures = " ".join(line for line in known if line.startswith(f"| {name} |"))
            wrong += [row for cell in shown if cell and cell not in figures]
        return wrong

    def test_published_rows(self):
        assert self.differing(re.compile(r"^\| .*\(published, .*$", re.MULTILINE), "results.md") == []

    def test_rows_of_speed(self):
        table = section(self.page, "Speed").partition("\n\n## ")[0]
        assert len(re.findall(r"^\| (?!---|\|| \|)", table, re.MULTILINE)) >= 3
        for row in re.findall(
            r"^\| (?:st_paragram|model2vec|stock export|MultipleNegativesRankingLoss) \|.*$", table, re.M
        ):
            assert self.differing(re.compile(re.escape(row)), "speed.md") == []


class TestPage:
    """What the report says around its tables is what its record says: a change is made in both."""

    page = (RECORDS / "results.md").read_text(encoding="utf-8")
    notes = read_notes(SCRIPT.parent / "reports" / "results_notes.md")

    def report(self) -> str:
        splits = {"all": graded(0.5, 0.4, 12_273), "negation": graded(0.5, 0.4, 3)}
        sts_run = StsRun({"one": sts_results(), "untrained": sts_results()}, (f"2013/SMT is missing ({SMT.terms})",))
        bucc = {name: BuccResult({"zh-en": BuccScores(2, {"ratio": margin()})}, seconds) for name, seconds in TIMES}
        english = record(AblationsRun({"base": ablation("base", 0.8)}, ["en-en.tsv.xz"]))
        records = [
            record(sts_run, training={"one": TRAINING}),
            record(HardStsRun({"one": HardStsResult(splits)})),
            record(TatoebaRun({"one": TatoebaResult({"spa": tatoeba(0.1, 0.2)}, 1.0)}, 4)),
            record(BuccRun(bucc, {"zh-en": "h"}, 4, "max"), training=dict.fromkeys(bucc, TRAINING)),
            record(MtebRun({"one": MtebResult({"STS12": {"default": MtebScores(0.6)}})})),
            record(AblationsRun({"base": ablation("base", 0.8)}, ["/d/en-es.tsv.xz"])),
            replace(english, command="python benchmarks/ablations.py --lang en"),
        ]
        return report_markdown(records, notes=self.notes)

    def test_introduction(self):
        assert self.page.startswith(self.report().partition("\n## Models\n")[0])

    def test_what_stands_above_tables(self):
        above = re.findall(
            r"^## .*?(?=\n\n(?:- all: |### |\w[^\n]*:\n\n\||\|))", self.report(), re.MULTILINE | re.DOTALL
        )
        assert len(above) == 14
        assert [part for part in above if part not in self.page] == []

    def test_what_stands_below_tables(self):
        text = self.report()
        for told in (
            "The model *untrained*, which the tables below have too, has no record of a training. It is a random table",
            "The set 2013/SMT is missing: its licence forbids passing it on, and the Linguistic Data Consortium gives",
            "This took 30.2 seconds for p-sp-zh and 22.3 for p-sp-mul.",
        ):
            assert told in self.page and told in text


class TestSpeed:
    def table(self) -> Table:
        rows = [Row("st_paragram", [Round(1.0, 5_000)], "note"), Row("LaBSE", note="absent")]
        return Table("encode-1-threads", "Text to vectors, 1 thread", "sentences/s", Measure.RATE, rows, "st_paragram")

    def test_of_both_kinds(self, tmp_path):
        values = {"date": "2030-01-01", "machine": asdict(MACHINE), "settings": {}, "tables": [self.table().as_json()]}
        (tmp_path / "speed.json").write_text(json.dumps(values))
        write_records([sts()], tmp_path / "sts.json")
        records, speeds = read_sources([tmp_path / "sts.json", tmp_path / "speed.json"])
        text = report_markdown(records, speeds)
        assert cells(section(text, "Speed while"), "one") == ["98,765", "Test CPU, 2 cores, 1 thread"]
        assert "| P-SP (published) | 12,776 | 1 CPU core |" in text
        assert cells(section(text, "Speed side by side"), "st_paragram")[0] == "5,000"

    def test_files_that_are_neither_are_refused(self, tmp_path):
        (tmp_path / "x.json").write_text('{"tables": 3}')
        (tmp_path / "y.json").write_text("no json")
        (tmp_path / "z.json").write_text("[]")
        for name in ("x.json", "y.json", "z.json", "absent.json"):
            with pytest.raises(EvaluationError, match=name):
                read_sources([tmp_path / name])


@needs_matplotlib
class TestPlots:
    def records(self) -> list[Record]:
        rows = {
            "base": ablation("base", 0.8, 0.81, pairs=100_000),
            "pairs 1000": ablation("pairs", 0.6, 0.63, pairs=1000),
        }
        models = {"one": sts_results(), "two": sts_results(average=0.7)}
        return [replace(sts(**models), training=dict.fromkeys(models, TRAINING)), record(AblationsRun(rows))]

    def test_files_and_captions(self, tmp_path):
        from reports.plots import draw_plots

        plots = draw_plots(self.records(), tmp_path / "docs" / "images")
        names = ["results-sts-papers.png", "results-sts-sentence-bert.png", "results-speed.png", "results-pairs.png"]
        assert [plot.path.name for plot in plots] == names
        assert sorted(path.name for path in (tmp_path / "docs" / "images").iterdir()) == sorted(names)
        assert all(plot.path.read_bytes().startswith(b"\x89PNG") for plot in plots)
        assert [plot.caption for plot in plots if plot.caption not in TestPage.page] == []
        assert "without STS 2013's SMT" in plots[0].caption
        assert "SMT" not in plots[1].caption
        text = report_markdown(self.records(), plots=[plot.markdown(tmp_path / "docs" / "r.md") for plot in plots])
        assert "![STS by year, the papers' protocol](images/results-sts-papers.png)" in text

    def test_nothing_to_draw(self, tmp_path):
        from reports.plots import draw_plots

        results = {"one": TatoebaResult({"spa": tatoeba(0.1, 0.2)})}
        assert draw_plots([record(TatoebaRun(results, 4))], tmp_path) == []
        assert draw_plots([sts(one=StsResult(sets={"2017/en-en": graded(None)}))], tmp_path) == []

    def test_labels_cover_nothing(self):
        from reports.labels import Point, label_points
        from reports.plot_parts import scatter

        from st_paragram.core.figures import new_figure

        points = [Point(100 + number % 3, 70 + number / 10, f"model-{number}", True) for number in range(12)]
        axes = new_figure(8, 6).subplots()
        scatter(axes, points, 2)
        label_points(axes, points, 9)
        boxes = [text.get_window_extent() for text in axes.texts if text.get_text()]
        assert len(boxes) == 12
        assert not any(one.overlaps(other) for place, one in enumerate(boxes) for other in boxes[:place])
        spots = [axes.transData.transform((point.x, point.y)) for point in points]
        assert not any(box.contains(*spot) for box in boxes for spot in spots)


class TestScript:
    def run(self, monkeypatch, *arguments: str | Path) -> int:
        spec = importlib.util.spec_from_file_location("report_script", SCRIPT)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        monkeypatch.setattr(sys, "argv", ["report.py", *map(str, arguments)])
        return run_reporting_errors("report", module.main)

    def test_writes_the_report(self, tmp_path, monkeypatch):
        write_records([sts()], tmp_path / "sts.json")
        output = tmp_path / "docs" / "results.md"
        assert self.run(monkeypatch, tmp_path / "sts.json", "--output", output, "--no-plots") == 0
        assert output.read_text(encoding="utf-8") == report_markdown([sts()])
        assert [path.name for path in output.parent.iterdir()] == ["results.md"]

    def test_errors_are_one_line(self, tmp_path, monkeypatch, capsys):
        bad = tmp_path / "bad.json"
        write_records([record(ChessRun({"a": 1}))], bad)
        assert self.run(monkeypatch, bad, "--output", tmp_path / "r.md") == 1
        assert capsys.readouterr().err == f"report: {bad}: a record of 'chess'; known are {KNOWN}\n"
        assert not (tmp_path / "r.md").exists()


def test_writing_is_whole_or_not_at_all(tmp_path):
    write_text(tmp_path / "a" / "r.md", "x\n")
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["r.md"]
