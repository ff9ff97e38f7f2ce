"""The filter for OpusFilter, which is not installed for tests: a stand-in has its base class's methods."""

import importlib
import sys
import types

import pytest

from st_paragram import Encoder, sample_pairs


class FilterABC:
    """As OpusFilter 3 has it."""

    def __init__(self, name=None, workdir=""):
        self.name, self.workdir = name, workdir

    def decisions(self, pairs):
        for score in self.score(pairs):
            yield self.accept(score)


@pytest.fixture
def module(monkeypatch):
    monkeypatch.setitem(sys.modules, "opusfilter", types.SimpleNamespace(FilterABC=FilterABC, CLEAN_HIGH="clean_high"))
    yield importlib.import_module("st_paragram.tools.opusfilter")  # as the key `module` does
    sys.modules.pop("st_paragram.tools.opusfilter")


def test_translations_stay_and_others_go(module, monkeypatch):
    monkeypatch.setattr(module, "_BLOCK", 7)
    pairs = list(sample_pairs("es", 20))
    wrong = [(first, pairs[row - 10][1]) for row, (first, _) in enumerate(pairs)]
    cosines = module.CosineFilter(model="p-sp-mini", threshold=0.6, workdir="w", name="n")
    scores = list(cosines.score(iter(pairs)))
    encoder = Encoder()
    for (first, second), score in zip(pairs, scores, strict=True):
        assert score == pytest.approx(float(encoder.similarity(*encoder.encode([first, second]))[0, 0]), abs=1e-5)
    kept = list(cosines.filter(pairs + wrong))
    assert kept == [pair for pair in pairs + wrong if cosines.accept(next(cosines.score([pair])))]
    assert len(set(kept) & set(pairs)) > 15 and len(set(kept) & set(wrong)) < 5
    assert (cosines.workdir, cosines.name, list(cosines.score([]))) == ("w", "n", [])
