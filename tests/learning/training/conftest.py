from __future__ import annotations

import pytest
import torch


@pytest.fixture
def one_thread():
    """One thread of torch: an LSTM's many small steps gain nothing by more, and lose much on a busy machine."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
