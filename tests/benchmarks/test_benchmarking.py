"""The speed benchmark: its arithmetic by hand, its processes, and tiny runs of two sections."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from dataclasses import fields, replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from harness.processes import thread_environment
from harness.speed import encoders, inputs, loading, peers, run, section_encode, section_tables
from harness.speed.inputs import Inputs, built_in_sentences, invented_words, read_sentences
from harness.speed.options import Options
from harness.speed.peers import Channel, Peer, PeerAbsentError, PeerProcess, interleave, rows
from harness.speed.plots import plot_table
from harness.speed.report import number, table_markdown, write_report
from harness.speed.results import Measure, Round, Row, Spread, Table, Unit
from harness.speed.run import run_units
from support import forked

from st_paragram.core.encoding.table import TableType
from st_paragram.core.machine import MachineDescription, describe_machine
from st_paragram.core.pair_store import PairStore
from st_paragram.core.threads import usable_cores
from st_paragram.errors import TextError

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "speed.py"


@pytest.fixture(scope="module", autouse=True)
def _words_once():
    """The lexicon of invented words, always the same one, is made once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(inputs, "invented_words", functools.cache(invented_words))
        yield


def table(**changes) -> Table:
    table_rows = [
        Row("ours", [Round(1.0, 100), Round(2.0, 100), Round(1.0, 300)], "fast | quick"),
        Row("theirs", [Round(2.0, 100), Round(10.0, 100), Round(1.0, 100)], "", {"memory": "5"}),
        Row("gone", note="not installed: pip install gone"),
    ]
    return Table(
        **{"key": "k", "title": "T", "unit": "s/s", "measure": Measure.RATE, "rows": table_rows, "reference": "ours"}
        | changes
    )


class TestResults:
    def test_spread_by_hand(self):
        assert Spread.of([5.0, 1.0, 2.0, 4.0, 3.0]) == Spread(3.0, 1.0, 5.0, 2.0, 4.0)
        assert Spread.of([7.0]) == Spread(7.0, 7.0, 7.0, 7.0, 7.0)

    def test_ratios_are_taken_round_by_round(self):
        # 100/50 = 2, 50/10 = 5, 300/100 = 3: the median is 3, that of the medians' ratio would be 100/50 = 2.
        ratio = table().ratio(table().row("theirs"))
        assert (ratio.median, ratio.low, ratio.high) == (3.0, 2.0, 5.0)

    def test_ratio_is_of_speeds_for_times_too(self):
        times = table(measure=Measure.TIME)
        assert times.values(times.row("theirs")) == [0.02, 0.1, 0.01]
        assert times.ratio(times.row("theirs")).median == 3.0

    def test_no_summary_without_rounds_and_no_ratio_without_reference(self):
        assert table().spread(table().row("gone")) is None
        assert table().ratio(table().row("gone")) is None
        assert table(reference=None).ratio(table().row("theirs")) is None

    def test_json_holds_every_round_and_reads_back(self):
        values = json.loads(json.dumps(table().as_json()))
        assert values["rows"][1]["rounds"][1] == {"seconds": 10.0, "work": 100}
        assert values["rows"][1]["reference_over_this"]["median"] == 3.0
        for row in values["rows"]:
            del row["summary"], row["reference_over_this"]
        assert Table.from_json(values) == table()


class TestReport:
    def test_table_by_hand(self):
        lines = table_markdown(table(notes=["A note."])).split("\n")
        assert lines[0] == "### T"
        assert lines[2] == "|  | median, s/s | min - max | middle half | ours / this (min - max) | memory |  |"
        assert lines[3] == "| --- | ---: | ---: | ---: | ---: | ---: | --- |"
        assert lines[4] == r"| ours | 100 | 50.0 - 300 | 75.0 - 200 | 1.00 (1.00 - 1.00) | - | fast \| quick |"
        assert lines[5] == "| theirs | 50.0 | 10.0 - 100 | 30.0 - 75.0 | 3.00 (2.00 - 5.00) | 5 |  |"
        assert lines[6] == "| gone | - | - | - | - | - | not installed: pip install gone |"
        assert lines[8] == "A note. Rounds: 3."

    @pytest.mark.parametrize(
        ("value", "shown"), [(0, "0"), (12345.6, "12,346"), (99.94, "99.9"), (1.234, "1.23"), (0.01234, "0.0123")]
    )
    def test_numbers(self, value, shown):
        assert number(value) == shown

    def test_report_files(self, tmp_path):
        write_report(tmp_path, describe_machine(), {"rounds": 3}, [table()], "today")
        values = json.loads((tmp_path / "speed.json").read_text())
        assert values["settings"] == {"rounds": 3}
        assert values["machine"]["libraries"]["torch"] != "not installed"
        assert len(values["tables"][0]["rows"][0]["rounds"]) == 3
        assert "### T" in (tmp_path / "speed.md").read_text()

    @pytest.mark.parametrize("scale", [1.0, 1e4])
    def test_plot(self, tmp_path, scale):
        pytest.importorskip("matplotlib")
        wide = table()
        wide.rows[1].rounds = [Round(scale * r.seconds, r.work) for r in wide.rows[1].rounds]
        plot_table(wide, tmp_path / "t.png")
        assert (tmp_path / "t.png").read_bytes().startswith(b"\x89PNG")


