"""Files that others may read."""

import os
import stat

import pytest

from st_paragram.core.file_modes import follow_umask


@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o027, 0o640), (0o077, 0o600), (0o002, 0o664)])
def test_modes_follow_the_umask(tmp_path, umask, mode):
    path = tmp_path / "x"
    path.touch(0o600)
    before = os.umask(umask)
    try:
        follow_umask([path])
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == mode
    assert list(tmp_path.iterdir()) == [path]
