"""Description of the machine and the libraries of a run, which any speed figure needs."""

from __future__ import annotations

import platform
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from st_paragram.core.extras import installed_version
from st_paragram.core.native import usable_cores, usable_threads

_LIBRARIES = (
    "st_paragram",
    "torch",
    "numpy",
    "sentencepiece",
    "sentence-transformers",
    "model2vec",
)


@dataclass(frozen=True)
class MachineDescription:
    """The machine and the libraries of a run."""

    cpu: str = "unknown"
    cores: int = 0  # cores that this process may use
    threads: int = 0  # torch's threads, if torch is in use
    instructions: str = "unknown"  # instruction set of the compiled kernels, or "none"
    gpu: str = "none"  # name of the first GPU
    system: str = "unknown"
    python: str = "unknown"
    libraries: dict[str, str] = field(default_factory=dict)


def describe_machine() -> MachineDescription:
    """Describe this machine; unavailable facts are "unknown"."""
    # libraries that are not imported do not affect the measurement
    torch: Any = sys.modules.get("torch")
    from st_paragram.core.native import kernels

    native, info = kernels(), Path("/proc/cpuinfo")
    name = (
        re.search(r"^model name\s*:\s*(.+)$", info.read_text(), re.MULTILINE)
        if info.is_file()
        else None
    )
    return MachineDescription(
        cpu=name[1] if name else platform.processor() or "unknown",
        cores=usable_cores(),
        threads=torch.get_num_threads() if torch else usable_threads(),
        instructions=str(native.instructions()) if native is not None else "none",
        gpu=torch.cuda.get_device_name(0) if torch and torch.cuda.is_available() else "none",
        system=platform.platform(),
        python=platform.python_version(),
        libraries={name: installed_version(name) for name in _LIBRARIES},
    )