def test_machine_description_is_complete():
    machine = describe_machine()
    for field in fields(MachineDescription):
        assert getattr(machine, field.name) not in ("", None), field.name
    assert machine.cpu != "unknown"
    assert machine.cores >= 1
    assert machine.libraries["sentence-transformers"][0].isdigit()


class TestInputs:
    def test_sentences_are_repeatable_and_vary(self):
        first = list(built_in_sentences(25_000))
        assert len(first) == 25_000
        assert first == list(built_in_sentences(25_000))
        assert len(set(first)) > 24_000
        assert len(set(invented_words(3_000))) == 3_000
        assert invented_words(3_000) == invented_words(3_000)

    def test_read_sentences(self, tmp_path):
        path = tmp_path / "s.txt"
        path.write_bytes("a\r\n\n b\u2028c\n".encode())
        assert read_sentences(path) == ["a", " b\u2028c"]
        assert read_sentences(path, 3) == ["a", " b\u2028c", "a"]
        path.write_text("\n")
        with pytest.raises(TextError, match="no sentences"):
            read_sentences(path)

    def test_stores(self, tmp_path):
        made = Inputs(tmp_path, 400)
        store = PairStore(made.pair_store(300))
        long = PairStore(made.pair_store(300, length=2))
        more = PairStore(made.pair_store(300, pairs=700))
        assert (len(store), len(long), len(more)) == (200, 200, 700)
        ids, offsets = store.take("b", np.array([7]))
        twice, _ = long.take("b", np.array([7]))
        assert twice.tolist() == ids.tolist() * 2
        assert more.take("b", np.array([207]))[0].tolist() == ids.tolist()
        assert made.pair_store(300) == made.pair_store(300)
        assert Inputs(tmp_path, 402).pair_store(300) != store.path
        assert offsets.tolist() == [0, len(ids)]

    def test_stretched_sentences(self, tmp_path):
        made = Inputs(tmp_path, 50)
        normal, long, short = (read_sentences(made.sentences(length)) for length in (1, 3, 0.5))
        assert [len(text.split()) * 3 for text in normal] == [len(text.split()) for text in long]
        assert sum(map(len, short)) < 0.7 * sum(map(len, normal))


class FakeChannel(Channel):
    """Asks for so many rounds and keeps what is reported."""

    def __init__(self, rounds: int) -> None:
        self.messages: list[dict] = []
        asked = iter([True] * rounds + [False])
        super().__init__(SimpleNamespace(send=self.messages.append, recv=lambda: next(asked)))


@pytest.fixture(scope="module")
def options(tmp_path_factory) -> Options:
    return Options(
        tmp_path_factory.mktemp("speed"), rounds=2, vocab_size=400, dim=8, count=300, slow_count=20, quick=True
    )


class TestPeers:
    @pytest.mark.parametrize(
        "peer", ["light", "native", "stock", "sentencepiece", "tokenizers", "word_cache", "fresh_words"]
    )
    def test_encoders_run(self, options, peer):
        channel = FakeChannel(2)
        encoders.run(peer, section_encode.arguments(options, 1), channel)
        assert [next(iter(message)) for message in channel.messages] == ["ready", "seconds", "seconds"]
        assert all(message["work"] == 300 and message["seconds"] > 0 for message in channel.messages[1:])

    @pytest.mark.parametrize("kind", list(TableType))
    @pytest.mark.parametrize("draw", ["frequent", "any"])
    def test_means_run(self, kind, draw):
        channel = FakeChannel(2)
        section_tables.run(kind.value, {"rows": 50, "dim": 8, "count": 30, "draw": draw}, channel)
        assert [message["work"] for message in channel.messages[1:]] == [30, 30]
        assert section_tables.random_table(kind, (5, 6), np.random.default_rng(0)).kind is kind

    @pytest.mark.parametrize("peer", ["light", "native"])
    def test_load_reports_its_parts(self, options, peer):
        channel = FakeChannel(1)
        loading.run(peer, section_encode.arguments(options, 1, 30), channel)
        metadata = channel.messages[1]["metadata"]
        names = {"import", "first", "median", "p95", "repeated"}
        assert set(metadata) == {f"{name}_seconds" for name in names}
        assert metadata["p95_seconds"] >= metadata["median_seconds"] > 0
        assert metadata["first_seconds"] > metadata["repeated_seconds"] > 0

    def test_missing_package_is_named(self):
        with pytest.raises(PeerAbsentError, match="not installed: pip install its-package"):
            encoders.require("a_module_that_nobody_has", "its-package")

    def test_threads_are_told_to_every_library(self):
        one, four = thread_environment(1), thread_environment(4)
        assert {one["OMP_NUM_THREADS"], one["RAYON_NUM_THREADS"], one["MKL_NUM_THREADS"]} == {"1"}
        assert (four["OMP_NUM_THREADS"], four["TOKENIZERS_PARALLELISM"]) == ("4", "true")


