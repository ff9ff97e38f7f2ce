"""The parts of the bilingual generative transformer and its baselines (EMNLP 2020): encoders and decoders.

A sentence of a pair is written out of what both mean and of how its own language says it. `semantic` finds the first,
a language's encoder the second; `generators` write a sentence out of both, `translators` out of the meaning alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sentence_transformers import SentenceTransformer
from torch import nn

from st_paragram.families.bgt.gaussian_latent import GaussianEncoder
from st_paragram.families.bgt.generative_objective import Side
from st_paragram.families.bgt.latent_decoder import LatentDecoder
from st_paragram.learning.modules.transformer_encoder import SpecialIds, TransformerShape


@dataclass(frozen=True)
class DecoderShape:
    """Which decoders there are, and their sizes.

    Attributes:
        transformer: Of each.
        latent_dim: Components of the semantic latent variable, and of each language's.
        generators: Sides that are written out of all latent variables.
        translators: Sides that are written out of the other side's meaning.
        at_attention: Latent variables reach the layers.
        at_logits: Latent variables reach the logits.
    """

    transformer: TransformerShape
    latent_dim: int
    generators: Sequence[Side]
    translators: Sequence[Side]
    at_attention: bool = True
    at_logits: bool = True


class BilingualGenerator(nn.Module):
    """The encoders and decoders of a pair of languages.

    Args:
        semantic: the pipeline whose embedding is the mean of the semantic latent variable.
        languages: by side, those of the languages' variables; none where a model has none.
        vocabulary: ids that decoders write.
        special: the ids that are not text.
        shape: of the decoders.

    Attributes:
        semantic: Meaning, of both languages.
        languages: By side, what is the language's.
        generators: By side, written out of [language; meaning].
        translators: By side, written out of the meaning.
    """

    def __init__(
        self,
        semantic: SentenceTransformer,
        languages: Mapping[Side, SentenceTransformer],
        vocabulary: int,
        special: SpecialIds,
        shape: DecoderShape,
    ) -> None:
        super().__init__()
        self.shape, self.special = shape, special
        self.semantic = GaussianEncoder(semantic)
        self.languages = nn.ModuleDict({side: GaussianEncoder(pipeline) for side, pipeline in languages.items()})
        both = shape.latent_dim * (2 if languages else 1)
        self.generators = nn.ModuleDict({side: self._decoder(vocabulary, both) for side in shape.generators})
        self.translators = nn.ModuleDict(
            {side: self._decoder(vocabulary, shape.latent_dim) for side in shape.translators}
        )

    def _decoder(self, vocabulary: int, latent_dim: int) -> LatentDecoder:
        shape = self.shape
        ways = (shape.at_attention, shape.at_logits)
        return LatentDecoder(vocabulary, shape.transformer, latent_dim, self.special, *ways)

    @property
    def max_length(self) -> int:
        """Ids of a sentence that encoders read and decoders write, its end included."""
        return self.shape.transformer.max_length
