"""Builds the compiled kernels; everything else about the package stands in setup.cfg."""

import os
import platform
import sys
from pathlib import Path

from pybind11.setup_helpers import ParallelCompile, Pybind11Extension, build_ext
from setuptools import Extension, setup

SOURCES = Path("st_paragram/core/native/src")
GNU = [
    "-O3",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fno-signed-zeros",
    "-fassociative-math",
    "-Wall",
    "-Wextra",
]


class BuildKernels(build_ext):
    """Says what it means that the kernels could not be built; setuptools only reports the
    compiler's error.
    """

    def build_extension(self, ext: Extension) -> None:
        """Build an extension; setuptools goes on without one that is optional."""
        try:
            super().build_extension(ext)
        except Exception:
            sys.stderr.write(
                "WARNING: the compiled kernels of st_paragram could not be built; it will be"
                " slower.\n"
            )
            raise


# as many files at a time as there are cores, 8 at most, since each takes memory
ParallelCompile(max=8).install()
setup(
    cmdclass={"build_ext": BuildKernels},
    ext_modules=[
        Pybind11Extension(
            "st_paragram.core.native._kernels",
            sources=sorted(map(str, SOURCES.glob("*.cpp"))),
            depends=sorted(map(str, SOURCES.glob("*.h"))),
            extra_compile_args=["/O2"] if platform.system() == "Windows" else GNU,
            cxx_std=17,
            # Without a compiler the package installs all the same, and runs on torch alone. A wheel
            # for others must have the kernels: whoever builds one sets
            # ST_PARAGRAM_REQUIRE_KERNELS=1.
            optional=os.environ.get("ST_PARAGRAM_REQUIRE_KERNELS") != "1",
        )
    ],
)
