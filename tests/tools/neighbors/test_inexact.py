"""How hard an inexact index must look: recall against a plain search, on rows whose clusters are
known.
"""

import re

import numpy as np
import pytest

from st_paragram.errors import MiningError, SettingsError
from st_paragram.tools.neighbors import inexact
from st_paragram.tools.neighbors.inexact import (
    Index,
    choose_index,
    find_effort,
    trained_index,
    write_index,
)
from st_paragram.tools.neighbors.settings import SearchSettings, VectorType
from st_paragram.tools.neighbors.vectors import Rows, pack

faiss = pytest.importorskip("faiss")


def stored(vectors):
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return Rows([pack(units, VectorType.FLOAT16)])


@pytest.fixture
def corpus(rng):
    return stored(rng.normal(size=(600, 8)))


@pytest.fixture
def queries(rng):
    return stored(rng.normal(size=(300, 8)))


def plain_recalls(queries, corpus, index, effort, k, own):
    """Shares of the nearest row and of the k nearest that lie in the lists looked at, query by
    query.
    """
    index.set_effort(effort)
    nearest, all_k = 0, 0
    for row in range(len(queries)):
        query = queries.rows(row, row + 1)
        cosines = (corpus.rows(0, len(corpus)).astype(float) @ query[0]).tolist()
        order = [other for other in np.argsort(cosines)[::-1] if not (own and other == row)][:k]
        found = set(index.candidates(query, len(corpus))[0].tolist())
        nearest += order[0] in found
        all_k += sum(other in found for other in order)
    return nearest / len(queries), all_k / k / len(queries)


@pytest.mark.parametrize("own", [False, True])
def test_recalls_are_those_of_a_plain_search(tmp_path, corpus, queries, own):
    queries = corpus if own else queries
    index = Index("IVF32,Flat", corpus, tmp_path, SearchSettings())
    found = find_effort(queries, index, 5, SearchSettings(recall=0.8), own)
    assert list(found.tried)[-1] == str(found.effort) and found.tried[str(found.effort)][0] >= 0.8
    for effort, recalls in found.tried.items():
        expected = plain_recalls(queries, corpus, index, int(effort), 5, own)
        # places that are not found are filled by others
        assert recalls == pytest.approx(expected, abs=0.01)
    tried = list(found.tried.values())
    assert (
        all(one[0] < 0.8 for one in tried[:-1]) and (found.recall, found.recall_at_k) == tried[-1]
    )
    assert found.recall > found.recall_at_k and found.k == 5


def test_recall_that_is_not_reached_is_a_warning(tmp_path, corpus, queries, caplog):
    index = Index("IVF8,PQ2x4", corpus, tmp_path, SearchSettings())
    effort = find_effort(queries, index, 1, SearchSettings(recall=0.99))
    share = f"{100 * effort.recall:.1f} % of a sample"
    assert effort.recall < 0.99 == effort.wanted and f"{share} (99.0 % wanted)" in str(effort)
    assert (
        f"index IVF8,PQ2x4 finds the nearest neighbor of only {share} at its maximum effort"
        in caplog.text
    )
    assert "99.0 % are wanted (--recall); --index Flat finds all" in caplog.text
    caplog.clear()
    flat = Index("Flat", corpus, tmp_path / "flat", SearchSettings())
    assert (
        "wanted" not in str(find_effort(queries, flat, 1, SearchSettings(recall=0.99)))
        and not caplog.text
    )


@pytest.mark.parametrize(
    ("factory", "message"),
    [
        ("garbage", "could not parse index string garbage"),
        ("PCA300,Flat", "PCA matrix cannot output 300 dimensions from 8"),
        ("IVF16,PQ7", "should be a multiple of the number of subquantizers"),
        ("OPQ7,Flat", "should be a multiple of the number of subquantizers"),
        (
            "PQ2x10",
            (
                r"Number of training points \(600\) should be at least as large as number of"
                r" clusters \(1024\)"
            ),
        ),
        (
            "IVF65536,Flat",
            "has 65,536 lists, but there are 600 sentences; give fewer lists, or Flat",
        ),
        ("IDMap,Flat", "add does not make sense with IndexIDMap"),
        ("LSH", "cannot be built from 600 sentences: "),
        ("HNSW99999999", "bad_alloc"),
        ("IVF99999999999,Flat", "cannot be built from 600 sentences: "),
    ],
)
def test_whatever_faiss_refuses_is_one_line(tmp_path, corpus, factory, message):
    with pytest.raises(SettingsError, match=message) as caught:
        Index(factory, corpus, tmp_path, SearchSettings(index=factory))
    said = str(caught.value)
    assert (
        said.startswith(f"index '{factory}' ") and "\n" not in said and said.endswith(", or Flat")
    )
    assert "list" not in said or "IVF" in factory


@pytest.mark.parametrize(
    "factory",
    ["", "IVF0,Flat", "HNSW0", "HNSW1", "NSG8", "PCA0,Flat", "PQ8x0", "(((", "a b", "IVF-5"],
)
def test_strings_that_would_end_the_process_are_refused(factory):
    with pytest.raises(SettingsError, match=f"index is {re.escape(repr(factory))}; give "):
        SearchSettings(index=factory)


