"""Groups of paraphrases: those of sentence-transformers, and the command."""

from __future__ import annotations

import numpy as np
import pytest

from st_paragram import Encoder
from st_paragram.cli.main import main
from st_paragram.tools.bitext_mining import groups as module
from st_paragram.tools.bitext_mining.groups import find_groups
from st_paragram.tools.neighbors.exact import nearest_neighbors
from st_paragram.tools.neighbors.vectors import UnitRows


def groups_of(vectors, k, threshold, min_size):
    neighbors = nearest_neighbors(vectors, vectors, k + 1).without_self(np.arange(len(vectors)))
    groups = find_groups(neighbors, UnitRows(vectors), threshold, min_size)
    return [group.tolist() for group in groups]


def test_groups_by_hand():
    """Angles in degrees: 0 and 20 are near 10, and 40 is near 30 and 50; 90 is alone."""
    angles = np.radians([0, 10, 20, 30, 50, 40, 90])
    vectors = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    threshold = np.cos(np.radians(10.5))
    # of 10, 20, 30 and 40, with three rows each, 10 is the first; 20 is no center then, and 30
    # keeps only 40, which becomes the center of 30 and 50
    for k in (1, 2, 6):
        groups = groups_of(vectors, k, threshold, 2)
        assert [sorted(group) for group in groups] == [[0, 1, 2], [3, 5]]
        assert [group[0] for group in groups] == [1, 3]
        assert [sorted(group) for group in groups_of(vectors, k, threshold, 3)] == [
            [0, 1, 2],
            [3, 4, 5],
        ]


@pytest.mark.parametrize("seed", range(5))
def test_the_groups_are_those_of_sentence_transformers(seed, monkeypatch):
    util = pytest.importorskip("sentence_transformers.util")
    monkeypatch.setattr(module, "_QUERIES", 7)
    rng = np.random.default_rng(seed)
    centers = rng.normal(size=(8, 12))[rng.integers(0, 8, 200)]
    vectors = (centers + rng.normal(size=(200, 12)) * 0.5).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    for threshold, min_size in ((0.6, 2), (0.75, 5), (0.9, 3), (0.2, 10)):
        wanted = util.community_detection(vectors, threshold, min_size)
        assert wanted
        for k in (1, 4, 15):
            assert groups_of(vectors, k, threshold, min_size) == wanted


TEXTS = [
    "where is the station?",
    "we like cheese",
    "where is the train station?",
    "the cat sleeps",
    "the station, where is it?",
    "we love cheese",
]


def run(folder, *words):
    command = ["mine", "--paraphrase", str(folder / "a.txt"), "--output", str(folder / "g.tsv")]
    return main([*command, "--model", "p-sp-mini", *words])


@pytest.mark.parametrize("ids", [False, True])
def test_the_command_writes_groups(tmp_path, capsys, ids):
    lines = [f"q{number}\t{text}" for number, text in enumerate(TEXTS)] if ids else TEXTS
    (tmp_path / "a.txt").write_text("\n".join([lines[0], *lines, ""]))
    vectors = Encoder("p-sp-mini").encode(TEXTS, normalize_embeddings=True)
    groups = groups_of(vectors, 5, 0.7, 2)
    assert [set(group) for group in groups] == [{0, 2, 4}, {1, 5}]
    options = ["--groups", "--threshold", "0.7", "--neighbors", "2", *["--ids"] * ids]
    assert run(tmp_path, *options) == 0
    assert "g.tsv: 2 groups\n" in capsys.readouterr().err
    rows = [line.split("\t") for line in (tmp_path / "g.tsv").read_text().splitlines()]
    assert rows == [
        [str(number), f"q{row}" if ids else TEXTS[row]]
        for number, group in enumerate(groups, 1)
        for row in group
    ]
    assert run(tmp_path, *options, "--min-size", "4", "--overwrite") == 0
    assert (tmp_path / "g.tsv").read_text() == ""


def test_groups_need_one_text_cosines_and_a_threshold(tmp_path, capsys):
    path = tmp_path / "a.txt"
    path.write_text("\n".join(TEXTS))
    for options in ([], ["--threshold", "0.7", "--margin", "ratio"]):
        assert run(tmp_path, "--groups", *options) == 1
        assert "give one text (--paraphrase), the margin absolute" in capsys.readouterr().err
    command = ["mine", "--source", str(path), "--target", str(path), "--groups", "--output"]
    assert main([*command, str(tmp_path / "g.tsv"), "--margin", "absolute"]) == 1
    assert "give one text (--paraphrase), the margin absolute" in capsys.readouterr().err
    memory = ["--output", str(tmp_path / "g.tmx"), "--pair", "en", "en"]
    assert run(tmp_path, "--groups", "--threshold", "0.7", *memory) == 1
    assert "g.tmx: TMX has pairs instead of groups" in capsys.readouterr().err
