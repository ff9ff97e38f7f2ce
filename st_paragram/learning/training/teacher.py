"""What a student learns from a teacher's vectors of the pairs, in addition to the margin loss."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from safetensors.torch import load_file, save
from torch import Tensor

from st_paragram.core.pair_store import PairStore
from st_paragram.errors import SettingsError, refused

_FILE = "teacher.safetensors"
_MOMENTS = ("exp_avg", "exp_avg_sq", "step")
_RATE = 1e-3  # of Adam on the map; the cosine makes its scale meaningless, so that one rate serves for all
_SHORTEST = 1e-8  # what is shorter counts as this long, as in torch's cosine


def open_vectors(path: str | Path, store: PairStore) -> NDArray[np.floating]:
    """A teacher's vectors of the n pairs of a store, float16 or float32 (n or 2n, components), not read yet.

    n rows are those of the first sides and serve for the second ones, too: a translation is to have the vector of the
    sentence that it translates. 2n rows are those of the first sides and then of the second ones. `prepare --keep-text`
    writes the sentences in the order of the store.
    """
    with refused(SettingsError, path, "not a .npy file of a teacher's vectors", "make it with st-paragram embed"):
        vectors: NDArray[np.floating] = np.load(path, mmap_mode="r", allow_pickle=False)
    if vectors.ndim != 2 or vectors.dtype.kind != "f" or len(vectors) not in (len(store), 2 * len(store)):
        seen = f"{vectors.dtype} of shape {vectors.shape}, where {store.path} has {len(store):,} pairs"
        raise SettingsError(f"{path}: {seen}; embed a.txt, or a.txt and b.txt, of prepare --keep-text with this store")
    return vectors


class Teacher:
    """A term of the loss: weight * mean(1 - cos(P v, t)) over sentences, of the student's v and the teacher's t.

    P is a linear map from the student's components to the teacher's. It is learned along with the student, by dense
    Adam with a fixed rate, and is not part of the model: what is taught is how sentences lie to one another, in a space
    that the student may turn and stretch as it needs to.

    Attributes:
        projection: P, float32 (teacher's components, student's components).
    """

    def __init__(self, vectors: NDArray[np.floating], weight: float, dim: int, seed: int, device: torch.device) -> None:
        """Begin with a random map.

        Args:
            vectors: As `open_vectors` gives them.
            weight: Of the term in the loss.
            dim: Components of the student.
            seed: Of the map.
            device: Of the student.
        """
        self.weight, self._vectors = weight, vectors
        random = torch.Generator().manual_seed(seed)
        drawn = torch.randn(vectors.shape[1], dim, generator=random) / dim**0.5
        self.projection = drawn.to(device).requires_grad_()
        self.projection.grad = torch.zeros_like(self.projection)
        self._optimizer = torch.optim.Adam([self.projection], _RATE, fused=True)
        self._distances: list[Tensor] = []

    def targets(self, rows: NDArray[np.int64], pairs: int) -> NDArray[np.float32]:
        """The teacher's vectors of rows of the store of so many pairs: of their first sides, then of their second."""
        second = rows + pairs if len(self._vectors) == 2 * pairs else rows
        wanted = np.concatenate([rows, second])
        found = self._vectors[wanted].astype(np.float32)
        if not (finite := np.isfinite(found).all(axis=1)).all():
            raise SettingsError(
                f"the teacher's vector {wanted[np.argmin(finite)]:,} is infinite or NaN; embed it again"
            )
        return found

    def loss(self, embeddings: Tensor, targets: Tensor) -> Tensor:
        """The term, a scalar, of float32 (n, D) and (n, teacher's components); call `step` after the backward pass."""
        distance = 1 - F.cosine_similarity(embeddings @ self.projection.T, targets).mean()
        self._distances.append(distance.detach())
        return self.weight * distance

    def step(self) -> None:
        """Move the map by the gradient that a backward pass has left."""
        self._optimizer.step()
        self._optimizer.zero_grad(set_to_none=False)

    @torch.no_grad()
    def learn(self, embeddings: NDArray[np.float32], targets: NDArray[np.float32]) -> tuple[float, NDArray[np.float32]]:
        """The term, and its gradient with respect to the embeddings, (n, D); makes the step of the map.

        It is what `loss`, a backward pass and `step` do, a quarter faster.
        """
        vectors, map_ = torch.from_numpy(embeddings), self.projection.detach()
        mapped, aims = vectors @ map_.T, F.normalize(torch.from_numpy(targets), dim=1, eps=_SHORTEST)
        lengths = mapped.norm(dim=1, keepdim=True).clamp_(min=_SHORTEST)
        cosines = (mapped.div_(lengths) * aims).sum(1, keepdim=True)
        distance = 1 - cosines.mean()
        self._distances.append(distance)
        # d(1 - cos(u, t)) / du = (cos(u, t) u / |u| - t / |t|) / |u|
        slopes = mapped.mul_(cosines).sub_(aims).div_(lengths).mul_(self.weight / len(vectors))
        torch.mm(slopes.T, vectors, out=self.projection.grad)
        gradient = slopes @ map_
        self.step()
        return self.weight * distance.item(), gradient.numpy()

    def mean_distance(self) -> float:
        """The mean of 1 - cos(P v, t) since this was asked last."""
        distances, self._distances = self._distances, []
        return torch.stack(distances).mean().item()

    def save(self, folder: Path) -> None:
        """Write the map and its optimizer's state to a checkpoint."""
        state = self._optimizer.state[self.projection]
        tensors = {"projection": self.projection.detach(), **{name: state[name] for name in _MOMENTS}}
        saved = save({name: tensor.cpu().contiguous() for name, tensor in tensors.items()})
        (folder / _FILE).write_bytes(saved)

    def load(self, folder: Path) -> None:
        """Read back what `save` wrote."""
        saved, device = load_file(folder / _FILE), self.projection.device
        with torch.no_grad():
            self.projection.copy_(saved["projection"])
        self._optimizer.state[self.projection].update({name: saved[name].to(device) for name in _MOMENTS})
