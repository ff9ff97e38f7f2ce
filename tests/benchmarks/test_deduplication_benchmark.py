"""The benchmark of removing duplicates, on a small text."""

import sys

import pytest
from harness.quality.planted_duplicates import HEAD, KINDS, jaccard, measure, plant

from st_paragram.core.sample import sample_pairs
from st_paragram.errors import TextError


def test_similarity_of_words():
    assert jaccard("One two three.", "one TWO four") == 2 / 5
    assert jaccard("", "") == 1


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_planted_lines_are_found(tmp_path):
    lines = {one: None for one, _ in sample_pairs("es", 900) if one.count(" ") >= 4}
    (tmp_path / "text").write_text("".join(f"{line}\n" for line in lines))
    count = len(lines)
    text = plant(tmp_path / "text", tmp_path / "planted", count)
    assert sorted(set(text.kinds)) == ["", *sorted(KINDS)] and text.kinds.count("") == count - round(0.4 * count)
    rows = [dict(zip(HEAD, row, strict=True)) for row in measure(text, tmp_path, ["exact"], 1)]
    assert [row["kind"] for row in rows] == list(KINDS) and rows[0]["wrong"] == "0"
    assert rows[0]["recall, %"] == rows[1]["recall, %"] == "100.0"
    assert float(rows[2]["recall, %"]) < 50
    with pytest.raises(TextError, match=f"{count} distinct lines of 5 words, but {6 * count // 10 * 10} are needed"):
        plant(tmp_path / "text", tmp_path / "planted", 10 * (6 * count // 10 * 10) // 6)