def test_it_ends_where_nothing_more_can_be_found(tmp_path, corpus, queries):
    # codes so coarse that they lose rows
    index = Index("IVF8,PQ2x4", corpus, tmp_path, SearchSettings())
    found = find_effort(queries, index, 1, SearchSettings(recall=1.0))
    assert list(found.tried) == ["4", "6", "8"] and found.effort == 8 and found.recall < 1


@pytest.mark.parametrize("factory", ["Flat", "HNSW8", "IVF4,Flat"])
def test_an_index_in_parts_is_one_corpus_and_stays_in_its_folder(
    tmp_path, corpus, queries, factory
):
    settings = SearchSettings(memory=1 << 30)
    whole = Index(factory, corpus, tmp_path / "whole", settings)
    object.__setattr__(settings, "memory", 2 * 32 * 250)  # of 32 bytes a row
    parts = Index(factory, corpus, tmp_path / "parts", settings)
    assert [begin for begin, _ in parts.parts] == [0, 200, 400] and len(whole.parts) == 1
    for each in (whole, parts):
        each.set_effort(64)
    asked = queries.rows(0, 300)
    found, other = whole.search(asked, 5), parts.search(asked, 5)
    assert (found.indices == other.indices).mean() > (0.99 if factory == "Flat" else 0.9)
    (tmp_path / "parts" / "000000200.faiss").write_bytes(b"none" + b"\0" * 40)
    with pytest.raises(MiningError, match=r"000000200\.faiss: not an index that faiss can read"):
        Index(factory, corpus, tmp_path / "parts", settings)  # not built again


def test_places_that_are_not_filled_have_cosine_minus_one(tmp_path):
    corpus = stored(np.eye(8))
    index = Index("IVF4,Flat", corpus, tmp_path, SearchSettings())
    index.set_effort(1)
    found = index.search(corpus.rows(0, 8), 5)
    assert (
        (found.similarities[:, 0] == 1).all()
        and (found.similarities == -1).any()
        and (found.indices >= 0).all()
    )


def test_which_index_is_chosen():
    assert choose_index("auto", 10_000, 10_000, 300) is None
    assert choose_index("auto", 1_000_000, 1_000_000, 300) == "IVF2048,PQ75x4fs"
    assert choose_index("auto", 1_000_000, 1_000_000, 1024) == "IVF2048,PQ256x4fs"
    assert choose_index("HNSW32", 10, 10, 300) == "HNSW32"


def test_texts_that_share_a_trained_index_find_their_lists_once(tmp_path, rng, monkeypatch):
    monkeypatch.setattr(inexact, "_STORED_LISTS", 0.5)
    texts = [stored(rng.normal(size=(count, 16))) for count in (700, 500)]
    factory = "IVF16,PQ8x4fs"
    trained = tmp_path / "trained.faiss"
    write_index(trained_index(factory, texts, seed=0), trained)
    settings = SearchSettings(memory=1 << 30)
    object.__setattr__(settings, "memory", 2 * 48 * 300)  # of 48 bytes a row
    source = Index(factory, texts[0], tmp_path / "source", settings, trained)
    target = Index(factory, texts[1], tmp_path / "target", settings, trained)
    assert source.lists.shape == (700, 8) and len(target.parts) == 2

    plain = faiss.read_index(str(trained))
    plain.add(texts[1].rows(250, 500))
    write_index(plain, tmp_path / "plain.faiss")
    added = (tmp_path / "plain.faiss").read_bytes()
    assert (tmp_path / "target" / "000000250.faiss").read_bytes() == added

    queries = texts[0].rows(0, 700)
    for effort in (4, 8, 16):  # more than the stored lists, too
        target.set_effort(effort)
        found = target.search(queries, 3, source.lists)
        expected = target.search(queries, 3)
        assert (found.indices == expected.indices).all()
    target.set_effort(4)
    others = target.search(queries, 3, source.lists[::-1])
    assert (others.indices != target.search(queries, 3).indices).any()


def test_an_index_of_another_kind_finds_lists_in_each_search(tmp_path, corpus, queries):
    trained = tmp_path / "trained.faiss"
    for factory in ("IVF8,Flat", "IVF8,PQ4x4fsr", "HNSW8"):
        write_index(trained_index(factory, [corpus, queries], seed=0), trained)
        index = Index(factory, corpus, tmp_path / factory, SearchSettings(), trained)
        index.set_effort(8)
        assert index.lists is None
        assert (index.search(corpus.rows(0, 600), 1).indices[:, 0] == np.arange(600)).mean() > 0.9


def test_a_shared_index_is_trained_on_each_text(queries):
    far = stored(np.tile(np.eye(8)[:1], (300, 1)))
    index = trained_index("IVF2,Flat", [far, queries], seed=0)
    nearness, _ = index.quantizer.search(far.rows(0, 1), 1)
    assert nearness[0, 0] > 0.99
    with pytest.raises(SettingsError, match="has 400 lists, but there are 300 sentences"):
        trained_index("IVF400,Flat", [stored(np.eye(8)[[0] * 500]), queries], seed=0)
