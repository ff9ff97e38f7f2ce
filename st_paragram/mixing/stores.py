"""One vocabulary for all mixtures, a store for each text, and stores of mixtures, which are put together from these."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import islice, pairwise, zip_longest
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from st_paragram.core.files import atomic, digest
from st_paragram.core.pair_store import PairStore, PairStoreWriter
from st_paragram.core.text.parallel import TextSource
from st_paragram.core.tokenizers.sentencepiece import SentencePieceTokenizer, normalizer, train_vocabulary
from st_paragram.errors import TextError
from st_paragram.mixing.samples import Sample
from st_paragram.mixing.settings import MixSettings
from st_paragram.tools.preparation.plan_stage import quotas
from st_paragram.tools.preparation.prepare import prepare_cached
from st_paragram.tools.preparation.settings import PrepareSettings

_MULTIPLIERS = 1 << 12


def vocabulary(
    samples: Sequence[Sample], preparation: PrepareSettings, settings: MixSettings, folder: Path
) -> SentencePieceTokenizer:
    """The vocabulary of all mixtures, trained on as many pairs of each language.

    Raises:
        TextError: There is too little text.
        SettingsError: The vocabulary is too small for the characters of the text.
    """
    identities = [sample.identity for sample in samples]
    rows = sum(1 for sample in samples for _ in sample.pairs())
    size = preparation.pieces(rows)
    how = [size, settings.vocab_sample, settings.vocab_threads, settings.seed]
    path = folder / f"{digest(identities, how)}.model"
    if not path.is_file():
        normalize = normalizer(preparation.lower_case, preparation.segmentation)
        sentences = (normalize(text) for pair in balanced(samples, settings.vocab_sample) for text in pair)
        threads = settings.vocab_threads
        model = train_vocabulary(sentences, size, preparation.coverage, threads, seed=settings.seed)
        with atomic(path) as file:
            file.write(model)
    return SentencePieceTokenizer(path.read_bytes(), preparation.lower_case, preparation.segmentation)


def balanced(samples: Sequence[Sample], most: int) -> Iterator[tuple[str, str]]:
    """As many pairs of each language, as far as it has them; its texts take turns."""
    groups: defaultdict[str, list[Sample]] = defaultdict(list)
    for sample in samples:
        groups[sample.languages].append(sample)
    for languages in sorted(groups):
        turns = zip_longest(*(sample.pairs() for sample in groups[languages]))
        pairs = (pair for turn in turns for pair in turn if pair is not None)
        yield from islice(pairs, max(1, most // len(groups)))


def stores(
    samples: Sequence[Sample], preparation: PrepareSettings, tokenizer: SentencePieceTokenizer, folder: Path
) -> list[PairStore]:
    """A store of each text, filtered, without repeated rows and in random order.

    Raises:
        TextError: The filters leave fewer than two pairs of a text.
    """
    found = []
    for sample in tqdm(samples, desc="preparing", unit=" texts", disable=None, leave=False):
        pair = ("en", sample.languages.partition("-")[2])
        try:
            path = prepare_cached([TextSource((str(sample.path),), pair)], preparation, folder, tokenizer)
        except TextError as error:
            raise TextError(f"{sample.source.name}: {error}") from error
        found.append(PairStore(path))
    return found


def mixed_rows(
    stores: Sequence[PairStore], sources: Sequence[TextSource], temperature: float
) -> list[NDArray[np.int64]]:
    """The rows of each store that a mixture has, as `prepare` would store them: of equal rows the first stays.

    Args:
        stores: Of texts that are in the mixture.
        sources: These texts, with their weights.
        temperature: Balances languages, as in `quotas`.

    Returns:
        For each store integers, int64 (n,); repeated rows are repeated.
    """
    keys = [_keys(store) for store in stores]
    first = np.sort(np.unique(np.concatenate(keys), return_index=True)[1])
    edges = np.cumsum([0, *map(len, keys)])
    kept = [first[(first >= begin) & (first < end)] - begin for begin, end in pairwise(edges)]
    counts = quotas([len(rows) for rows in kept], sources, temperature)
    return [np.resize(rows, count) for rows, count in zip(kept, counts, strict=True)]


def write_mixed(
    stores: Sequence[PairStore], rows: Sequence[NDArray[np.int64]], languages: tuple[str, str], output: Path
) -> PairStore:
    """Put rows of stores with one vocabulary into a new store."""
    tokenizer, longest = stores[0].tokenizer(), stores[0].max_length
    pairs = [store.language_pairs[0] for store in stores]
    different = list(dict.fromkeys(pairs))
    with PairStoreWriter(output, languages, tokenizer, longest, row_languages=different) as writer:
        for store, taken, pair in zip(stores, rows, pairs, strict=True):
            numbers = np.full(len(taken), different.index(pair))
            writer.append(*store.take("a", taken), *store.take("b", taken), numbers)
    return PairStore(output)


def _keys(store: PairStore) -> NDArray[np.uint64]:
    """A hash of the ids of each row, uint64 (n,)."""
    multipliers = np.random.default_rng(0).integers(
        1, 1 << 64, 2 * _MULTIPLIERS, np.uint64, endpoint=False
    ) | np.uint64(1)
    keys = np.zeros(len(store), np.uint64)
    for number, side in enumerate("ab"):
        ids, offsets = store.take(side, np.arange(len(store)))
        places = np.arange(len(ids)) - np.repeat(offsets[:-1], np.diff(offsets))
        factors = multipliers[places % _MULTIPLIERS + number * _MULTIPLIERS]
        keys += np.add.reduceat(factors * (ids.astype(np.uint64) + np.uint64(1)), offsets[:-1])
    return keys
