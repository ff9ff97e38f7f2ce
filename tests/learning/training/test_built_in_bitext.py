"""The file of the built-in bitext in the cache, and what a killed run leaves of it."""

import signal
import subprocess
import sys

from support.downloads import names

from st_paragram.learning.training import training_data

KILLED = """
import os, pathlib, sys
pathlib.Path.replace = lambda *args: os.kill(os.getpid(), 9)
from st_paragram.learning.training.training_data import _write_if_changed
_write_if_changed(pathlib.Path(sys.argv[1]), [("one", "uno")])
"""


def test_what_a_killed_run_left_is_removed_by_the_next(tmp_path):
    path = tmp_path / "built-in.en-es.tsv"
    killed = subprocess.run([sys.executable, "-c", KILLED, path])
    assert killed.returncode == -signal.SIGKILL and names(tmp_path)
    training_data._write_if_changed(path, [("one", "uno")])
    assert names(tmp_path) == [path.name] and path.read_text() == "one\tuno\n"
    (tmp_path / f".{path.name}.lock").touch()  # the last thing that goes
    training_data._write_if_changed(path, [("one", "uno")])
    assert names(tmp_path) == [path.name]
