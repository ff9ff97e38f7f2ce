"""Margin scores of given pairs: their cosines compared with those of their sentences' neighbors.

The margin scores of mining (see `margin`) also separate good pairs from bad pairs in an existing
bitext. The neighbors of a first sentence are its k nearest sentences in a text of the second
language, the target background, and vice versa. A background may be the other side of the pairs;
then the partner of a sentence is one of its possible neighbors, as in mining.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np

from st_paragram.core.files import STDIN
from st_paragram.core.text.parallel import TextSource, read_pairs
from st_paragram.core.text.tables import PLAIN_ONLY, check_plain, read_texts
from st_paragram.errors import SettingsError
from st_paragram.tools.bitext_mining.margin import Margin, Scores, margin_scores
from st_paragram.tools.bitext_mining.settings import MarginSettings
from st_paragram.tools.neighbors.exact import exact
from st_paragram.tools.neighbors.inexact import Index, choose_index, find_effort
from st_paragram.tools.neighbors.results import Vectors
from st_paragram.tools.neighbors.sentences import Sentences, usable_neighbors, write_sentences
from st_paragram.tools.neighbors.vectors import Rows, embed_sentences

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Background:
    """A scorer of pairs for `score_files.score_pairs` and `score_files.score_file`."""

    source: Rows | Index  # sentences in the first language
    target: Rows | Index  # sentences in the second language
    margin: Margin  # RATIO or DISTANCE
    k: int  # neighbors

    @property
    def no_similarity(self) -> float:
        """The score of a pair without a similarity, which no threshold keeps."""
        return -1.0 if self.margin is Margin.DISTANCE else 0.0

    def __call__(self, first: Vectors, second: Vectors) -> Scores:
        """Score pairs of unit vectors, float32 (n, D) each, to float64 (n,)."""
        cosines = np.einsum("nd,nd->n", first, second, dtype=np.float64)
        first_means = self._means(self.target, first)
        second_means = self._means(self.source, second)
        return margin_scores(cosines, first_means, second_means, self.margin)

    def _means(self, corpus: Rows | Index, vectors: Vectors) -> Scores:
        """Return the mean cosine of each row with its k nearest neighbors."""
        if isinstance(corpus, Index):
            return corpus.search(vectors, self.k).means
        return exact(vectors, corpus, self.k).means


def background_of_texts(
    source: str, target: str, model: Path, settings: MarginSettings, work: Path
) -> Background:
    """Make a background from two texts; for paraphrases, give the same text twice.

    The folder `work` gets their vectors, and must exist while the background is used.
    """
    if source == target == STDIN:
        raise SettingsError("both backgrounds are standard input; give a path for at least one")
    for name in (source, target):
        check_plain(name, PLAIN_ONLY)
    texts = {name: read_texts(name, None) for name in (source, target)}
    return _background(texts, model, settings, work)


def background_of_pairs(
    pairs: TextSource,
    model: Path,
    settings: MarginSettings,
    work: Path,
    others: Sequence[tuple[str, str]] = (),
) -> Background:
    """Make a background from the two sides of the pairs, which are read twice more.

    If `others` will be scored, they are part of it: their partners must be among the neighbors.
    """
    if not all(Path(path).is_file() for path in pairs.paths):
        raise SettingsError(
            f"{pairs.name}: cannot be read twice, to serve as its own background; give a file"
        )

    def side(number: int) -> Iterator[str]:
        return (pair[number] for pair in chain(read_pairs(pairs), others))

    texts = {f"{pairs.name}, first side": side(0), f"{pairs.name}, second side": side(1)}
    return _background(texts, model, settings, work)


def _background(
    texts: Mapping[str, Iterable[str]], model: Path, settings: MarginSettings, work: Path
) -> Background:
    names = list(texts)
    vectors = []
    for number, (name, lines) in enumerate(texts.items()):
        place = work / f"sentences-{number}"
        write_sentences(lines, name, place, most_repeats=settings.most_repeats)
        sentences = Sentences(place)
        place = work / f"vectors-{number}"
        rows = embed_sentences(sentences, place, model, settings.vector_type, name=name)
        usable_neighbors(name, len(rows), settings.neighbors)
        vectors.append(rows)
    corpora: list[Rows | Index] = list(vectors)
    for number, rows in enumerate(vectors):
        queries = vectors[-1 - number]
        factory = choose_index(settings.index, len(queries), len(rows), dim=rows.dim)
        if factory is not None:
            index = Index(factory, rows, work / f"index-{number}", settings)
            effort = find_effort(queries, index, settings.neighbors, settings=settings)
            logger.info("%s: %s, %s", names[number], factory, effort)
            corpora[number] = index
    return Background(corpora[0], corpora[-1], settings.margin, settings.neighbors)
