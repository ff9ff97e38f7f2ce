import lzma
import random

import numpy as np
import pytest

from st_paragram.errors import EvaluationError, TextError
from st_paragram.tools.bitext_mining.threshold import best_threshold
from st_paragram.tools.evaluation.own import translations, vectors
from st_paragram.tools.evaluation.own.results import Sample
from st_paragram.tools.evaluation.own.translations import read_own_translations, score_translations
from st_paragram.tools.neighbors.exact import nearest_both_ways


class Stub:
    """A model of two-dimensional embeddings: by a table of angles, or drawn by the text."""

    def __init__(self, angles=None, size=2):
        self.angles, self.size = angles, size

    def encode(self, texts, **_):
        if self.angles is not None:
            return np.array([[np.cos(self.angles[text]), np.sin(self.angles[text])] for text in texts], np.float32)
        drawn = np.array([np.random.default_rng(list(text.lower().encode())).normal(size=self.size) for text in texts])
        return (drawn / np.linalg.norm(drawn, axis=1, keepdims=True)).astype(np.float32)


@pytest.fixture(autouse=True)
def _no_torch(monkeypatch):
    monkeypatch.setattr(vectors, "batch_size", lambda model: 32)


def written(folder, rows, name="pairs.tsv"):
    path = folder / name
    path.write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_the_hand_computed_case(tmp_path):
    # Second texts lie at 0, 1 and 2; the first ones at 0.1, 1.6 and 1.7: b looks nearest to C.
    angles = {"a": 0.1, "b": 1.6, "c": 1.7, "A": 0.0, "B": 1.0, "C": 2.0}
    file = read_own_translations(written(tmp_path, [("a", "A"), ("b", "B"), ("c", "C")]))
    retrieved, mined = score_translations(Stub(angles), file)
    assert retrieved.tolist() == [[1, 1], [0, 1], [1, 1]]
    assert mined is None and "no mining" in file.notes[0]
    sums = np.array([[2.0, 3.0, 3.0], [2.0, 3.0, 3.0]])
    shares = translations._shares(sums)
    assert [round(of.value, 4) for of in shares.values()] == [0.6667, 1.0, 0.8333, 0.1667]


def test_equal_texts_are_the_same_answer(tmp_path):
    # "Ja" and "ja  " are one text; x and y have the translation A, and A has two right answers; a pair occurs again.
    rows = [("x", "A"), ("y", "a"), ("z", "Ja"), ("z", "ja "), ("w", "Cafe\u0301"), ("w", "CAF\u00c9")]
    file = read_own_translations(written(tmp_path, rows))
    assert (file.first, file.second, file.sizes) == (["x", "y", "z", "w"], ["A", "Ja", "Cafe\u0301"], (4, 3))
    assert file.pairs.tolist() == [[0, 0], [1, 0], [2, 1], [3, 2]]
    assert file.notes[0].endswith("2 of 6 pairs occur again and count once")
    angles = {"x": 0.3, "y": 0.1, "z": 1.0, "w": 2.0, "A": 0.0, "Ja": 1.0, "Cafe\u0301": 2.0}
    assert score_translations(Stub(angles), file)[0].min() == 1  # A finds y, and is right for x, too


def test_a_perfect_model_mines_everything_but_what_lost_its_partner(tmp_path):
    rows = [(f"sentence {n}", f"SENTENCE {n}") for n in range(90)]
    file = read_own_translations(written(tmp_path, rows))
    mining = file.mining
    assert (len(mining.first), len(mining.second), (mining.partner >= 0).sum()) == (60, 60, 30)
    assert (
        np.bincount(mining.half[mining.partner >= 0]).tolist()
        == [15, 15]
        == np.bincount(mining.half[mining.partner < 0]).tolist()
    )
    _, counts = score_translations(Stub(size=16), file)
    right, extracted, gold = counts.sum(axis=0)
    assert (right, gold) == (30, 30) and extracted <= 32
    figures = translations._extraction(np.stack([counts.sum(axis=0)] * 2))
    assert figures[translations.F1] == figures[translations.F1] and isinstance(figures[translations.F1], Sample)
    assert figures[translations.F1].value == 2 * right / (extracted + gold)


