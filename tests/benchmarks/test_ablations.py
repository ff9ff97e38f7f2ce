import json
from pathlib import Path

import numpy as np
import pytest
import torch
from harness.families.ablations import BASE, LossName, _OfPairs, read_ablations, run_ablations, score_ablations
from reports.ablations import seeds_table
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss
from st_paragram.learning.training.mega_batch.mega_batch import random_negatives

from st_paragram.core.pair_store import PairStore
from st_paragram.errors import SettingsError
from st_paragram.learning.models.sentence_transformers_encoder import pipeline
from st_paragram.learning.modules.flat_features import flat_features
from st_paragram.learning.modules.token_embedding import SentencePieceEmbedding
from st_paragram.tools.evaluation.graded_pairs import GradedPairs
from st_paragram.tools.evaluation.translations import Translations

CONFIG = """
base: {dim: 8, epochs: 0.5, batch_size: 16, anneal_interval: 4, vocab_size: 300}
groups:
  M: [{megabatch_size: 1}]
  pairs: [{pairs: 64, epochs: 2}]
  loss: [{loss: multiple-negatives}]
"""


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "rows.yaml"
    path.write_text(CONFIG)
    return path


def test_rows_are_the_base_and_one_change_each(config):
    rows = read_ablations(config)
    assert [(row.name, row.group) for row in rows] == [
        (BASE, BASE),
        ("megabatch_size 1", "M"),
        ("pairs 64, epochs 2", "pairs"),
        ("loss multiple-negatives", "loss"),
    ]
    assert rows[1].settings.megabatch_size == 1 and rows[1].settings.dim == 8
    assert (rows[2].pairs, rows[2].settings.epochs) == (64, 2.0)
    assert [row.loss for row in rows] == [LossName.MARGIN] * 3 + [LossName.MULTIPLE_NEGATIVES]


@pytest.mark.parametrize(
    "name", ["ablations", "ablations_es", "ablations_paraphrase", "ablations_rate", "learning_curve"]
)
def test_the_projects_own_rows_are_readable_and_differ_from_the_base(name):
    rows = read_ablations(Path(__file__).parents[2] / "benchmarks" / "configs" / f"{name}.yaml")
    base = rows[0]
    assert len({row.name for row in rows}) == len(rows)
    for row in rows[1:]:
        assert (row.settings, row.vocab_size, row.pairs, row.loss) != (
            base.settings,
            base.vocab_size,
            base.pairs,
            base.loss,
        )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("base: {dimension: 8}\ngroups: {}", "unknown setting 'dimension'"),
        ("base: {}\ngroups: {x: [{loss: triplet}]}", "row 'loss triplet'"),
        ("base: {}\ngroups: {x: [{margin: -1}]}", "margin"),
        ("groups: {}", "expected `base"),
        ("base: {}\ngroups: [1]", "expected `base"),
        ("{", "expected `base"),
    ],
)
def test_other_files_are_refused(tmp_path, text, message):
    path = tmp_path / "rows.yaml"
    path.write_text(text)
    with pytest.raises(SettingsError, match=message):
        read_ablations(path)


