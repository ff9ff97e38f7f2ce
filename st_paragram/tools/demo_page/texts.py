"""Texts that the page begins with, how much it takes at a time, and how texts are read, looked at and cut."""

from __future__ import annotations

import re
from pathlib import Path

from st_paragram.errors import TextError

#: Characters of a sentence.
SENTENCE_CHARACTERS = 1_000
#: Sentences of a list that is searched, and bytes of it as UTF-8.
LIST_LINES, LIST_BYTES = 2_000, 1 << 20
#: Sentences of a text that is aligned.
TEXT_SENTENCES = 300

# A mark may be followed by quotation marks and brackets. The full-width marks end a sentence by themselves; the others
# are followed by a space, so that 3.14 and example.org stay whole.
_CLOSING = "\"'\u00bb\u201d\u2019\u300d\uff09)\\]"
_END = re.compile(
    rf"(?<=[.!?\u061f\u06d4\u0964\u2026])[{_CLOSING}]*\s+"  # Latin and Cyrillic, Arabic, Urdu, Devanagari, the ellipsis
    rf"|(?<=[\u3002\uff01\uff1f])[{_CLOSING}]*\s*"
)

QUERY = "When does the museum open?"

LIST = """\
¿A qué hora abre el museo?
Mi hermana trabaja en un hospital.
Um wie viel Uhr macht die Bibliothek auf?
Der Zug nach Berlin fährt in zehn Minuten ab.
Le musée est fermé le lundi.
Nous cherchons un restaurant près de la gare.
Во сколько открывается музей?
Завтра будет холодно и пойдёт снег.
Müze saat kaçta açılıyor?
Çocuklar bahçede oynuyor.
博物馆什么时候开门？
我想买两张去上海的票。
متى يفتح المتحف؟
يشرب أخي القهوة كل صباح.
What time does the museum close?
The new bridge was finished last year."""

FIRST_TEXT = """\
Our village lies at the foot of a mountain.
In winter the road is often closed by snow.
Then the children cannot go to school.
Nobody is sad about that.
In spring many visitors come to see the flowers."""

SECOND_TEXT = """\
Nuestro pueblo está al pie de una montaña.
En invierno la nieve cierra a menudo la carretera y los niños no pueden ir a la escuela.
Mi abuela hace pan.
En primavera vienen muchos visitantes a ver las flores."""


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
        raise TextError("The list is empty. Please write or upload one sentence per line.")
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


def read_upload(path: str | Path) -> str:
    """The lines of an uploaded list, joined again; the file is removed whether it can be read or not.

    Args:
        path: where the upload lies, plain text in UTF-8, with or without a byte order mark.

    Raises:
        TextError: it is too large, no text, empty, or has too many or too long lines.
    """
    file = Path(path)
    try:
        with file.open("rb") as handle:
            content = handle.read(LIST_BYTES + 1)
    except OSError as error:
        raise TextError("The uploaded file is gone. Please upload it again.") from error
    finally:
        file.unlink(missing_ok=True)
    if len(content) > LIST_BYTES:
        raise TextError(f"The file is larger than {LIST_BYTES:,} bytes. Please upload a smaller one.")
    if b"\0" in content:
        raise TextError("The file is not plain text. Please upload a .txt file with one sentence per line.")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise TextError(f"Line {line} of the file is not UTF-8. Please save the file as UTF-8.") from error
    return "\n".join(checked_lines(text))


def split_sentences(text: str) -> list[str]:
    """The sentences of a text, in order, without spaces around them; none of them is blank.

    A line always ends a sentence. Abbreviations that end with a full stop ("Dr. Who") are cut, too: to avoid that,
    write one sentence per line.
    """
    found = []
    for line in text.split("\n"):
        start = 0
        for end in _END.finditer(line):
            found.append(line[start : end.end()])
            start = end.end()
        found.append(line[start:])
    return [sentence for sentence in (" ".join(one.split()) for one in found) if sentence]


def line_sentences(text: str) -> list[str]:
    r"""The lines of a text, split at `\n` alone, without spaces around them; blank ones are left out."""
    return [sentence for sentence in (" ".join(one.split()) for one in text.split("\n")) if sentence]
