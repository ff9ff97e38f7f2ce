"""What a student learns from a teacher's vectors: a term of the loss that compares them with its own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from safetensors import safe_open
from safetensors.torch import save
from torch import Tensor

from st_paragram.errors import SettingsError

_FILE = "lesson.safetensors"
_RATE = 1e-3  # of Adam on the map; the cosine makes its scale meaningless, so that one rate serves for all
_SHORTEST = 1e-8  # what is shorter counts as this long, as in torch's cosine
_MOMENTS = ("exp_avg", "exp_avg_sq", "step")


class Lesson:
    """weight * mean(1 - cos(P v, t)) over sentences with the student's vectors v and the teacher's t.

    P is a linear map from the student's components to the teacher's. It is learned along with the student, by dense
    Adam with a fixed rate, and is not part of the model: what is taught is how sentences lie to one another, in a space
    that the student may turn and stretch as it needs to.

    Attributes:
        projection: P, float32 (teacher's components, student's components).
        every: of the pairs of a mini-batch, every so manieth is compared with the teacher.
    """

    def __init__(
        self,
        weight: float,
        dim: int,
        teacher_dim: int,
        seed: int,
        device: torch.device | str = "cpu",
        digest: str = "",
        every: int = 1,
    ) -> None:
        """Begin with a random map.

        Args:
            weight: of the term in the loss.
            dim: components of the student.
            teacher_dim: components of the teacher.
            seed: of the map.
            device: of the student.
            digest: of the teacher's vectors; a checkpoint of others is refused.
            every: of the pairs of a mini-batch, every so manieth is compared.
        """
        self.weight, self.every, self._digest = weight, every, digest
        random = torch.Generator().manual_seed(seed)
        drawn = torch.randn(teacher_dim, dim, generator=random) / dim**0.5
        self.projection = drawn.to(device).requires_grad_()
        self.projection.grad = torch.zeros_like(self.projection)
        self._optimizer = torch.optim.Adam([self.projection], _RATE, fused=True)
        self._distances: list[Tensor] = []

    def loss(self, embeddings: Tensor, targets: Tensor) -> Tensor:
        """The term, a scalar.

        Args:
            embeddings: float32 (n, D).
            targets: float32 (n, teacher's components).
        """
        distance = 1 - F.cosine_similarity(embeddings @ self.projection.T, targets).mean()
        self._distances.append(distance.detach())
        return self.weight * distance

    def step(self) -> None:
        """Move the map by the gradient that a backward pass has left."""
        self._optimizer.step()
        self._optimizer.zero_grad(set_to_none=False)

    @torch.no_grad()
    def learn(self, embeddings: NDArray[np.float32], targets: NDArray[np.float32]) -> tuple[float, NDArray[np.float32]]:
        """The term, and its gradient with respect to the embeddings; makes the step of the map.

        It is what `loss`, a backward pass and `step` do, a quarter faster.

        Args:
            embeddings: float32 (n, D).
            targets: float32 (n, teacher's components).

        Returns:
            The term and float32 (n, D).
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

    def gradient(
        self, embeddings: NDArray[np.float32], targets: NDArray[np.float32]
    ) -> tuple[float, NDArray[np.float32]]:
        """The term and its gradient as `learn` has them, for a mini-batch whose targets are those of `every`.

        Args:
            embeddings: float32 (2B, D), of the s and then of the t.
            targets: float32 (2n, teacher's components), of every so manieth s and then t.

        Returns:
            The term and float32 (2B, D).
        """
        if self.every == 1:
            return self.learn(embeddings, targets)
        dim, result = embeddings.shape[1], np.zeros_like(embeddings)
        chosen = embeddings.reshape(2, -1, dim)[:, :: self.every]
        loss, gradient = self.learn(chosen.reshape(-1, dim), targets)
        result.reshape(2, -1, dim)[:, :: self.every] = gradient.reshape(chosen.shape)
        return loss, result

    def mean_distance(self) -> float:
        """The mean of 1 - cos(P v, t) since this was asked last; NaN if there was none."""
        distances, self._distances = self._distances, []
        return torch.stack(distances).mean().item() if distances else float("nan")

    def save(self, folder: Path) -> None:
        """Write the map and its optimizer's state to a checkpoint."""
        state = {"projection": self.projection.detach(), **self._moments()}
        tensors = {name: tensor.cpu().contiguous() for name, tensor in state.items()}
        (folder / _FILE).write_bytes(save(tensors, self._metadata()))

    def load(self, folder: Path) -> None:
        """Read back what `save` wrote.

        Raises:
            SettingsError: the checkpoint is of another teacher or of none.
        """
        if not (folder / _FILE).is_file():
            raise SettingsError(f"{folder}: a checkpoint without a teacher; resume with the same settings")
        with safe_open(folder / _FILE, "pt") as file:
            saved, metadata = {name: file.get_tensor(name) for name in file.keys()}, file.metadata()  # noqa: SIM118
        expected = {name: self.projection.shape for name in ("projection", *_MOMENTS)} | {"step": torch.Size([])}
        fits = expected == {name: tensor.shape for name, tensor in saved.items()}
        if metadata != self._metadata() or not fits or {tensor.dtype for tensor in saved.values()} != {torch.float32}:
            raise SettingsError(f"{folder}: a checkpoint of another teacher's vectors; resume with the same vectors")
        with torch.no_grad():
            self.projection.copy_(saved["projection"])
        for name in _MOMENTS:
            self._optimizer.state[self.projection][name] = saved[name].clone().to(self.projection.device)

    def _moments(self) -> dict[str, Tensor]:
        state = self._optimizer.state[self.projection]
        nothing = torch.zeros_like(self.projection)
        moments = {"exp_avg": nothing, "exp_avg_sq": nothing.clone(), "step": torch.zeros(())}
        return {name: state.get(name, moments[name]) for name in _MOMENTS}

    def _metadata(self) -> dict[str, str]:
        return {"teacher": self._digest}
