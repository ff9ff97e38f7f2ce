"""What a machine is, without which no figure of speed means anything."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from st_paragram.core.threads import usable_cores, usable_threads

LIBRARIES = (
    "st_paragram",
    "torch",
    "numpy",
    "sentencepiece",
    "tokenizers",
    "sentence-transformers",
    "transformers",
    "model2vec",
    "fasttext-wheel",
)


@dataclass(frozen=True)
class MachineDescription:
    """The machine, the libraries and the source of a run.

    Args:
        cpu: name of the processor.
        cores: logical processors of the machine.
        usable_cores: those that this process may use.
        threads: torch's default number.
        instructions: instruction set of the compiled kernels; "none" without them, or "switched off".
        torch_instructions: what torch's own kernels use.
        memory_gib: of the machine.
        gpu: name of the first GPU, or "none".
        system: operating system.
        python: version.
        load_average: of the last minute, when the run began: above 0.5 somebody else was at work.
        commit: of the source tree, with "+" if files were changed since; "unknown" outside of one.
        libraries: version of each, or "not installed".
    """

    cpu: str = "unknown"
    cores: int = 0
    usable_cores: int = 0
    threads: int = 0
    instructions: str = "unknown"
    torch_instructions: str = "unknown"
    memory_gib: float = 0.0
    gpu: str = "none"
    system: str = "unknown"
    python: str = "unknown"
    load_average: float = 0.0
    commit: str = "unknown"
    libraries: dict[str, str] = field(default_factory=dict)


def describe_machine() -> MachineDescription:
    """Look at this machine; what cannot be found out is "unknown" or 0."""
    torch: Any = sys.modules.get("torch")  # what is not imported has no part in what is measured
    from st_paragram.core.native import kernels, switched_off

    native, missing = kernels(), "switched off" if switched_off() else "none"
    return MachineDescription(
        cpu=_cpu(),
        cores=os.cpu_count() or 0,
        usable_cores=usable_cores(),
        threads=torch.get_num_threads() if torch else usable_threads(),
        instructions=str(native.instructions()) if native is not None else missing,
        torch_instructions=torch.backends.cpu.get_cpu_capability() if torch else "not used",
        memory_gib=_memory(),
        gpu=torch.cuda.get_device_name(0) if torch and torch.cuda.is_available() else "none",
        system=platform.platform(),
        python=platform.python_version(),
        load_average=round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else 0.0,
        commit=_commit(),
        libraries={name: installed_version(name) for name in LIBRARIES},
    )


def installed_version(package: str) -> str:
    """Version of an installed package, or "not installed"."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _cpu() -> str:
    info = Path("/proc/cpuinfo")
    if info.is_file():
        found = {
            name: re.search(rf"^{name}\s*:\s*(.+)$", info.read_text(), re.MULTILINE)
            for name in ("model name", "cpu family", "model")
        }
        if all(found.values()):
            name, family, model = (match[1] for match in found.values() if match)
            return f"{name} (family {family}, model {model})"
    return platform.processor() or platform.machine() or "unknown"


def _memory() -> float:
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)
    except (AttributeError, ValueError, OSError):
        return 0.0


def _commit() -> str:
    folder = Path(__file__).parent
    try:
        commit, changes = (
            subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True, check=True).stdout.strip()
            for arguments in (["rev-parse", "--short=12", "HEAD"], ["status", "--porcelain", "-uno"])
        )
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return commit + ("+" if changes else "")
