"""What a long soak measures, and that its work can be done."""

import numpy as np
import pytest

from hostile import soak


def test_work_can_be_done_again_and_again(tmp_path):
    work = soak.Work(tmp_path)
    before = work.table.detach().clone()
    work.round()
    work.round()
    assert work.rounds == 2
    assert work.step is None or not np.array_equal(before, work.table.detach())


def test_memory_is_that_of_arrays():
    before = soak.anonymous()
    array = np.ones(64 << 20, np.uint8)
    assert soak.anonymous() - before == pytest.approx(64, abs=8)
    assert array.all()


@pytest.mark.parametrize(("leak", "status"), [(0.0, 0), (1.0, 1)])
def test_growth_is_seen(monkeypatch, leak, status, capsys):
    sizes = iter(np.arange(1000) * leak + 300)
    clock = iter(np.arange(1000) * 1.0)
    monkeypatch.setattr(soak, "anonymous", lambda: next(sizes))
    monkeypatch.setattr(soak.time, "monotonic", lambda: next(clock))
    monkeypatch.setattr(soak.Work, "round", lambda self: None)
    assert soak.main(["--minutes", "1", "--every", "1"]) == status
    assert f"{60 * leak:+.2f} MB a minute" in capsys.readouterr().out
