"""The papers to cite for a model: BibTeX entries, one for each system."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_P_SP = """\
@inproceedings{wieting-etal-2022-paraphrastic,
  title = {Paraphrastic Representations at Scale},
  author = {Wieting, John and Gimpel, Kevin and Neubig, Graham and Berg-Kirkpatrick, Taylor},
  booktitle = {Proceedings of the 2022 Conference on Empirical Methods in Natural Language Processing: System
               Demonstrations},
  year = {2022},
  url = {https://arxiv.org/abs/2104.15114},
}"""

_SP = """\
@inproceedings{wieting-etal-2019-simple,
  title = {Simple and Effective Paraphrastic Similarity from Parallel Translations},
  author = {Wieting, John and Gimpel, Kevin and Neubig, Graham and Berg-Kirkpatrick, Taylor},
  booktitle = {Proceedings of the 57th Annual Meeting of the Association for Computational Linguistics},
  year = {2019},
  url = {https://arxiv.org/abs/1909.13872},
}"""

_BGT = """\
@inproceedings{wieting-etal-2020-bilingual,
  title = {A Bilingual Generative Transformer for Semantic Sentence Embedding},
  author = {Wieting, John and Neubig, Graham and Berg-Kirkpatrick, Taylor},
  booktitle = {Proceedings of the 2020 Conference on Empirical Methods in Natural Language Processing},
  year = {2020},
  url = {https://arxiv.org/abs/1911.03895},
}"""

_MUSE = """\
@inproceedings{yang-etal-2020-multilingual,
  title = {Multilingual Universal Sentence Encoder for Semantic Retrieval},
  author = {Yang, Yinfei and Cer, Daniel and Ahmad, Amin and Guo, Mandy and Law, Jax and Constant, Noah and
            Hernandez Abrego, Gustavo and Yuan, Steve and Tar, Chris and Sung, Yun-hsuan and Strope, Brian and
            Kurzweil, Ray},
  booktitle = {Proceedings of the 58th Annual Meeting of the Association for Computational Linguistics: System
               Demonstrations},
  year = {2020},
  url = {https://arxiv.org/abs/1907.04307},
}"""


def citations(settings: Mapping[str, Any]) -> list[str]:
    """BibTeX entries of the papers whose method a training followed.

    Args:
        settings: of the training run, as its record keeps them. A network (`architecture`) is named by dual encoders,
            an `objective` by generative models, an `encoder` by averaging ones.
    """
    if "architecture" in settings:
        return [_MUSE]
    if settings.get("objective"):
        return [_BGT]
    return [_P_SP] if settings.get("encoder", "sp") == "sp" else [_P_SP, _SP]