def test_the_threshold_of_a_half_is_chosen_on_the_other(tmp_path, monkeypatch):
    chosen = []

    def watched(scores, right, gold):
        chosen.append((len(scores), gold))
        return best_threshold(scores, right, gold)

    monkeypatch.setattr(translations, "best_threshold", watched)
    file = read_own_translations(written(tmp_path, [(f"a{n}", f"b{n}") for n in range(60)]))
    _, counts = score_translations(Stub(size=4), file)
    assert [gold for _, gold in chosen] == [10, 10] and counts[:, 2].sum() == 20


def test_the_order_of_rows_does_not_matter(tmp_path):
    rows = [(f"sentence {n}", f"SENTENCE {n}" if n % 4 else f"other {n}") for n in range(80)]
    mixed = random.Random(1).sample(rows, len(rows))
    sums = [
        [part.sum(axis=0).tolist() for part in score_translations(Stub(size=8), read_own_translations(path))]
        for path in (written(tmp_path, rows), written(tmp_path, mixed, "mixed.tsv"))
    ]
    assert sums[0] == sums[1]


def test_distractors_leave_all_pairs_whole(tmp_path):
    rows = [(f"sentence {n}", f"SENTENCE {n}") for n in range(40)]
    more = [tmp_path / "one.txt", tmp_path / "two.txt"]
    more[0].write_text("unknown\n\nsentence 3\nunknown\n")
    more[1].write_bytes(b"elsewhere\nnowhere\n")
    file = read_own_translations(written(tmp_path, rows), more)
    assert (file.first[40:], file.second[40:], file.sizes) == (["unknown"], ["elsewhere", "nowhere"], (40, 40))
    assert ((file.mining.partner >= 0).sum(), len(file.mining.first), len(file.mining.second)) == (40, 41, 42)
    retrieved, _ = score_translations(Stub(size=16), file)
    assert retrieved.shape == (40, 2)


def test_blocks_find_what_a_whole_search_finds(monkeypatch):
    monkeypatch.setattr(vectors, "_BLOCK", 7)
    first, second = (Stub(size=5).encode([f"{side}{n % 30}" for n in range(40)]) for side in "ab")
    for k in (1, 4, 50):
        blocks, whole = vectors.nearest_of_each(first, second, k, "x"), nearest_both_ways(first, second, k)
        for mine, other in zip(blocks, whole, strict=True):
            np.testing.assert_array_equal(mine.indices, other.indices)
            np.testing.assert_array_equal(mine.similarities, other.similarities)


def test_embeddings_come_in_parts_and_must_be_finite(monkeypatch):
    monkeypatch.setattr(vectors, "_TEXTS", 3)
    texts = [f"t{n}" for n in range(8)]
    np.testing.assert_array_equal(vectors.embedded(Stub(), texts, "x"), Stub().encode(texts))
    angles = dict.fromkeys(texts, 0.0) | {"t4": np.nan}
    with pytest.raises(EvaluationError, match=r"x: the embedding of text 5 is not finite"):
        vectors.embedded(Stub(angles), texts, "x")


def test_a_full_disk_is_one_line(monkeypatch):
    class Full:
        def __enter__(self):
            raise OSError(28, "No space left on device")

        def __exit__(self, *_):
            pass

    monkeypatch.setattr(vectors, "TemporaryFile", Full)
    with pytest.raises(EvaluationError, match="No space left on device; let TMPDIR name"):
        vectors.embedded(Stub(), ["a"], "x")


def test_compressed_files_and_tables_are_read(tmp_path):
    (tmp_path / "p.tsv.xz").write_bytes(lzma.compress(b"a\tA\nb\tB\n"))
    assert len(read_own_translations(tmp_path / "p.tsv.xz").pairs) == 2
    (tmp_path / "p.csv").write_text("id,en,es\n1,a,A\n2,b,B\n")
    assert read_own_translations(tmp_path / "p.csv", columns=("es", "en")).first == ["A", "B"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a\tA\nb\t \n", r"row 2: an empty text"),
        ("a\tA\nb\n", r"row 2 has 1 column"),
        ("a\tA\nA\ta\nb\n", r"row 3 has 1 column"),
        ("a\tA\nb\tA\n", r"2 different pairs of 2 and 1 different texts; give at least two"),
        ("a\tA\na\tA\n", r"1 different pair of 1 and 1 different texts"),
        ("", "empty"),
    ],
)
def test_bad_files_are_refused(tmp_path, text, message):
    (tmp_path / "bad.tsv").write_text(text)
    with pytest.raises(TextError, match=rf"bad\.tsv: .*{message}|bad\.tsv: {message}"):
        read_own_translations(tmp_path / "bad.tsv")
