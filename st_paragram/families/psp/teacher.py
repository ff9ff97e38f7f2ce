"""The teacher loss, which compares a student with a teacher's vectors of the pairs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from st_paragram.core.pair_store import PairStore
from st_paragram.errors import SettingsError, refused
from st_paragram.families.psp.mega_batch import Rows

_FILE = "teacher.pt"
# learning rate of Adam for the map; the cosine ignores its scale, so one rate works for all
_RATE = 1e-3
_SHORTEST = 1e-8  # minimum length of vectors, as in torch's cosine


class Teacher:
    """A loss term: weight * mean(1 - cos(P v, t)) over sentences, for the teacher's vectors t.

    v are the student's embeddings. P is a linear map with random initialization. It is learned with
    the student, by dense Adam with a fixed rate, and is not part of the model: the student learns
    how sentences relate to each other, but is free to rotate and scale the space.

    Attributes:
        projection: P, float32 (teacher's dimensions, student's dimensions).
        distances: Mean 1 - cos(P v, t) of each batch since the list was last cleared.
    """

    def __init__(
        self,
        path: str | Path,
        store: PairStore,
        weight: float,
        dim: int,
        seed: int,
        device: torch.device,
    ) -> None:
        """Teach the vectors in a file to a student with `dim` dimensions on `device`.

        `seed` initializes the map. The .npy file has float16 or float32 (n or 2n, dimensions) for
        the store's n pairs. n rows are for the first sides and are also used for the second sides,
        so that a translation gets the vector of its source. 2n rows are for the first sides, then
        for the second sides. `prepare --keep-text` writes the sentences in the order of the store.
        """
        what = "not a .npy file of teacher vectors"
        with refused(SettingsError, path, what, "make it with st-paragram embed"):
            vectors: NDArray[np.floating] = np.load(path, mmap_mode="r", allow_pickle=False)
        pairs = len(store)
        if vectors.ndim != 2 or vectors.dtype.kind != "f" or len(vectors) not in (pairs, 2 * pairs):
            raise SettingsError(
                f"{path}: {vectors.dtype} of shape {vectors.shape}, but {store.path} has"
                f" {pairs:,} pairs; embed a.txt, or a.txt and b.txt, of prepare --keep-text with"
                " this store"
            )
        self.weight = weight
        self._pairs = pairs
        self._vectors = vectors
        random = torch.Generator().manual_seed(seed)
        projection = torch.randn(vectors.shape[1], dim, generator=random) / dim**0.5
        self.projection = projection.to(device).requires_grad_()
        self.projection.grad = torch.zeros_like(self.projection)
        self._optimizer = torch.optim.Adam([self.projection], _RATE, fused=True)
        self.distances: list[float] = []

    def targets(self, rows: Rows) -> NDArray[np.float32]:
        """Return the vectors for the first sides of rows, then for their second sides."""
        places = np.concatenate([rows, rows + self._pairs]) % len(self._vectors)
        vectors = self._vectors[places].astype(np.float32)
        is_finite = np.isfinite(vectors).all(axis=1)
        if not is_finite.all():
            place = places[np.argmin(is_finite)]
            raise SettingsError(
                f"the teacher's vector {place:,} is infinite or NaN; embed it again"
            )
        return vectors

    @torch.no_grad()
    def learn(self, embeddings: Tensor, rows: Rows) -> tuple[float, Tensor]:
        """Update the map; return the term and its gradient for B rows, embedded as (2B, D)."""
        projection = self.projection.detach()
        targets = torch.from_numpy(self.targets(rows)).to(projection.device)
        targets = F.normalize(targets, dim=1, eps=_SHORTEST)
        mapped = embeddings @ projection.T
        lengths = mapped.norm(dim=1, keepdim=True).clamp_(min=_SHORTEST)
        cosines = (mapped.div_(lengths) * targets).sum(1, keepdim=True)
        distance = (1 - cosines.mean()).item()
        self.distances.append(distance)
        # d(1 - cos(u, t)) / du = (cos(u, t) u / |u| - t / |t|) / |u|
        slopes = mapped.mul_(cosines).sub_(targets).div_(lengths)
        slopes.mul_(self.weight / len(embeddings))
        torch.mm(slopes.T, embeddings, out=self.projection.grad)
        gradient = slopes @ projection
        self._optimizer.step()
        return self.weight * distance, gradient

    def save(self, folder: Path) -> None:
        """Write the map and its optimizer's state to a checkpoint."""
        torch.save((self.projection.detach(), self._optimizer.state_dict()), folder / _FILE)

    def load(self, folder: Path) -> None:
        """Load what `save` wrote."""
        projection, state = torch.load(folder / _FILE, self.projection.device, weights_only=True)
        self.projection.data.copy_(projection)
        self._optimizer.load_state_dict(state)
