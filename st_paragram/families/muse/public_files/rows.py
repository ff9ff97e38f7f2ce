"""What converters of public files share: settings, the count of what was left out, and limits on repeated answers."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

from st_paragram.core.settings import setting, settings
from st_paragram.tools.cleaning.normalized_key import normalized_key
from st_paragram.tools.cleaning.unsegmented_scripts import is_unsegmented

UNREADABLE = "cannot be read"
_GENERIC_WORDS, _GENERIC_CHARACTERS = 3, 4  # a response with fewer says little


@settings
class ConvertSettings:
    """Which rows public files give."""

    most_per_answer: int = setting(3, "maximum rows with the same answer", ge=1)
    most_per_response: int = setting(5, "maximum rows with the same response", ge=1)
    most_generic: int = setting(
        2, "maximum rows with the same response of one or two words, because `OK.` suits everything", ge=0
    )
    context_words: int = setting(150, "maximum words of context around the answer", ge=1)
    id_prefix: str = setting(
        "",
        "prefix of the question ids to take, such as `arabic` in TyDi QA, which mixes all languages",
    )


@dataclass
class ConvertReport:
    """What became of what was read; `read` is `written` plus all that is left out.

    Attributes:
        read: questions, pairs of turns or premises that the files have.
        left_out: how many were left out, by reason.
        written: rows written.
    """

    read: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    written: int = 0

    def as_json(self) -> dict[str, Any]:
        """The numbers as JSON values."""
        return {"read": self.read, "left_out": dict(self.left_out), "written": self.written}

    def table(self) -> str:
        """The numbers as plain text, a line each."""
        left = [(count, f"left out: {reason}") for reason, count in self.left_out.most_common()]
        lines = [(self.read, "rows read"), *left, (self.written, "rows written")]
        return "\n".join(f"{count:>13,}  {text}" for count, text in lines)


class Limits:
    """Leaves out what is repeated: rows, and answers that too many rows have.

    Texts are compared by their letters and digits. It keeps 8 bytes of each row and of each answer.
    """

    def __init__(self, task: str, settings: ConvertSettings) -> None:
        self._task, self._settings = task, settings
        self._rows: set[bytes] = set()
        self._answers: Counter[bytes] = Counter()

    def reason(self, row: tuple[str, ...]) -> str | None:
        """Why a row is left out, or None if it stays."""
        if (key := _key(*row[: 3 if self._task == "nli" else 2])) in self._rows:
            return "repeated"
        if self._task != "nli":
            answer = _key(row[1])
            most, why = self._most(row[1])
            if self._answers[answer] >= most:
                return why
            self._answers[answer] += 1
        self._rows.add(key)
        return None

    def _most(self, answer: str) -> tuple[int, str]:
        if self._task == "qa":
            return self._settings.most_per_answer, "too many of one answer"
        if is_generic(answer):
            return self._settings.most_generic, "too many of one generic response"
        return self._settings.most_per_response, "too many of one response"


def is_generic(response: str) -> bool:
    """Whether a response is so short that it suits nearly everything."""
    if is_unsegmented(response):
        return len(normalized_key(response)) < _GENERIC_CHARACTERS
    return len(response.split()) < _GENERIC_WORDS


def _key(*texts: str) -> bytes:
    keys = "\0".join(normalized_key(text) or text for text in texts)
    return blake2b(keys.encode("utf-8", "surrogatepass"), digest_size=8).digest()
