"""Queries at a terminal: a line is a query, and a line that begins with a colon changes how it is searched."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

from st_paragram.core.words import counted
from st_paragram.errors import ParagramError, SettingsError, one_line
from st_paragram.tools.search.filters import check, conditions
from st_paragram.tools.search.search_index import Hit, SearchIndex

HELP = """\
A line is a query. Lines that begin with a colon are commands:
  :k 5               show 5 sentences for each query
  :threshold 0.5     show no sentence with a lower cosine; without a number, all of them
  :where lang=es     search among sentences with these fields only; several conditions with spaces between them,
                     none at all to search among all sentences
  :reload            see what was changed since the index was opened
  :help              show this
Ctrl-D ends."""


@dataclass
class Prompt:
    """Answers lines.

    Attributes:
        index: Is searched.
        write: Gets the answers, line by line.
        k: Sentences shown for a query.
        threshold: Least cosine.
        where: Filters, see `SearchIndex.search`.
    """

    index: SearchIndex
    write: Callable[[str], object]
    k: int = 10
    threshold: float | None = None
    where: list[str] = field(default_factory=list)

    def run(self, read: Callable[[str], str] = input) -> None:
        """Answer lines until they end; an error is shown and does not end anything.

        Args:
            read: Shows a prompt and gives a line, or raises EOFError.
        """
        with suppress(ImportError):  # lines can be edited and called back
            import readline  # noqa: F401
        self.write(f"{counted(len(self.index), 'sentence')}; write a query, or :help. Ctrl-D ends.")
        while True:
            try:
                line = read("> ").strip()
            except EOFError:
                self.write("")
                return
            except KeyboardInterrupt:
                self.write("")
                continue
            try:
                self.answer(line)
            except ParagramError as error:
                self.write(str(error))

    def answer(self, line: str) -> None:
        """Answer a line.

        Raises:
            ParagramError: A command cannot be understood, or the index is damaged.
        """
        if not line:
            return
        if line.startswith(":"):
            name, _, value = line[1:].partition(" ")
            self._command(name, value.strip())
            return
        (hits,) = self.index.search([line], self.k, self.threshold, self.where)
        for hit in hits:
            self.write(shown(hit, with_fields=bool(self.index.fields)))
        if not hits:
            self.write("nothing found")

    def _command(self, name: str, value: str) -> None:
        if name == "help":
            self.write(HELP)
        elif name == "k":
            if not value.isdecimal() or not 0 < int(value) < 10**9:
                raise SettingsError(f":k {one_line(value)}: give a number from 1, such as :k 5")
            self.k = int(value)
        elif name == "threshold":
            try:
                self.threshold = float(value) if value else None
            except ValueError:
                raise SettingsError(f":threshold {one_line(value)}: give a cosine, such as :threshold 0.5") from None
        elif name == "where":
            check(conditions(value.split()), self.index.fields)
            self.where = value.split()
        elif name == "reload":
            changed = self.index.reload()
            self.write(f"{counted(len(self.index), 'sentence')}{'' if changed else ', nothing has changed'}")
        else:
            raise SettingsError(f"no command :{one_line(name)}; :help shows them")


def shown(hit: Hit, with_fields: bool) -> str:
    """A hit in a line: `score TAB line TAB sentence`, and its fields as JSON, if asked for."""
    fields = f"\t{json.dumps(dict(hit.metadata), ensure_ascii=False)}" if with_fields else ""
    return f"{hit.score:.6f}\t{hit.line}\t{hit.sentence}{fields}"
