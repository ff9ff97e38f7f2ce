"""The distinct sentences of a text against a dict of them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_paragram.errors import MiningError
from st_paragram.tools.neighbors.sentences import Sentences, write_sentences


@given(st.lists(st.text("ab1_ \t\u2028é\r", max_size=5), max_size=40), st.booleans())
def test_sentences_against_a_dict(tmp_path_factory, lines, with_ids):
    folder = tmp_path_factory.mktemp("s") / "out"
    given_lines = (
        [f"id{number}\t{line}" for number, line in enumerate(lines)] if with_ids else lines
    )
    texts = [" ".join(line.split()) for line in lines]
    expected = list(dict.fromkeys(text for text in texts if sum(map(str.isalnum, text)) >= 2))
    if not expected:
        with pytest.raises(MiningError, match="x: no sentences in"):
            write_sentences(given_lines, "x", folder, with_ids)
        return
    write_sentences(given_lines, "x", folder, with_ids)
    sentences = Sentences(folder)
    counts = sentences.counts
    assert len(sentences) == len(expected) and sentences.texts(slice(None)) == expected
    assert (
        counts.lines
        == len(lines)
        == counts.sentences + counts.blank + counts.near_empty + counts.repeated
    )
    if with_ids:
        assert sentences.ids_or_texts(slice(None)) == [
            f"id{texts.index(text)}" for text in expected
        ]


def test_frequent_sentences_are_left_out(tmp_path):
    write_sentences(
        ["menu", "one line", "menu", "another", "menu ", "another"],
        "x",
        tmp_path / "out",
        most_repeats=2,
    )
    sentences = Sentences(tmp_path / "out")
    assert sentences.texts(slice(None)) == ["one line", "another"]
    assert (
        sentences.counts.boilerplate,
        sentences.counts.repeated,
        sentences.counts.most_repeated,
    ) == (3, 1, 3)


def test_a_line_without_an_id_is_refused(tmp_path):
    with pytest.raises(
        MiningError, match=r"x: line 2 has no tab; with ids, lines are `id TAB sentence`"
    ):
        write_sentences(["a-1\tba ce", "no tab here"], "x", tmp_path / "out", with_ids=True)
