import argparse

import pytest

from st_paragram.core.settings import add_setting_options, given
from st_paragram.errors import SettingsError
from st_paragram.tools.bitext_mining.margin import Margin
from st_paragram.tools.bitext_mining.settings import MiningSettings
from st_paragram.tools.neighbors.settings import SearchSettings, Size, VectorType, parse_memory


@pytest.mark.parametrize(("size", "shown"), [(4 << 30, "4G"), (512 << 20, "512M"), (1000, "1000"), (3 << 29, "1536M")])
def test_sizes_are_shown_as_they_are_given(size, shown):
    assert str(Size(size)) == shown and parse_memory(shown) == size == parse_memory(size)


def test_settings_of_a_command_line():
    parser = argparse.ArgumentParser()
    add_setting_options(parser, MiningSettings)
    line = "--margin distance --neighbors 7 --precision int8 --memory 512M --max-repeats 3 --ids --index HNSW32"
    line += " --threshold 0.1"
    settings = MiningSettings(**given(parser.parse_args(line.split()), MiningSettings))
    assert (settings.margin, settings.neighbors, settings.vector_type) == (Margin.DISTANCE, 7, VectorType.INT8)
    assert (settings.memory, settings.most_repeats, settings.with_ids) == (512 << 20, 3, True)
    assert (settings.index, settings.threshold, settings.seed) == ("HNSW32", 0.1, 0)
    assert MiningSettings(**given(parser.parse_args([]), MiningSettings)) == MiningSettings()
    assert given(parser.parse_args(["--most-repeats", "3"]), MiningSettings) == {"most_repeats": 3}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"recall": 1.5}, "recall is 1.5; it must be less than or equal to 1"),
        ({"memory": "255M"}, "memory is 267,386,880 bytes; give at least 256M"),
        ({"memory": "4 apples"}, "memory is '4 apples'; give a size like 4G or 512M"),
        ({"vector_type": "float8"}, "vector_type is 'float8'; it must be 'float16' or 'int8'"),
        ({"most_repeats": 0}, "most_repeats is 0; it must be greater than or equal to 1"),
        ({"index": "IVF 4"}, "index is 'IVF 4'; give auto or a faiss factory string"),
        ({"seed": -1}, "seed is -1"),
    ],
)
def test_settings_are_checked(change, message):
    with pytest.raises(SettingsError) as caught:
        SearchSettings(**change)
    assert message in str(caught.value)
