"""Fifth stage: train a vocabulary on the first rows of the order, or one for each language.

A vocabulary of several languages is trained on as many sentences of each, since pieces go to the languages that the
sample is full of.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

from st_paragram.core.files import atomic, digest
from st_paragram.core.tokenizers.base import Tokenizer, load_tokenizer
from st_paragram.core.tokenizers.bilingual import BilingualTokenizer, Sharing, both
from st_paragram.core.tokenizers.character_trigrams import train_trigrams
from st_paragram.core.tokenizers.sentencepiece import train_vocabulary
from st_paragram.core.tokenizers.words import train_words
from st_paragram.tools.preparation.plan_stage import PlanStage
from st_paragram.tools.preparation.row_files import SOURCE, texts_of
from st_paragram.tools.preparation.settings import PrepareSettings
from st_paragram.tools.stages.metadata import write_metadata
from st_paragram.tools.stages.stage import Stage

VERSION = 1  # of the results: count it up when they change


@dataclass(frozen=True)
class VocabularyStage(Stage):
    """The one task trains the vocabulary on the first `sample_pairs` pairs, a uniform sample of all.

    With several languages, it takes twice as many sentences as `sample_pairs`, the same number of each language, and
    all of a language that has fewer.

    Attributes:
        plan: The order.
        settings: Of the preparation.
        given: A file whose vocabulary takes the place of a trained one; its name identifies its content.
    """

    name: ClassVar[str] = "vocabulary"
    plan: PlanStage
    settings: PrepareSettings
    given: Path | None = None

    def digests(self) -> list[str]:
        """The one digest."""
        if self.given:
            return [digest(VERSION, "given", self.given.name)]
        names = ["vocab_size", "coverage", "sample_pairs", "max_sentence_bytes", "vocab_threads", "seed"]
        if (self.settings.tokens, self.settings.sharing) != ("sentencepiece", Sharing.JOINT):
            names += ["tokens", "sharing", "splitter"]
        values = [getattr(self.settings, name) for name in names]
        return [digest(VERSION, self.plan.digests(), values, *(["even"] if self.settings.even_sample else []))]

    def results(self) -> list[Path]:
        """The one file, the content of the tokenizer."""
        return [self.folder() / f"{self.settings.tokens}.model"]

    def tokenizers(self) -> tuple[Tokenizer, Tokenizer]:
        """The tokenizers of both sides; one and the same where they share a vocabulary."""
        settings, (path,) = self.settings, self.results()
        if settings.sharing is Sharing.JOINT:
            tokenizer = _loaded(path, settings.tokens, json.dumps(self._options()))
            return tokenizer, tokenizer
        inner = {"kind": settings.tokens, "options": self._options()}
        options = {"inner": inner, "sharing": settings.sharing.value, "languages": settings.languages}
        first, second = (
            _loaded(path, BilingualTokenizer.kind, json.dumps(options | {"language": language}))
            for language in settings.languages
        )
        return first, second

    def _options(self) -> dict[str, Any]:
        """The options of a tokenizer of one language."""
        settings = self.settings
        options: dict[str, Any] = {"lower_case": settings.lower_case}
        if settings.tokens == "sentencepiece":
            options["segmentation"] = settings.segmentation.value
        if settings.tokens == "word":
            options |= {"splitter": settings.splitter.value, "language": "en"}
        return options

    def run(self, task: int) -> None:
        """Train.

        Raises:
            TextError: Too little text for a vocabulary.
            MissingExtraError: Moses is asked for and not installed.
            SettingsError: The vocabulary is too small for the characters of the text.
        """
        started = time.perf_counter()
        (result,) = self.results()
        model = self.given.read_bytes() if self.given else self._train()
        with atomic(result) as handle:
            handle.write(model)
        write_metadata(result, {"seconds": time.perf_counter() - started})

    def _train(self) -> bytes:
        if self.settings.sharing is Sharing.JOINT:
            if self.settings.even_sample:
                return self._train_on(self._even_sample())
            return self._train_on(sentence for pair in self._sample() for sentence in pair)
        return both(*(self._train_on(pair[side] for pair in self._sample()) for side in (0, 1)))

    def _sample(self) -> Iterator[tuple[str, str]]:
        """The first pairs of the order."""
        plan = self.plan.plan()
        pairs = ((first, second) for task in range(len(plan.files)) for first, second in texts_of(plan.rows(task)))
        return islice(pairs, self.settings.sample_pairs)

    def _even_sample(self) -> Iterator[str]:
        """The first sentences of each language, in the order of the rows."""
        plan, sources = self.plan.plan(), self.plan.sources
        languages = [[code.partition("_")[0] for code in source.pair] for source in sources]
        each = 2 * self.settings.sample_pairs // len({code for pair in languages for code in pair})
        left = dict.fromkeys((code for pair in languages for code in pair), each)
        for task in range(len(plan.files)):
            rows = plan.rows(task)
            for row, texts in zip(rows, texts_of(rows), strict=True):
                for code, text in zip(languages[int(row[SOURCE])], texts, strict=True):
                    if left[code]:
                        left[code] -= 1
                        yield text
            if not any(left.values()):
                return

    def _train_on(self, sentences: Iterator[str]) -> bytes:
        settings = self.settings
        size = settings.pieces(sum(self.plan.plan().quotas))
        if settings.tokens == "word":
            return train_words(sentences, size, settings.lower_case, settings.splitter)
        if settings.tokens == "trigram":
            return train_trigrams(sentences, size, settings.lower_case)
        return train_vocabulary(
            sentences,
            size=size,
            character_coverage=settings.coverage,
            num_threads=settings.vocab_threads,
            max_sentence_bytes=settings.max_sentence_bytes,
            seed=settings.seed,
        )


@lru_cache(maxsize=2)
def _loaded(path: Path, kind: str, options: str) -> Tokenizer:
    """Loaded once in a process, since a table of words grows better with use; the path has its digest."""
    return load_tokenizer(kind, path.read_bytes(), json.loads(options))
