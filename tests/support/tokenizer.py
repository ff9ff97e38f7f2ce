"""A tokenizer that is none of the package's own: words between spaces, in a list."""

from __future__ import annotations

import itertools

import numpy as np

from st_paragram.core.tokenizers.flat_ids import drop_unknown
from st_paragram.errors import SettingsError


class WordTokenizer:
    """Words to their places in a list, which begins with the unknown one."""

    kind = "words-of-tests"
    unknown_id = 0

    def __init__(self, content, lower_case=True):
        self.content, self.lower_case = content, lower_case
        self.words = ["<unknown>", *content.decode().split("\n")]
        self.ids = {word: place for place, word in enumerate(self.words)}

    @property
    def options(self):
        return {"lower_case": self.lower_case}

    def __eq__(self, other):
        return isinstance(other, WordTokenizer) and (self.content, self.options) == (other.content, other.options)

    def __hash__(self):
        return hash(self.content)

    def shares_rows(self, other):
        return self == other

    def __len__(self):
        return len(self.words)

    def encode(self, texts, max_length=None, num_threads=1):
        cased = [text.lower() if self.lower_case else text for text in texts]
        return self.pack([[self.ids.get(word, 0) for word in text.split()][:max_length] for text in cased])

    def pack(self, rows):
        ids = np.array(list(itertools.chain.from_iterable(rows)), dtype=np.int64)
        if len(ids) and not 0 <= ids.min() <= ids.max() < len(self):
            raise SettingsError("an id outside the vocabulary")
        return drop_unknown(ids, np.array([len(row) for row in rows], dtype=np.int64), self.unknown_id)

    def decode(self, ids):
        return " ".join(self.words[i] for i in ids if i)
