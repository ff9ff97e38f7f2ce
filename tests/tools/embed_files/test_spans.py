"""Lines in spans are those that reading the whole file gives, wherever it is cut."""

import gzip
import io
from contextlib import nullcontext
from unittest import mock

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from st_paragram.core.files import content_digest, file_digest
from st_paragram.core.text import streams
from st_paragram.core.text.streams import read_lines
from st_paragram.errors import TextError
from st_paragram.tools.embed_files.line_stage import LineStage
from st_paragram.tools.embed_files.spans import Span, find_spans, read_span

TEXT = st.lists(st.sampled_from(["", "a", "é", "\r", "\u2028", "ﬀ words", "\n"]), max_size=40).map("".join)


def spans_of(data, most, name="x"):
    return list(find_spans(name, streams.read_blocks(name, io.BytesIO(data)), most, lambda _: nullcontext()))


def test_spans_by_hand():
    assert spans_of(b"", 2) == []
    assert spans_of(b"\n", 2) == [Span(0, 1, 1, 1)]
    assert spans_of(b"a\nbc\nd", 2) == [Span(0, 5, 1, 2), Span(5, 7, 3, 1)]
    assert spans_of(b"\xef\xbb\xbfa\nb\n", 1) == [Span(3, 5, 1, 1), Span(5, 7, 2, 1)]


@settings(max_examples=40)
@example("", True, 1, 4, False)
@given(TEXT, st.booleans(), st.integers(1, 9), st.integers(4, 50), st.booleans())
def test_the_lines_of_all_spans_are_the_lines(tmp_path_factory, text, mark, most, block, packed):
    folder = tmp_path_factory.mktemp("spans")
    path, data = folder / ("text.gz" if packed else "text"), b"\xef\xbb\xbf" * mark + text.encode()
    path.write_bytes(gzip.compress(data) if packed else data)
    with mock.patch.object(streams, "BLOCK_BYTES", block):
        stage = LineStage(folder / "work", (str(path),), (file_digest(path),), most, (None,))
        stage.run(0)
        scanned = stage.scanned()[0]
        found = [list(stage.read(0, number)) for number in range(len(scanned.spans))]
        expected = list(read_lines(str(path)))
    assert [line for lines in found for line in lines] == expected
    assert [len(lines) for lines in found[:-1]] == [most] * (len(found) - 1)
    assert [span.first for span in scanned.spans] == list(range(1, len(expected) + 1, most))
    assert (scanned.copied, scanned.lines, scanned.sha256) == (packed, len(expected), content_digest(path))


def test_a_line_that_is_not_utf8_is_told_by_its_number():
    with pytest.raises(TextError, match=r"^x: line 4 is not UTF-8 \(byte 0xff\); convert the file, e\.g\. with iconv$"):
        spans_of(b"a\n\nb\n\xff\nc\n", 2)


@pytest.mark.parametrize("now", [b"", b"one\ntwo", b"o\xffe\ntwo\n", b"one\ntwo three\n"])
def test_a_file_that_changed_is_refused(tmp_path, now):
    path = tmp_path / "a"
    path.write_bytes(b"one\ntwo\n")
    stage = LineStage(tmp_path / "work", (str(path),), (file_digest(path),), 10, (None,))
    stage.run(0)
    path.write_bytes(now)
    with pytest.raises(TextError, match="the file changed while it was being read"):
        list(stage.read(0, 0))
    with pytest.raises(TextError, match="changed"):
        stage.run(0)


def test_a_file_that_went_is_refused(tmp_path):
    with pytest.raises(TextError, match="x: the file changed"):
        list(read_span(tmp_path / "none", Span(0, 2, 1, 1), "x"))
