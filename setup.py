"""Builds the compiled kernels; everything else about the package stands in setup.cfg."""

import platform
from pathlib import Path

from pybind11.setup_helpers import Pybind11Extension
from setuptools import setup

GNU = ["-O3", "-fno-math-errno", "-fno-trapping-math", "-fno-signed-zeros", "-fassociative-math", "-Wall", "-Wextra"]

setup(
    ext_modules=[
        Pybind11Extension(
            "st_paragram.native._kernels",
            sources=[
                f"st_paragram/native/src/{name}.cpp"
                for name in (
                    "module",
                    "threads",
                    "loops_generic",
                    "loops_avx2",
                    "loops_avx512",
                    "mean_rows",
                    "training_step",
                    "hardest_negatives",
                    "word_cache",
                )
            ],
            depends=sorted(str(path) for path in Path("st_paragram/native/src").glob("*.h")),
            extra_compile_args=["/O2"] if platform.system() == "Windows" else GNU,
            cxx_std=17,
            # Without a compiler the package installs all the same, and runs on torch alone.
            optional=True,
        )
    ]
)
