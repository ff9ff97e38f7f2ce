"""Tries of a target in a process whose kernels have sanitizers, which `hostile.sanitize` starts."""

from __future__ import annotations

import sys

import hostile.sanitize  # noqa: F401 - puts its kernels in the place of the installed ones
from hostile.campaign import run_here
from st_paragram.core.native import kernels

if __name__ == "__main__":
    target, tries = sys.argv[1], int(sys.argv[2])
    print(f"{target}: kernels of {kernels().__file__}", flush=True)
    for outcome, count in sorted(run_here(target, tries).items()):
        print(f"{count:8,} {outcome}", flush=True)
