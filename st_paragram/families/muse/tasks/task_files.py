r"""Rows of the tasks other than translation: files of columns with a tab between, plain, gzip or xz.

    qa        question TAB answer [TAB context]     the context, a paragraph around the answer, may be empty
    response  utterance TAB next utterance
    nli       label TAB premise TAB hypothesis      entailment, neutral, contradiction; or 0, 1, 2 in that order

Rows end at `\n` alone. White space of any kind within a text becomes single spaces. Bad rows are left out and
counted, a few are tolerated.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import NamedTuple

from st_paragram.core.files import file_for_folder
from st_paragram.core.text.streams import BYTE_ORDER_MARK, open_stream, read_blocks
from st_paragram.errors import SettingsError, TextError

# ISO 639-1, and the codes of three letters of languages that have parallel text and no shorter code.
_TABLE = """\
aa ab ae af ak am an ar as av ay az ba be bg bh bi bm bn bo br bs ca ce ch co cr cs cu cv cy da de dv dz ee el en eo
es et eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he hi ho hr ht hu hy hz ia id ie ig ii ik io is it iu ja jv ka kg
ki kj kk kl km kn ko kr ks ku kv kw ky la lb lg li ln lo lt lu lv mg mh mi mk ml mn mr ms mt my na nb nd ne ng nl nn
no nr nv ny oc oj om or os pa pi pl ps pt qu rm rn ro ru rw sa sc sd se sg sh si sk sl sm sn so sq sr ss st su sv sw
ta te tg th ti tk tl tn to tr ts tt tw ty ug uk ur uz ve vi vo wa wo xh yi yo za zh zu
ang arg arq ary arz ast awa ber bul cbk ceb ckb cor csb dsb dtp fil gsw hak haw hmn hsb ido ile ina jbo kab kha kmr
kzj lad lfn lld lzh mai max mhr min nan nap nds nov oci orv pam pes pms scn sco sin swg szl tet tlh tpi tuk tzl uig vec
war wuu xal yue zsm zza
"""
_CODES = frozenset(_TABLE.split())
_FORM = re.compile(r"([a-z]{2,3})(?:[_-][A-Za-z]{2,4})?")


def is_language_code(word: str) -> bool:
    """Whether a word is a language code such as `es`, `ceb`, `zh_cn` or `zh-Hant`, in lower case but for the ending."""
    found = _FORM.fullmatch(word)
    return found is not None and found[1] in _CODES


#: What a row is of, and how many columns it may have.
COLUMNS = {
    "qa": ("question TAB answer TAB context", (2, 3)),
    "response": ("utterance TAB next utterance", (2,)),
    "nli": ("label TAB premise TAB hypothesis", (3,)),
}
#: The labels of inference; a label's number is its place.
LABELS = ("entailment", "neutral", "contradiction")
#: The largest share of bad rows that a file may have.
MOST_BAD = 0.1

_SUFFIXES = (".tsv", ".tsv.gz", ".tsv.xz")
_NUMBERS = {name: number for number, label in enumerate(LABELS) for name in (label, str(number))}


class TaskRow(NamedTuple):
    """One row: question and answer, utterance and response, or premise and hypothesis.

    Attributes:
        first: the first text.
        second: the second text.
        context: the text around an answer; empty if there is none.
        label: of inference, 0 entailment, 1 neutral, 2 contradiction; -1 in other tasks.
    """

    first: str
    second: str
    context: str = ""
    label: int = -1


class BadRow(str, Enum):
    """Why a row is left out."""

    COLUMNS = "a wrong number of columns"
    EMPTY = "an empty text"
    LABEL = "an unknown label"
    ENCODING = "bytes that are not UTF-8"
    NUL = "a NUL byte"


@dataclass
class TaskFileCounts:
    """What reading found.

    Attributes:
        rows: rows read, bad ones included.
        bad: rows left out, by kind.
        first: the number of the first row of each kind, from 1.
    """

    rows: int = 0
    bad: dict[BadRow, int] = field(default_factory=dict)
    first: dict[BadRow, int] = field(default_factory=dict)

    def add(self, kind: BadRow) -> None:
        """Count a bad row, the one that was read last."""
        self.bad[kind] = self.bad.get(kind, 0) + 1
        self.first.setdefault(kind, self.rows)

    @property
    def bad_rows(self) -> int:
        """Bad rows of all kinds."""
        return sum(self.bad.values())

    def lines(self, name: str) -> list[str]:
        """A line for each kind of bad row: "qa/en.tsv: 2 rows with an empty text are left out, the first is row 7"."""
        return [
            f"{name}: {count:,} {'row' if count == 1 else 'rows'} with {kind.value} left out, the first is row {row:,}"
            for kind, count in self.bad.items()
            for row in [self.first[kind]]
        ]


def check_task(task: str) -> None:
    """Refuse a task that has no files of this kind.

    Raises:
        SettingsError: it is none of `COLUMNS`.
    """
    if task not in COLUMNS:
        raise SettingsError(f"no files of the task {task!r}; choose of {', '.join(COLUMNS)}")


def task_files(folder: str | Path, task: str) -> dict[str, Path]:
    """The files of a task by language: `LANG.tsv`, `LANG.tsv.gz` or `LANG.tsv.xz`; other files are left alone.

    Raises:
        SettingsError: there is no such task.
        TextError: the folder is missing or has no such file, a language has two, or a name begins with no language.
    """
    check_task(task)
    folder, found = Path(folder), dict[str, Path]()
    wanted = f"put LANG.tsv (or .gz, .xz) with rows `{COLUMNS[task][0]}` there, as written by `st-paragram tasks`"
    if wrong := file_for_folder(folder, f"a folder of the task {task}"):
        raise TextError(f"{wrong}; {wanted}")
    if not folder.is_dir():
        raise TextError(f"{folder}: no such folder of the task {task}; {wanted}")
    for path in sorted(folder.iterdir()):
        language, dot, rest = path.name.partition(".")
        if path.name.startswith(".") or dot + rest not in _SUFFIXES or not path.is_file():
            continue
        if not is_language_code(language):
            raise TextError(
                f"{path}: unknown language code {language!r}; rename the file, as in es{dot}{rest}, or move it"
            )
        if language in found:
            raise TextError(f"{path}: same language as {found[language].name}; keep one of them")
        found[language] = path
    if not found:
        raise TextError(f"{folder}: no file of the task {task}; {wanted}")
    return found


def read_task_file(
    path: str | Path, task: str, counts: TaskFileCounts | None = None, most_bad: float = MOST_BAD
) -> Iterator[TaskRow]:
    """Yield the good rows of a file in their order.

    Args:
        path: the file; its compression follows from the ending of its name.
        task: "qa", "response" or "nli".
        counts: added to while reading; complete when the iterator is exhausted.
        most_bad: the largest share of bad rows.

    Raises:
        SettingsError: there is no such task.
        TextError: the file is missing, cut off or damaged; or, once read, it has no good row or too many bad ones.
    """
    check_task(task)
    counts = TaskFileCounts() if counts is None else counts
    with ExitStack() as stack:
        for number, block in enumerate(read_blocks(str(path), open_stream(str(path), stack))):
            for line in (block if number else block.removeprefix(BYTE_ORDER_MARK)).split(b"\n"):
                counts.rows += 1
                row = _parse(line, task)
                if isinstance(row, TaskRow):
                    yield row
                else:
                    counts.add(row)
    _check(str(path), task, counts, most_bad)


def _parse(line: bytes, task: str) -> TaskRow | BadRow:
    try:
        cells = [" ".join(cell.split()) for cell in line.decode("utf-8").split("\t")]
    except UnicodeDecodeError:
        return BadRow.ENCODING
    if b"\0" in line:
        return BadRow.NUL
    if len(cells) not in COLUMNS[task][1]:
        return BadRow.COLUMNS
    return _inference(cells) if task == "nli" else _pair(cells)


def _inference(cells: Sequence[str]) -> TaskRow | BadRow:
    label, premise, hypothesis = cells
    if (number := _NUMBERS.get(label.lower())) is None:
        return BadRow.LABEL
    return TaskRow(premise, hypothesis, label=number) if premise and hypothesis else BadRow.EMPTY


def _pair(cells: Sequence[str]) -> TaskRow | BadRow:
    first, second, context = (*cells, "")[:3]
    return TaskRow(first, second, context) if first and second else BadRow.EMPTY


def _check(name: str, task: str, counts: TaskFileCounts, most_bad: float) -> None:
    """Refuse a file that is not of the task, as its bad rows show."""
    bad, rows = counts.bad_rows, counts.rows
    if not rows:
        raise TextError(f"{name}: empty; give a file of rows `{COLUMNS[task][0]}`")
    if bad < rows and bad <= most_bad * rows:
        return
    row, kind = min((row, kind) for kind, row in counts.first.items())
    seen = f"{bad:,} of {rows:,} rows are bad, the first is row {row:,}, with {kind.value}"
    raise TextError(f"{name}: {seen}; rows of {task} are `{COLUMNS[task][0]}`: correct the file, or take such rows out")
