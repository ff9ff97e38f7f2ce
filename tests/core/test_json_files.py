"""JSON that is damaged or a stranger's."""

import pytest

from st_paragram.core.damage import one_line, short
from st_paragram.core.json_files import MOST_DEPTH, parse_json, read_json


def test_values_come_back(tmp_path):
    (tmp_path / "x.json").write_text('{"a": [1, 2.5, null], "é": NaN}', encoding="utf-8")
    assert read_json(tmp_path / "x.json")["a"] == [1, 2.5, None]
    assert parse_json(b"[" * (MOST_DEPTH - 1) + b"1" + b"]" * (MOST_DEPTH - 1))


@pytest.mark.parametrize("levels", [MOST_DEPTH + 1, 900, 100_000])
@pytest.mark.parametrize(("begin", "end"), [("[", "]"), ('{"a":', "}")])
def test_what_is_nested_too_deeply_is_refused_in_a_line(levels, begin, end):
    with pytest.raises(ValueError, match="nested more than 64 levels deep"):
        parse_json((begin * levels + "1" + end * levels).encode())


@pytest.mark.parametrize("data", [b"", b"{", b"\xff\xfe", b"9" * 5000, b"\xef\xbb\xbf1", b'{"a" 1}'])
def test_what_is_no_json_is_refused(data):
    with pytest.raises(ValueError):
        parse_json(data)


def test_large_files_are_not_read(tmp_path):
    (tmp_path / "x.json").write_text("[1, 2, 3]")
    with pytest.raises(ValueError, match="9 bytes, more than 8"):
        read_json(tmp_path / "x.json", most_bytes=8)


def test_reasons_fit_a_line_that_a_terminal_can_show():
    assert one_line(ValueError("a\nb  c \x1b[31m")) == "a b c \\x1b[31m"
    assert one_line(KeyError()) == "KeyError" and len(one_line(ValueError("x" * 9999))) == 200
    assert short("a\n") == r"'a\n'" and short(10**5000) == "<int>" and len(short([1] * 999)) == 80
