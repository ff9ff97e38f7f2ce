import logging
from pathlib import Path

import pytest
from support.data import make_pairs

from st_paragram.cli.main import main
from st_paragram.core.model_directory.record import read_training_record
from st_paragram.core.tokenizers.sentencepiece import SentencePieceTokenizer, train_vocabulary
from st_paragram.errors import EvaluationError, TextError
from st_paragram.learning.models.sentence_transformers_encoder import pipeline
from st_paragram.learning.modules.token_embedding import SentencePieceEmbedding
from st_paragram.runs import development
from st_paragram.runs.development import (
    development_evaluator,
    development_pairs,
    development_translations,
)
from st_paragram.tools.cleaning import known_sentences
from st_paragram.tools.cleaning.known_sentences import KnownSets, pair_hashes, sketch
from st_paragram.tools.evaluation.files import GradedPairs, Translations
from st_paragram.tools.evaluation.scores import correlation, cosines

QUICK = [
    "--dim",
    "8",
    "--epochs",
    "2",
    "--batch-size",
    "16",
    "--megabatch-size",
    "4",
    "--anneal-interval",
    "5",
    "--device",
    "cpu",
]
TEST_SET = make_pairs(80, seed=5)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with training pairs, a test set as graded pairs and as translations, and harmless
    translations.
    """
    monkeypatch.chdir(tmp_path)
    test_set = sketch("Invented test", pair_hashes(*zip(*TEST_SET, strict=True)))
    monkeypatch.setattr(known_sentences, "_known_sets", lambda: KnownSets([test_set], []))
    Path("graded.tsv").write_text(
        "".join(f"{i % 6}\t{a}\t{b}\n" for i, (a, b) in enumerate(TEST_SET))
    )
    Path("pairs.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in make_pairs(400)))
    Path("test.tsv").write_text("".join(f"{b}\t{a}\n" for a, b in TEST_SET))
    Path("held-out.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in make_pairs(460)[400:]))
    return tmp_path


@pytest.fixture(scope="module")
def model():
    vocabulary = SentencePieceTokenizer(train_vocabulary(["a b c", "c b a", "d"] * 5, 20))
    return pipeline(SentencePieceEmbedding(vocabulary, 16), device="cpu")


def train(kind, *options):
    return main(["train", kind, "--data", "pairs.tsv", "--vocab-size", "200", *QUICK, *options])


def test_a_test_set_is_refused_with_reason_and_remedy(folder):
    with pytest.raises(EvaluationError) as refused:
        development_pairs("graded.tsv", "es")
    message = str(refused.value)
    assert (
        "\n" not in message
        and "graded.tsv: holds about 100% of the 80 pairs of Invented test" in message
    )
    assert (
        "no longer measure its quality" in message
        and "en-en" in message
        and "--force-test-set" in message
    )
    with pytest.raises(EvaluationError, match=r"Invented test.*held out.*--force-test-set"):
        development_translations("test.tsv", "es")


def test_translations_are_read_and_refused_by_row(folder, monkeypatch):
    got = development_translations("held-out.tsv", "es")
    assert (
        got.name == "held-out"
        and list(zip(got.first, got.second, strict=True)) == make_pairs(460)[400:]
    )
    for text, row in (("a\tb\n\nc\td\n", 2), ("a\tb\nc\t \n", 2), ("a\tb\tc\n", 1)):
        Path("bad.tsv").write_text(text)
        with pytest.raises(TextError, match=rf"bad\.tsv: row {row}"):
            development_translations("bad.tsv", "es")
    monkeypatch.setattr(development, "MOST_TRANSLATIONS", 59)
    with pytest.raises(EvaluationError, match="60 translations; give at most 59"):
        development_translations("held-out.tsv", "es")


def test_the_evaluators_main_figure_stays_that_of_the_graded_pairs(model):
    pairs = GradedPairs("x", ["a", "a", "b"], ["b", "c", "b"], [1.0, 2.0, 5.0])
    evaluator = development_evaluator(pairs, Translations("y", ["a", "b", "c"], ["a", "c", "b"]))
    scores = evaluator(model)  # of the translations, a finds itself
    expected = correlation(cosines(model, pairs), pairs.grades)
    assert scores[evaluator.primary_metric] == pytest.approx(expected.spearman, abs=1e-6)
    assert scores["x_pearson_cosine"] == pytest.approx(expected.pearson, abs=1e-6)
    assert scores["y_mean_accuracy"] == pytest.approx(1 / 3)


def test_training_shows_and_keeps_the_accuracy(folder, capsys, caplog):
    caplog.set_level(logging.INFO)
    assert train("bitext", "--lang", "es", "--dev-bitext", "held-out.tsv") == 0
    out = capsys.readouterr().out
    assert "translations found among 60 pairs of held-out: " in out
    lines = [text for text in caplog.messages if "held-out_mean_accuracy" in text]
    assert len(lines) == 2 and all("built-in-en-es_spearman" in text for text in lines)
    assert not any("sequential" in text for text in lines)
    before, after = read_training_record("p-sp-es").translations
    assert (before.data, before.pairs, before.model) == ("held-out", 60, "before training")
    assert before.accuracy < after.accuracy <= 1
    card = Path("p-sp-es/README.md").read_text()
    assert f"| held-out (60) | after training | {100 * after.accuracy:.1f} |" in card


def test_the_command_refuses_and_is_forced(folder, capsys, caplog):
    assert train("paraphrase", "--dev", "graded.tsv") == 1
    assert "Invented test" in capsys.readouterr().err
    assert train("bitext", "--lang", "es", "--dev-bitext", "test.tsv") == 1
    assert "Invented test" in capsys.readouterr().err and not Path("p-sp-es").exists()
    assert train("paraphrase", "--dev", "graded.tsv", "--force-test-set") == 0
    assert any("Invented test" in text for text in caplog.messages)
    assert "translations" not in Path("p-sp-en/README.md").read_text()


def test_pairs_without_a_known_token_are_left_out(model, caplog):
    graded = GradedPairs(
        "graded",
        ["ba", "", "ce", "\u200b"],
        ["ba ce", "ba", "გამარჯობა", "ce"],
        [1.0, 2.0, 3.0, 4.0],
    )
    assert development.with_known_tokens(graded, model) == GradedPairs(
        "graded", ["ba"], ["ba ce"], [1.0]
    )
    assert "graded: 3 pairs left out" in caplog.text
    translations = Translations("held-out", ["", "ba", "ce"], ["", "ce", "ba"])
    expected = Translations("held-out", ["ba", "ce"], ["ce", "ba"])
    assert development.with_known_tokens(translations, model) == expected
    assert development.with_known_tokens(expected, model) is expected
    unknown = Translations("none", ["\u200b"], ["ba"])
    assert development.with_known_tokens(unknown, model) is unknown
