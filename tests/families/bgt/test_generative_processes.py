"""Training in several processes: the weights of one, whoever had which pairs."""

import json

import pytest
import torch
import torch.distributed as dist
from safetensors.torch import load_file
from support import forked, generative_process
from support.data import write_store
from torch import nn

from st_paragram.learning.training import checkpoints, collective
from st_paragram.learning.training.collective import sum_gradients

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture
def parameters():
    return [nn.Parameter(torch.randn(shape)) for shape in ((3, 2), (5,), (2, 2), (7,))]


class Everyone:
    """Two processes that have the same gradients; how many numbers the messages had."""

    def __init__(self, monkeypatch, processes=2):
        self.messages = []
        monkeypatch.setattr(dist, "is_initialized", lambda: True)
        monkeypatch.setattr(dist, "get_world_size", lambda: processes)
        monkeypatch.setattr(dist, "all_reduce", self.all_reduce)

    def all_reduce(self, message):
        self.messages.append(len(message))
        message.mul_(2)


def test_gradients_are_summed(parameters, monkeypatch):
    gradients = [torch.randn_like(parameter) for parameter in parameters]
    for parameter, gradient in zip(parameters, gradients, strict=True):
        parameter.grad = gradient.clone()
    parameters[1].grad = None
    parameters[3].requires_grad_(False)
    everyone = Everyone(monkeypatch)
    monkeypatch.setattr(collective, "_MESSAGE", 9)
    sum_gradients(iter(parameters))
    assert everyone.messages == [6, 9]
    torch.testing.assert_close(parameters[0].grad, 2 * gradients[0])
    assert not parameters[1].grad.any() and parameters[1].grad.shape == (5,)
    torch.testing.assert_close(parameters[2].grad, 2 * gradients[2])
    torch.testing.assert_close(parameters[3].grad, gradients[3])


def test_a_large_parameter_is_a_message_of_its_own(parameters, monkeypatch):
    everyone = Everyone(monkeypatch)
    monkeypatch.setattr(collective, "_MESSAGE", 4)
    sum_gradients(parameters)
    assert everyone.messages == [6, 5, 4, 7]


@pytest.mark.parametrize("several", [False, True])
def test_nothing_is_summed_in_a_single_process(parameters, monkeypatch, several):
    if several:
        Everyone(monkeypatch, processes=1)
    parameters[0].grad = torch.ones(3, 2)
    sum_gradients(parameters)
    assert torch.equal(parameters[0].grad, torch.ones(3, 2)) and parameters[1].grad is None


@pytest.fixture(scope="module")
def runs(tmp_path_factory, pairs, vocabulary):
    """A folder of what two processes made, and the trainer of one that made the same alone."""
    folder = tmp_path_factory.mktemp("processes")
    store = write_store(folder / "x.h5", pairs[:61], vocabulary)
    processes = forked.start_ranks(2, generative_process.main, store.path, folder, folder=folder)
    try:
        alone = generative_process.trained(store, folder / "alone")
    finally:
        forked.wait(processes, folder)
    return folder, alone


@pytest.fixture(scope="module")
def histories(runs):
    return [json.loads((runs[0] / f"{rank}.json").read_text()) for rank in range(2)]


@pytest.mark.slow
def test_processes_end_with_the_same_weights_as_one(runs):
    folder, alone = runs
    first, second = (load_file(folder / f"{rank}.safetensors") for rank in range(2))
    expected = alone.loss.state_dict()
    assert first.keys() == second.keys() == expected.keys()
    for name, tensor in expected.items():
        assert torch.equal(first[name], second[name]), name
        torch.testing.assert_close(first[name], tensor, atol=1e-5, rtol=0)
    before = generative_process.untrained(alone.store, folder / "new").model[0].model.embed_tokens.weight
    assert (before - alone.model[0].model.embed_tokens.weight).abs().max() > 1e-3


@pytest.mark.slow
def test_all_pairs_are_counted_once(runs, histories):
    assert {history["pairs"] for history in histories} == {runs[1].pairs_trained}


@pytest.mark.slow
def test_the_loss_that_is_logged_is_that_of_all_pairs(runs, histories):
    expected = [entry["loss"] for entry in runs[1].state.log_history if "loss" in entry]
    assert len(expected) == 2
    for history in histories:
        found = [entry["loss"] for entry in history["log"] if "loss" in entry]
        assert found == pytest.approx(expected, rel=1e-4)


@pytest.mark.slow
def test_the_first_process_alone_writes_checkpoints(runs):
    folder, alone = runs
    checkpoint, written = checkpoints.newest_whole(folder / "run")
    assert checkpoint.name == "checkpoint-2" and written.stores == checkpoints.contents_of(alone.stores)
    resumed = generative_process.untrained(alone.store, folder / "again")
    resumed.train(resume_from_checkpoint=str(checkpoint))
    for name, tensor in alone.loss.state_dict().items():
        torch.testing.assert_close(resumed.loss.state_dict()[name], tensor, atol=1e-5, rtol=0)
