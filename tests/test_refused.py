"""One error for damaged files."""

import pytest

from st_paragram.errors import ParagramError, StoreError, refused


def test_what_a_damaged_file_raises_becomes_one_line():
    with (
        pytest.raises(StoreError, match=r"^a\.h5: damaged \(two lines\); make it again$"),
        refused(StoreError, "a.h5", "damaged", "make it again"),
    ):
        raise ValueError("two\nlines")


@pytest.mark.parametrize("error", [ParagramError("of our own"), KeyboardInterrupt()])
def test_other_errors_pass(error):
    with (
        pytest.raises(type(error)) as passed,
        refused(StoreError, "a.h5", "damaged", "make it again"),
    ):
        raise error
    assert passed.value is error
