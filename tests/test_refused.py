"""One error for damaged files, and records whose types are checked."""

from dataclasses import dataclass

import pytest

from st_paragram.core.files import read_record
from st_paragram.errors import ParagramError, StoreError, refused


@dataclass(frozen=True)
class Part:
    seconds: float


@dataclass(frozen=True)
class Whole:
    name: str
    parts: dict[str, Part]


def test_what_a_damaged_file_raises_becomes_one_line():
    with (
        pytest.raises(StoreError, match=r"^a\.h5: damaged \(two lines\); make it again$") as error,
        refused(StoreError, "a.h5", "damaged", "make it again"),
    ):
        raise ValueError("two\nlines")
    assert isinstance(error.value.__cause__, ValueError)


@pytest.mark.parametrize("error", [ParagramError("of our own"), KeyboardInterrupt(), MemoryError()])
def test_other_errors_pass(error):
    with pytest.raises(type(error)) as passed, refused(StoreError, "a.h5", "damaged", "make it again"):
        raise error
    assert passed.value is error
    if isinstance(error, MemoryError):
        with pytest.raises(StoreError), refused(StoreError, "a.h5", "damaged", "make it again", MemoryError):
            raise error


def test_a_record_is_read_with_its_types(tmp_path):
    (path := tmp_path / "a.json").write_text('{"name": "x", "parts": {"one": {"seconds": 2}}}')
    assert read_record(path, Whole) == Whole("x", {"one": Part(2.0)})


@pytest.mark.parametrize(
    ("text", "says"),
    [('{"name": "x", "parts": {"one": {"seconds": "2"}}}', "parts.one.seconds: Input should be a valid number"),
     ('{"name": 5, "parts": {}}', "name: Input should be a valid string"), ('{"name": "x"}', "parts: Field required"),
     ("[", "Invalid JSON"), ("\udcff", "Invalid JSON"), ("[" * 100_000, "Invalid JSON"), ("[]", "object")],
)  # fmt: skip
def test_a_record_that_is_none_is_refused(tmp_path, text, says):
    (path := tmp_path / "a.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(ValueError, match=says):
        read_record(path, Whole)