def absent(what, arguments, channel):
    encoders.require("a_module_that_nobody_has", "its-package")


def crash(what, arguments, channel):
    channel.ready()
    channel.wait()
    os._exit(3)


class TestProcesses:
    def test_interleaved_processes_and_missing_ones(self, options):
        arguments = section_encode.arguments(options, 1)
        peers = [
            Peer("pieces", encoders.run, "sentencepiece", arguments, note="alone"),
            Peer("absent", absent, "", arguments),
            Peer("nobody", encoders.run, "no such peer", arguments),
            Peer("crash", crash, "", arguments),
        ]
        processes = interleave(peers, rounds=3)
        found = rows(processes, memory=True)
        assert [len(row.rounds) for row in found] == [3, 0, 0, 0]
        assert found[0].note == "alone"
        assert found[1].note == "not installed: pip install its-package"
        assert found[2].note.startswith("cannot run: KeyError")
        assert found[3].note == "cannot run: its process ended (status 3)"
        assert processes[0].first is not None
        if sys.platform == "linux":
            assert float(found[0].columns["peak memory, MiB"]) > 1

    def test_a_silent_peer_is_stopped(self, options):
        peer = Peer("pieces", encoders.run, "sentencepiece", section_encode.arguments(options, 1))
        with PeerProcess(peer, timeout=0.01) as process:
            process.wait_ready()
            process.round()
        assert process.absent == "stopped: no answer within 0 s"
        assert rows([process])[0].rounds == []


def test_units_are_kept_and_taken_again(tmp_path):
    made = []

    def make() -> Table:
        made.append(1)
        return table()

    units = [Unit("k", make)]
    for settings, resume, expected in (
        ({"a": 1}, True, 1),
        ({"a": 1}, True, 1),
        ({"a": 2}, True, 2),
        ({"a": 2}, False, 3),
    ):
        assert list(run_units(units, tmp_path, settings, resume)) == [table()]
        assert len(made) == expected


@pytest.mark.slow
def test_tiny_run(options, monkeypatch):
    monkeypatch.setattr(peers, "get_context", lambda method: forked.context())
    tiny = replace(options, rounds=1, peers=("sentencepiece", "LASER"))
    tables = {found.key: found for found in run.run(tiny, ["encode", "load"], plots=False)}
    of_text = {f"{name}-1-threads" for name in ("first-pass", "encode", "tokenize")}
    assert set(tables) == of_text | {"load", "single-sentence", "repeated-sentence"}
    encode = tables["encode-1-threads"]
    assert [row.name for row in encode.rows] == ["st_paragram", "LASER 2", "sentencepiece alone"]
    assert [len(row.rounds) for row in encode.rows] == [1, 0, 1]
    assert encode.row("LASER 2").note.startswith(("not installed", "weights absent"))
    assert encode.ratio(encode.row("sentencepiece alone")).median > 0
    assert tables["load"].row("st_paragram").columns["peak memory, MiB"]
    values = json.loads((tiny.output / "speed.json").read_text())
    assert [found["key"] for found in values["tables"]] == list(tables)
    again = run.run(tiny, ["encode", "load"], resume=True, plots=False)
    assert again == list(tables.values())


def test_unknown_section_is_one_line(tmp_path):
    command = [sys.executable, str(SCRIPT), "--only", "nothing", "--output", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=SCRIPT.parent.parent)
    assert done.returncode == 1
    assert done.stderr.strip().split("\n")[-1].startswith("speed: no section 'nothing'")


def test_all_cores_are_counted():
    assert Options(Path()).thread_counts() == sorted({1, usable_cores()})
    assert Options(Path(), quick=True).thread_counts() == [1]
