"""`python -m st_paragram.core.native`: whether the compiled kernels are installed, and what to do if they are not."""

from __future__ import annotations

import sys

from st_paragram.core.native import SLOWER, SWITCH, load_kernels, switched_off
from st_paragram.core.native.installation import advice, install_command, why_missing


def report() -> tuple[bool, str]:
    """Whether the kernels are in use, and that in plain words, with the remedy if they are not."""
    if switched_off():
        return False, f"The compiled kernels are switched off: {SWITCH} is set to 0. Unset it to use them."
    try:
        kernels = load_kernels()
    except ImportError as error:
        return False, (
            f"The compiled kernels are missing: {why_missing(error)}.\n"
            f"Everything works without them, but {SLOWER}.\n"
            f"{advice()}:\n\n    {install_command()}"
        )
    return True, (
        f"The compiled kernels are installed and run with the instruction set {kernels.instructions()!r}.\n"
        f"Their file is {kernels.__file__}."
    )


def main() -> int:
    """Print the report; returns the exit status, 0 if the kernels are in use."""
    in_use, text = report()
    sys.stdout.write(text + "\n")
    return 0 if in_use else 1


if __name__ == "__main__":
    sys.exit(main())