def test_every_row_is_trained_with_every_seed_and_never_twice(tmp_path, config, store, pairs):
    development = [GradedPairs("dev", [a for a, _ in pairs[:20]], [b for _, b in pairs[10:30]], [*range(5)] * 4)]
    sizes = []

    def store_of(vocab_size):
        sizes.append(vocab_size)
        return store.path

    runs = list(run_ablations(read_ablations(config), [1, 2], store_of, development, tmp_path / "parts"))
    assert [(row.name, run.seed) for row, run in runs][:5] == [
        (BASE, 1),
        ("megabatch_size 1", 1),
        ("pairs 64, epochs 2", 1),
        ("loss multiple-negatives", 1),
        (BASE, 2),
    ]
    assert set(sizes) == {300}
    scores = [run.scores["dev"].pearson for _, run in runs]
    assert len(set(scores)) == 8, "each training differs"
    files = sorted((tmp_path / "parts").glob("*.json"))
    assert len(files) == 8
    before = [file.stat().st_mtime_ns for file in files]
    again = list(run_ablations(read_ablations(config), [1, 2], store_of, development, tmp_path / "parts"))
    assert [run for _, run in again] == [run for _, run in runs]
    assert [file.stat().st_mtime_ns for file in files] == before
    values = json.loads(files[0].read_text())
    files[0].write_text(json.dumps(values | {"settings": values["settings"] | {"dim": 9}}))
    list(run_ablations(read_ablations(config), [1, 2], store_of, development, tmp_path / "parts"))
    assert json.loads(files[0].read_text())["settings"] == values["settings"], "other settings: trained again"


def test_held_out_translations_are_looked_for_too(tmp_path, store, pairs):
    (tmp_path / "rows.yaml").write_text("base: {dim: 8, epochs: 1, batch_size: 16, vocab_size: 300}\ngroups: {}\n")
    development = [GradedPairs("dev", [a for a, _ in pairs[:20]], [b for _, b in pairs[10:30]], [*range(5)] * 4)]
    held = Translations("held", [a for a, _ in pairs[:20]], [b for _, b in pairs[:20]])
    rows = read_ablations(tmp_path / "rows.yaml")
    found = score_ablations(rows, [1], lambda _: store.path, development, tmp_path / "parts", ["text"], [held])
    (run,) = found.models[BASE].runs
    assert 0 < run.translations["held"] <= 1
    assert f"| {100 * run.translations['held']:.1f} (" in seeds_table(found) and "| held, found |" in seeds_table(found)
    (_, without) = next(run_ablations(rows, [1], lambda _: store.path, development, tmp_path / "parts"))
    assert without.translations == {}, "what was kept is of other development data"


def test_a_loss_of_pairs_sees_the_pairs_alone(store):
    model = pipeline(SentencePieceEmbedding(store.tokenizer(), 8), device="cpu")
    columns = [flat_features(*store.take(side, np.arange(6) + shift)) for shift in (0, 6) for side in "ab"]
    loss = MultipleNegativesRankingLoss(model)
    with torch.no_grad():
        got = _OfPairs(loss)(columns)
        first, second = (model(dict(column))["sentence_embedding"] for column in columns[:2])
    cosines = torch.nn.functional.normalize(first) @ torch.nn.functional.normalize(second).T
    expected = torch.nn.functional.cross_entropy(20 * cosines, torch.arange(6))
    assert got.item() == pytest.approx(expected.item(), abs=1e-5)


def test_random_negatives_are_other_pairs_of_each_draw_alike():
    of_s, of_t = random_negatives(50, 1, 2, 3)
    for found in (of_s, of_t):
        assert found.shape == (50,) and found.min() >= 0 and found.max() < 50
        assert (found != np.arange(50)).all()
    assert (of_s != of_t).any()
    assert (random_negatives(50, 1, 2, 3)[0] == of_s).all()
    assert (random_negatives(50, 1, 2, 4)[0] != of_s).any()
    assert [found.tolist() for found in random_negatives(1, 1, 2, 3)] == [[0], [0]]
    counts = np.bincount(np.concatenate([random_negatives(3, seed, 0, 0)[0] for seed in range(2000)]), minlength=3)
    assert abs(counts - 2000).max() < 150, "uniform"


def test_a_limited_store_shows_its_first_pairs(store):
    limited = PairStore(store.path, limit=10)
    assert len(limited) == 10 and len(PairStore(store.path, limit=10_000)) == len(store)
    assert (limited.take("a", np.arange(10))[0] == store.take("a", np.arange(10))[0]).all()
    with pytest.raises(SettingsError, match="limit is 0"):
        PairStore(store.path, limit=0)
