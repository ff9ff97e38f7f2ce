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

SP = Paper(
    "wieting-etal-2019-simple",
    "Simple and Effective Paraphrastic Similarity from Parallel Translations",
    "Wieting, John and Gimpel, Kevin and Neubig, Graham and Berg-Kirkpatrick, Taylor",
    "Proceedings of ACL 2019",
    2019,
    "https://arxiv.org/abs/1909.13872",
)

BGT = Paper(
    "wieting-etal-2020-bilingual",
    "A Bilingual Generative Transformer for Semantic Sentence Embedding",
    "Wieting, John and Neubig, Graham and Berg-Kirkpatrick, Taylor",
    "Proceedings of EMNLP 2020",
    2020,
    "https://arxiv.org/abs/1911.03895",
)

MUSE = Paper(
    "yang-etal-2020-multilingual",
    "Multilingual Universal Sentence Encoder for Semantic Retrieval",
    "Yang, Yinfei and Cer, Daniel and Ahmad, Amin and Guo, Mandy and Law, Jax and Constant, Noah"
    " and Hernandez Abrego, Gustavo and Yuan, Steve and Tar, Chris and Sung, Yun-hsuan and Strope,"
    " Brian and Kurzweil, Ray",
    "Proceedings of ACL 2020: System Demonstrations",
    2020,
    "https://arxiv.org/abs/1907.04307",
)

ADDITIVE_MARGIN = Paper(
    "yang-etal-2019-improving",
    "Improving Multilingual Sentence Embedding using Bi-directional Dual Encoder with Additive"
    " Margin Softmax",
    "Yang, Yinfei and Hernandez Abrego, Gustavo and Yuan, Steve and Guo, Mandy and Shen, Qinlan and"
    " Cer, Daniel and Sung, Yun-hsuan and Strope, Brian and Kurzweil, Ray",
    "Proceedings of IJCAI 2019",
    2019,
    "https://arxiv.org/abs/1902.08564",
)
