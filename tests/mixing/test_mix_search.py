"""The search, on trainings whose scores are known: effects, errors, weights, and how many trainings it takes."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from zlib import crc32

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_paragram.mixing.development import total
from st_paragram.mixing.report import notes, table, values
from st_paragram.mixing.search import most_trainings, search, standard_error
from st_paragram.mixing.settings import MixSettings
from st_paragram.mixing.trainings import Trained

SEEDS = 3


@dataclass
class Known:
    """Trainings whose score is 50 and, for each source, what `adds` gives for its weight; seeds differ by `noise`."""

    adds: dict
    settings: MixSettings = field(default_factory=lambda: MixSettings(seeds=SEEDS))
    noise: float = 0.0
    by_temperature: dict = field(default_factory=dict)
    done: set = field(default_factory=set)

    def groups(self):
        return list(self.adds)

    def of_all_seeds(self, weights, temperature=1.0):
        weights = {name: weight for name, weight in weights.items() if weight}
        assert weights
        key = (tuple(sorted(weights.items())), temperature)
        self.done.add(key)
        score = 50 + sum(self.adds[name](weight) for name, weight in weights.items())
        score += self.by_temperature.get(temperature, 0)
        rng = np.random.default_rng(crc32(repr(key).encode()))
        pairs = round(sum(100 * weight for weight in weights.values()))
        return [
            Trained({"graded": {}, "translations": {"en-es": score + self.noise * rng.normal()}}, pairs, 2.0)
            for _ in range(self.settings.seeds)
        ]


def linear(points):
    return lambda weight: points * weight


def found(known, **options):
    return search(known, **options), {each.group: each for each in search(known, **options).findings}


def test_scores_are_means_of_kinds():
    assert total({"graded": {"a": 70.0, "b": 80.0}, "translations": {"en-es": 95.0}}) == 85
    assert total({"graded": {}, "translations": {"en-es": 95.0, "en-de": 85.0}}) == 90


def test_the_standard_error_by_hand():
    # variances 1 and 4 of two differences each: their mean is 2.5, and of a mean of two 1.25
    effects = [np.array([0.0, math.sqrt(2)]), np.array([5.0, 5 + 2 * math.sqrt(2)])]
    assert standard_error(effects) == pytest.approx(math.sqrt(1.25))


def test_a_source_that_hurts_is_left_out_and_others_are_kept():
    result, of = found(Known({"good": linear(3), "idle": linear(0), "noise": linear(-5)}))
    assert {name: each.weight for name, each in of.items()} == {"good": 1, "idle": 1, "noise": 0}
    assert [of[name].effect for name in ("good", "idle", "noise")] == pytest.approx([3, 0, -5])
    assert of["noise"].by_kind == {"translations": pytest.approx(-5)} and of["noise"].pairs == 100
    assert (result.error, result.gain) == (pytest.approx(0), pytest.approx(5))


def test_a_source_that_hurts_as_a_whole_and_helps_in_part_gets_the_lower_weight():
    result, of = found(Known({"good": linear(3), "much": lambda weight: {1.0: -4, 0.3: 2}[weight]}))
    assert (of["much"].effect, of["much"].weight, result.gain) == (-4, 0.3, 6)


def test_two_that_hurt_only_together_lose_the_worse_one_alone():
    class Both(Known):
        def of_all_seeds(self, weights, temperature=1.0):
            both = weights.get("one") and weights.get("two")
            return [
                Trained({"graded": {"x": each.score - 5 * bool(both)}}, each.pairs, 1.0)
                for each in super().of_all_seeds(weights, temperature)
            ]

    _, of = found(Both({"one": linear(1), "two": linear(2), "three": linear(2)}))
    assert {name: each.weight for name, each in of.items()} == {"one": 0, "two": 1, "three": 1}


def test_what_is_not_clear_is_kept():
    result, of = found(Known({"a": linear(0), "b": linear(-0.5), "c": linear(-40)}, noise=2.0))
    assert {name: each.weight for name, each in of.items()} == {"a": 1, "b": 1, "c": 0}
    assert 0.5 < result.error < 4


def test_sources_are_added_as_long_as_the_score_rises():
    known = Known({"noise": linear(-5), "best": linear(4), "good": linear(1)}, MixSettings(seeds=2, method="add"))
    result, of = found(known)
    assert [(name, each.effect, each.weight) for name, each in of.items()] == [
        ("noise", -5, 0),
        ("best", 54, 1),
        ("good", 1, 1),
    ]
    assert (of["good"].pairs, result.gain) == (100, 5)


@given(st.lists(st.sampled_from([-3, -1, 0, 1, 3]), min_size=2, max_size=5), st.sampled_from(["leave-out", "add"]))
def test_weights_and_numbers_of_trainings(points, method):
    known = Known({str(n): linear(each) for n, each in enumerate(points)}, MixSettings(seeds=2, method=method))
    result = search(known)
    weights = [each.weight for each in result.findings]
    best_alone = method == "add" or any(each >= 0 for each in points)
    if best_alone and max(points) > 0:
        assert [weight > 0 for weight, each in zip(weights, points, strict=True) if each] == [
            each > 0 for each in points if each
        ]
    assert any(weights)
    fewest, most = most_trainings(len(points), 2, method, 0)
    assert len(known.done) * 2 <= most and (method == "add" or len(known.done) * 2 >= fewest)


def test_a_temperature_is_chosen_if_it_is_clearly_better():
    known = Known({"a": linear(1), "b": linear(1)}, by_temperature={2.0: 3.0, 5.0: 1.0})
    result = search(known, temperatures=(2.0, 5.0))
    assert (result.temperature, result.temperatures) == (2.0, {1.0: 52, 2.0: 55, 5.0: 53})
    assert "temperature: 1: 52.00, 2: 55.00, 5: 53.00; chosen: 2" in notes(result, known.settings)
    unclear = Known({name: linear(1) for name in "abcdef"}, by_temperature={2.0: 0.1}, noise=1.0)
    assert search(unclear, temperatures=(2.0,)).temperature == 1


def test_the_table_says_what_sources_add_and_cost():
    known = Known({"a": linear(0.5), "noise": linear(-5)})
    result = search(known)
    lines = table(result).splitlines()
    assert lines[0] == "| source | adds | translations | pairs | seconds | weight |"
    assert lines[2:] == ["| a | +0.50 | +0.50 | 100 | 1.0 | 1 |", "| noise | -5.00 | -5.00 | 100 | 1.0 | 0 |"]
    assert "of all others; standard error 0.00" in notes(result, known.settings)
    assert "45.50, of the mixture: 50.50 (+5.00)" in notes(result, known.settings)
    assert values(result, known.settings)["sources"][1]["weight"] == 0
