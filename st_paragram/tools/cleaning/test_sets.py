"""The filter `test_sets`: sentences of test sets in training data, the same or nearly the same."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from st_paragram.core.settings import setting
from st_paragram.errors import SettingsError
from st_paragram.tools.cleaning.base import Row, RowFilter
from st_paragram.tools.cleaning.code_points import as_verdicts
from st_paragram.tools.cleaning.known_sentence_files import LAYOUTS, files_digest, known_sentence_files, read_sentences
from st_paragram.tools.cleaning.known_test_sentences import (
    DEFAULT_FAMILIES,
    SetFamily,
    among,
    digest,
    known_hashes,
    sentence_hashes,
    telling,
)
from st_paragram.tools.cleaning.near_sentences import NearSentences
from st_paragram.tools.cleaning.options import Languages, SomeOf, options

TEST, NEAR = "test sentence", "near a test sentence"


@options
class KnownTestSentences(RowFilter):
    """Drop pairs with a side that has the same letters and digits as a sentence of a test set.

    The sentences of STS 2012-2017, the STS Benchmark and Tatoeba (development parts too) are known by hashes that come
    with the package; sentences that everybody says ("How old is he?") are not among them. A folder of test sets adds
    its own sentences (those of Tatoeba for the languages of the rows), and sentences that differ from them in one word.

    The folder holds `sts2012/*.tsv`, ..., `stsb/*.tsv` (`grade TAB sentence TAB sentence`) and `tatoeba/xxx-eng.tsv`
    (`foreign TAB English`), as `data_prep/get_sts.py` makes it.

    The family `retrieval` is used only where it is named: questions and answers of SQuAD (dev), XQuAD-R and Quora,
    premises and hypotheses of SNLI (test) and XNLI (held out); `known_sentence_files` says how a folder holds them.
    """

    name: ClassVar[str] = "test_sets"
    reasons: ClassVar[tuple[str, ...]] = (TEST, NEAR)

    languages: Languages
    sets: SomeOf[SetFamily] = setting(DEFAULT_FAMILIES, "families of test sets")
    folder: Path | None = setting(None, "folder of further test sets to exclude")

    def __post_init__(self) -> None:
        """Check that the folder has files of test sets.

        Raises:
            SettingsError: It has none.
        """
        if self.folder is not None and not self._files():
            wanted = f"a folder with {' or '.join(LAYOUTS[kind] for kind in self.sets)}"
            raise SettingsError(f"folder is {str(self.folder)!r}; it must be {wanted}")

    def reject(self, rows: Sequence[Row]) -> list[str | None]:
        """Return for each row the reason to drop it, or None to keep it.

        Raises:
            SettingsError: A file of the folder is not readable.
        """
        files = self._files()
        hashes, near = _known(self.sets, files), _near(files) if files else None
        found = np.zeros(len(rows), np.int8)
        for side in (0, 1):
            texts = [row[side] for row in rows]
            found |= among(sentence_hashes(texts), hashes)
            if near is not None:
                found |= 2 * np.array(near.near(texts), np.int8)
        return as_verdicts(np.where(found & 1, 1, found), self.reasons)

    def identity(self) -> dict[str, Any]:
        """The families of test sets, and digests of the known sentences and of the files of the folder."""
        files = self._files()
        return {
            "sets": [kind.value for kind in self.sets],
            "known": digest(self.sets),
            "folder": files_digest(files) if files else None,
        }

    def _files(self) -> tuple[Path, ...]:
        return _files(self.folder, self.sets, self.languages) if self.folder is not None else ()


@cache
def _files(folder: Path, sets: tuple[SetFamily, ...], languages: tuple[str, str]) -> tuple[Path, ...]:
    return tuple(path for kind in sets for path in known_sentence_files(folder.expanduser(), kind, languages))


@cache
def _known(sets: tuple[SetFamily, ...], files: tuple[Path, ...]) -> NDArray[np.uint64]:
    more = [sentence for sentence in read_sentences(files) if telling(sentence)]
    return np.union1d(known_hashes(sets), sentence_hashes(more))


@cache
def _near(files: tuple[Path, ...]) -> NearSentences:
    return NearSentences(read_sentences(files))
