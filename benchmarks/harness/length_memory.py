"""Peak memory of encoding texts of a length, in a process of its own: `python -m harness.length_memory JOB`."""

from __future__ import annotations

import ctypes
import json
import re
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from sentence_transformers import SentenceTransformer

from harness.children import child_environment
from harness.length_models import texts_of
from harness.processes import thread_environment
from st_paragram.errors import ParagramError
from st_paragram.learning.models.directory import load

_COMMAND = (sys.executable, "-m", "harness.length_memory")
_WARM_UP = 8  # tokens of the texts before a measurement


@dataclass(frozen=True)
class MemoryJob:
    """What a process measures: a model directory on a torch device, `batch` texts of `length` tokens."""

    model: str
    device: str
    length: int
    batch: int


@dataclass(frozen=True)
class Memory:
    """In 2^20 bytes: with the model loaded and warm, and how much more a call needs at its peak."""

    loaded_mb: float
    extra_mb: float


def memory_of(job: MemoryJob, threads: int) -> Memory | str:
    """Measure in a new process; where that fails, for want of memory perhaps, the reason."""
    command = [*_COMMAND, json.dumps(asdict(job))]
    environment = {**child_environment(), **thread_environment(threads), "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode:
        return f"status {done.returncode}, {done.stderr.strip().split(chr(10))[-1][:150]}"
    return Memory(**json.loads(done.stdout.strip().split("\n")[-1]))


def peak_memory(model: SentenceTransformer, length: int, batch: int) -> Memory:
    """Measure in this process.

    On a CPU that is resident memory. Every weight is read before, so that pages of mapped files do not count as growth;
    what loading left free goes back to the system, so that it does not hide any.

    Raises:
        OSError: a CPU's, on another system than Linux.
    """
    short, texts = (texts_of(model, size, batch) for size in (min(_WARM_UP, length), length))
    _encode(model, short)
    with torch.inference_mode():
        for tensor in model.state_dict().values():
            tensor.sum()
    if model.device.type == "cuda":
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated() / 2**20
        _encode(model, texts)
        return Memory(before, torch.cuda.max_memory_allocated() / 2**20 - before)
    with suppress(OSError, AttributeError):  # another library than glibc
        ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew: proc(5). That of getrusage cannot
    before = _resident_mb("VmRSS")
    _encode(model, texts)
    return Memory(before, max(_resident_mb("VmHWM") - before, 0.0))


def _encode(model: SentenceTransformer, texts: Sequence[str]) -> None:
    model.encode(list(texts), batch_size=len(texts), show_progress_bar=False)


def _resident_mb(name: str) -> float:
    found = re.search(rf"{name}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1]) / 2**10


def main() -> int:
    """Do the job and print what was found as the last line."""
    job = MemoryJob(**json.loads(sys.argv[1]))
    try:
        found = peak_memory(load(job.model, device=job.device), job.length, job.batch)
    except (OSError, ParagramError) as error:
        sys.exit(str(error))
    print(json.dumps(asdict(found)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
