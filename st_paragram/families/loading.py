"""Load any model directory, whichever family it belongs to."""

from __future__ import annotations

from pathlib import Path

from sentence_transformers import SentenceTransformer

from st_paragram.core.model_directory.configuration import (
    AVERAGING,
    DUAL_ENCODER,
    GENERATIVE,
    check_architecture,
    read_configuration,
)
from st_paragram.core.model_directory.find import find
from st_paragram.core.model_directory.model_files import check_dimension
from st_paragram.learning.models.load_save import load_averaging, load_pipeline


def load(
    name: str | Path, device: str | None = None, truncate_dim: int | None = None
) -> SentenceTransformer:
    """Load a model directory, or any folder written by `save_pretrained`.

    Averaging models become a `ParagramEncoder`, other models the SentenceTransformer that was
    saved. A table of float16, int8 or int4 keeps its type; it becomes float32 only in an
    installation without compiled kernels.

    Args:
        name: A path, `p-sp-mini`, `p-sp-base`, `p-sp-large`, `p-sp-es` (or another language of
            p-sp-large), or a hub id `owner/name` or `owner/name@revision`.
        device: Torch device; None: chosen by sentence-transformers.
        truncate_dim: Number of first dimensions to keep; None: all. An averaging model loads only
            these: it is smaller, faster and less accurate.

    Examples:
        >>> import st_paragram
        >>> model = st_paragram.load("p-sp-mini", device="cpu", truncate_dim=64)
        >>> model.encode(["a sentence"]).shape
        (1, 64)
    """
    check_dimension(truncate_dim)
    folder = find(name)
    configuration = read_configuration(folder)
    architecture = configuration.architecture
    check_architecture(architecture, folder)
    model: SentenceTransformer
    if architecture == AVERAGING:
        model = load_averaging(folder, configuration.values, device, truncate_dim)
    else:
        model = load_pipeline(folder, device, truncate_dim)
    if architecture == GENERATIVE:
        from st_paragram.families.bgt import sentence_transformers_encoder as generative

        model = generative.read_beside(model, folder, configuration.values)
    elif architecture == DUAL_ENCODER:
        from st_paragram.families.muse import sentence_transformers_encoder as dual_encoder

        model = dual_encoder.read_beside(model, folder, configuration.values)
    card = folder / "README.md"
    if card.is_file():  # as in sentence-transformers, so that saving the model keeps its card
        text = card.read_text(encoding="utf-8", errors="replace")
        model._model_card_text = text  # type: ignore[assignment]
    return model.eval()
