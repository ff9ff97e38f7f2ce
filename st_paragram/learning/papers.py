"""Papers to cite for losses and models."""

from __future__ import annotations

from dataclasses import dataclass

_BIBTEX = """\
@inproceedings{{{key},
  title = {{{title}}},
  author = {{{authors}}},
  booktitle = {{{venue}}},
  year = {{{year}}},
  url = {{{url}}},
}}"""


@dataclass(frozen=True)
class Paper:
    """A paper of a conference."""

    key: str
    title: str
    authors: str
    venue: str
    year: int
    url: str

    @property
    def bibtex(self) -> str:
        """The BibTeX entry, without a final newline."""
        return _BIBTEX.format(**vars(self))


P_SP = Paper(
    "wieting-etal-2022-paraphrastic",
    "Paraphrastic Representations at Scale",
    "Wieting, John and Gimpel, Kevin and Neubig, Graham and Berg-Kirkpatrick, Taylor",
    "Proceedings of EMNLP 2022: System Demonstrations",
    2022,
    "https://arxiv.org/abs/2104.15114",
)
