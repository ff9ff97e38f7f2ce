"""One error for damaged files."""

import pytest

from st_paragram import Encoder
from st_paragram.errors import ParagramError, SettingsError, StoreError, refused


def test_what_a_damaged_file_raises_becomes_one_line():
    with (
        pytest.raises(StoreError, match=r"^a\.h5: damaged \(two lines\); make it again$"),
        refused(StoreError, "a.h5", "damaged", "make it again"),
    ):
        raise ValueError("two\nlines")


@pytest.mark.parametrize(
    "error",
    [
        ParagramError("of our own"),
        SettingsError("unknown precision 'int5'; choose int8"),
        KeyboardInterrupt(),
    ],
)
def test_other_errors_pass(error):
    with (
        pytest.raises(type(error)) as passed,
        refused(StoreError, "a.h5", "damaged", "make it again"),
    ):
        raise error
    assert passed.value is error


def test_an_error_of_this_package_is_refused_if_it_is_named():
    with (
        pytest.raises(StoreError, match=r"^a\.h5: damaged \(no such id\); make it again$"),
        refused(StoreError, "a.h5", "damaged", "make it again", SettingsError),
    ):
        raise SettingsError("no such id")


def test_wrong_arguments_are_also_a_value_error():
    with pytest.raises(ValueError, match="unknown precision 'int5'"):
        Encoder("p-sp-mini").encode(["one"], precision="int5")
