"""Training a dual encoder in several processes: the losses and weights of one, whoever had which pairs."""

import json

import pytest
import torch
import torch.distributed as dist
from safetensors.torch import load_file
from support import dual_encoder_process, forked
from support.dual_encoder import TASKS, write_data

from st_paragram.learning.training import checkpoints
from st_paragram.learning.training.collective import gather_rows

pytestmark = pytest.mark.usefixtures("one_thread")


def gathered(shares, rows, monkeypatch):
    """What each process gets of all rows, if these are the shares."""
    filled = torch.zeros(rows, shares[0].shape[1])
    for process, share in enumerate(shares):
        filled[process :: len(shares)] = share.detach()[: len(range(process, rows, len(shares)))]
    monkeypatch.setattr(dist, "all_reduce", lambda tensor: tensor.copy_(filled))
    return [gather_rows(share, process < rows, process, len(shares), rows) for process, share in enumerate(shares)]


@pytest.mark.parametrize("rows", [1, 2, 3, 7])
@pytest.mark.parametrize("processes", [2, 3])
def test_gathered_rows_are_the_batch_and_gradients_stay_at_home(monkeypatch, rows, processes):
    whole = torch.randn(rows, 4)
    shares = [(whole[p::processes] if p < rows else whole[:1]).clone().requires_grad_() for p in range(processes)]
    weights = torch.randn(rows, 4)
    for process, found in enumerate(gathered(shares, rows, monkeypatch)):
        assert torch.equal(found.detach(), whole)
        (found * weights).sum().backward()
        expected = weights[process::processes] if process < rows else torch.zeros(1, 4)
        assert torch.equal(shares[process].grad, expected)


@pytest.fixture(scope="module", params=["batch", "mined"])
def runs(request, tmp_path_factory, vocabulary):
    """A folder of what two processes made, and the trainer of one that made the same alone."""
    folder = tmp_path_factory.mktemp("processes")
    data = folder / "data"
    data.mkdir()
    write_data(data, vocabulary, rows=31, few=1)
    processes = forked.start_ranks(2, dual_encoder_process.main, data, folder, request.param, folder=folder)
    try:
        alone = dual_encoder_process.trained(dual_encoder_process.opened(data), folder / "alone", request.param)
    finally:
        forked.wait(processes, folder)
    return folder, alone


@pytest.fixture(scope="module")
def histories(runs):
    return [json.loads((runs[0] / f"{rank}.json").read_text()) for rank in range(2)]


def logged(log, name):
    return [entry.get(name) for entry in log if "loss" in entry]


@pytest.mark.slow
def test_the_run_has_all_tasks_and_batches_of_one_row(runs):
    sampler, rows = runs[1]._sampler, runs[1]._rows
    seen = [
        (rows[number].task, len(chosen)) for number, chosen in map(sampler.at, range(dual_encoder_process.RUN["steps"]))
    ]
    assert {task for task, _ in seen} == set(TASKS)
    assert {("qa", 1), ("nli", 1), ("qa", 7), ("nli", 7)} <= set(seen)


@pytest.mark.slow
def test_processes_end_with_the_same_weights_as_one(runs):
    folder, alone = runs
    first, second = (load_file(folder / f"{rank}.safetensors") for rank in range(2))
    expected, before = (
        alone.loss.state_dict(),
        dual_encoder_process.untrained(dual_encoder_process.opened(folder / "data"), folder / "new").loss.state_dict(),
    )
    assert first.keys() == second.keys() == expected.keys()
    for name, tensor in expected.items():
        assert torch.equal(first[name], second[name]), name
        torch.testing.assert_close(first[name], tensor, atol=1e-5, rtol=0)
    for name in ("heads.context.weight", "heads.classifier.0.weight", "pipeline.0.embedding.weight"):
        assert (before[name] - expected[name]).abs().max() > 1e-3, name


@pytest.mark.slow
@pytest.mark.parametrize("name", ["loss", *TASKS])
def test_the_losses_are_those_of_the_joined_batch(runs, histories, name):
    expected = logged(runs[1].state.log_history, name)
    assert len(expected) == dual_encoder_process.RUN["steps"] and any(each is not None for each in expected)
    for history in histories:
        assert logged(history["log"], name) == pytest.approx(expected, abs=1e-5)


@pytest.mark.slow
def test_as_many_negatives_are_mined_as_by_one(runs, histories):
    expected = logged(runs[1].state.log_history, "mined_per_pair")
    assert any(expected) == runs[1].args.mined_negatives
    for history in histories:
        assert logged(history["log"], "mined_per_pair") == expected


@pytest.mark.slow
def test_the_share_of_labels_found_is_that_of_the_joined_batch(runs, histories):
    expected = logged(runs[1].state.log_history, "nli_accuracy")
    for history in histories:
        assert logged(history["log"], "nli_accuracy") == pytest.approx(expected, abs=1e-6)


@pytest.mark.slow
def test_all_pairs_are_counted_once(runs, histories):
    assert {history["pairs"] for history in histories} == {runs[1].pairs_trained}


@pytest.mark.slow
def test_the_first_process_alone_writes_checkpoints(runs):
    folder, alone = runs
    checkpoint, written = checkpoints.newest_whole(folder / "run")
    assert checkpoint.name == "checkpoint-10" and written.stores == checkpoints.contents_of(alone.stores)
