"""How much the page takes at a time, and texts that are looked at before a model reads them."""

from __future__ import annotations

from st_paragram.errors import TextError

#: Characters of a sentence.
SENTENCE_CHARACTERS = 1_000
#: Sentences of a list that is searched, and bytes of it as UTF-8.
LIST_LINES, LIST_BYTES = 2_000, 1 << 20
#: Sentences of a text that is aligned.
TEXT_SENTENCES = 300


def checked_sentence(text: str | None, name: str) -> str:
    """A sentence without spaces around it.

    Args:
        text: as it was typed.
        name: what it is, for messages: "sentence 1".

    Raises:
        TextError: it is empty or too long.
    """
    sentence = " ".join(_encodable(text or "").split())
    if not sentence:
        raise TextError(f"The {name} is empty. Please write one.")
    if len(sentence) > SENTENCE_CHARACTERS:
        seen = f"The {name} has {len(sentence):,} characters, and the page takes {SENTENCE_CHARACTERS:,}"
        raise TextError(f"{seen}. Please shorten it.")
    return sentence


def checked_lines(text: str | None) -> list[str]:
    r"""The lines of a list that are not blank, split at `\n` alone, without spaces around them.

    Raises:
        TextError: there is none, there are too many, or one is too long.
    """
    text = _encodable(text or "")
    if (size := len(text.encode())) > LIST_BYTES:
        raise TextError(f"The list has {size:,} bytes, and the page takes {LIST_BYTES:,}. Please shorten it.")
    lines = [" ".join(line.split()) for line in text.split("\n") if line.strip()]
    if not lines:
        raise TextError("The list is empty. Please write or upload a sentence a line.")
    if len(lines) > LIST_LINES:
        seen = f"The list has {len(lines):,} sentences, and the page takes {LIST_LINES:,}"
        raise TextError(f"{seen}. Please shorten it, or use the command st-paragram index.")
    for number, line in enumerate(lines, 1):
        checked_sentence(line, f"sentence {number} of the list")
    return lines


def checked_text(sentences: list[str], name: str) -> list[str]:
    """The sentences of a text that is to be aligned.

    Args:
        sentences: none of them blank.
        name: which text it is, for messages: "first".

    Raises:
        TextError: there is none, there are too many, or one is too long.
    """
    if not sentences:
        raise TextError(f"The {name} text is empty. Please write some sentences.")
    if len(sentences) > TEXT_SENTENCES:
        seen = f"The {name} text has {len(sentences):,} sentences, and the page takes {TEXT_SENTENCES:,}"
        raise TextError(f"{seen}. Please shorten it, or use the command st-paragram align.")
    return [checked_sentence(one, f"sentence {number} of the {name} text") for number, one in enumerate(sentences, 1)]


def _encodable(text: str) -> str:
    """A lone surrogate, which a browser may send and UTF-8 has no bytes for, becomes a question mark."""
    return text.encode("utf-8", "replace").decode("utf-8")
