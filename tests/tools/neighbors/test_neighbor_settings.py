import pytest

from st_paragram.errors import SettingsError
from st_paragram.tools.neighbors.settings import SearchSettings, Size, parse_memory


@pytest.mark.parametrize(
    ("size", "shown"), [(4 << 30, "4G"), (512 << 20, "512M"), (1000, "1000"), (3 << 29, "1536M")]
)
def test_sizes_are_shown_as_they_are_given(size, shown):
    assert str(Size(size)) == shown and parse_memory(shown) == size == parse_memory(size)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"recall": 1.5}, "recall is 1.5; it must be less than or equal to 1"),
        ({"memory": "255M"}, "memory is 267,386,880 bytes; give at least 256M"),
        ({"memory": "4 apples"}, "memory is '4 apples'; give a size like 4G or 512M"),
        ({"index": "IVF 4"}, "index is 'IVF 4'; give auto or a faiss factory string"),
    ],
)
def test_settings_are_checked(change, message):
    with pytest.raises(SettingsError) as caught:
        SearchSettings(**change)
    assert message in str(caught.value)
