"""What models write, by which parts, and the measures of it."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from support.generative import SHAPE, batch_of, new_generator

from st_paragram.errors import MissingExtraError, SettingsError, TextError
from st_paragram.families.bgt.generation import measures
from st_paragram.families.bgt.generation.bleu import CorpusBleu
from st_paragram.families.bgt.generation.generate import Route, find_route, generate, reconstruct, transfer, translate
from st_paragram.families.bgt.generation.report import Report
from st_paragram.families.bgt.generation.rows import Row, read_rows
from st_paragram.families.bgt.generation.settings import GenerationSettings
from st_paragram.families.bgt.sentence_transformers_encoder import GenerativeEncoder

QUICK = GenerationSettings(beam=2, max_length=6)
GREEDY = GenerationSettings(beam=1, max_length=6)


def made(vocabulary, objective="bgt"):
    generator = new_generator(vocabulary, objective)
    return GenerativeEncoder.of(generator.semantic.pipeline, ("en", "xx"), vocabulary, generator)


@pytest.fixture(scope="module")
def model(vocabulary):
    torch.manual_seed(5)
    return made(vocabulary)


@pytest.fixture(scope="module")
def texts(pairs):
    return [text for pair in pairs[:6] for text in pair]


def mean(encoder, vocabulary, texts):
    batch = batch_of(vocabulary, texts)
    return encoder(batch.ids, batch.mask).mean


def unrolled(decoder, latents, vocabulary, end, most):
    """Texts of the likeliest next pieces, sentence by sentence."""
    texts = []
    for latent in latents:
        ids = []
        while len(ids) < most:
            logits = decoder.next_logits(torch.tensor([[end, *ids]]), latent[None])[0].tolist()
            allowed = [one for one in range(len(vocabulary)) if vocabulary.piece(one) or (one == end and ids)]
            best = max(allowed, key=lambda one: logits[one])
            if best == end:
                break
            ids.append(best)
        texts.append(" ".join(vocabulary.decode(ids).split()))
    return texts


@torch.inference_mode()
@pytest.mark.parametrize("language", ["en", "xx"])
def test_a_sentence_is_written_out_of_its_language_variable_and_then_its_meaning(model, vocabulary, texts, language):
    side, generator = {"en": "a", "xx": "b"}[language], model.generator
    parts = [mean(generator.languages[side], vocabulary, texts), mean(generator.semantic, vocabulary, texts)]
    expected = unrolled(generator.generators[side], torch.cat(parts, 1), vocabulary, generator.special.end, 6)
    assert reconstruct(model, texts, language, GREEDY) == expected


@torch.inference_mode()
def test_a_translation_is_written_out_of_the_meaning_alone(model, vocabulary, texts):
    generator = model.generator
    latents = mean(generator.semantic, vocabulary, texts)
    expected = unrolled(generator.translators["b"], latents, vocabulary, generator.special.end, 6)
    assert translate(model, texts, settings=GREEDY) == translate(model, texts, "en", settings=GREEDY) == expected
    expected = unrolled(generator.translators["a"], latents, vocabulary, generator.special.end, 6)
    assert translate(model, texts, "xx", "en", GREEDY) == translate(model, texts, "xx", None, GREEDY) == expected


@torch.inference_mode()
def test_a_transfer_has_the_language_variable_of_the_style(model, vocabulary, texts):
    styles, generator = texts[::-1], model.generator
    parts = [mean(generator.languages["a"], vocabulary, styles), mean(generator.semantic, vocabulary, texts)]
    expected = unrolled(generator.generators["a"], torch.cat(parts, 1), vocabulary, generator.special.end, 6)
    assert transfer(model, texts, styles, settings=GREEDY) == expected
    assert transfer(model, texts, texts, "xx", QUICK) == reconstruct(model, texts, "xx", QUICK)


@torch.inference_mode()
def test_a_model_without_language_variables_writes_out_of_the_meaning(vocabulary, texts):
    alone = made(vocabulary, "english-ae")
    latents = mean(alone.generator.semantic, vocabulary, texts)
    expected = unrolled(alone.generator.generators["a"], latents, vocabulary, alone.generator.special.end, 6)
    assert reconstruct(alone, texts, settings=GREEDY) == expected


def test_blank_sentences_give_blank_ones_and_change_no_others(model, texts):
    with_blanks = ["", texts[0], "  ", *texts[1:], ""]
    written = reconstruct(model, with_blanks, "en", QUICK)
    assert [written[0], written[2], written[-1]] == ["", "", ""]
    assert [written[1], *written[3:-1]] == reconstruct(model, texts, "en", QUICK)
    assert transfer(model, texts[:2], [" ", texts[0]], settings=QUICK)[0] == ""
    assert reconstruct(model, [], "en") == []


def test_batches_and_the_order_of_sentences_change_nothing(model, texts):
    whole = translate(model, texts, settings=QUICK)
    assert whole == translate(model, texts, settings=GenerationSettings(beam=2, max_length=6, batch_size=1))
    assert whole == translate(model, texts[::-1], settings=GenerationSettings(beam=2, max_length=6, batch_size=5))[::-1]


def test_sentences_are_read_as_they_are_written(model, texts):
    settings, read = GenerationSettings(beam=1, max_length=2, batch_size=2), []
    rows = ((read.append(text) or text, "") for text in texts * 20)
    told = []
    written = generate(model, Route("reconstruct", "a", "en"), rows, settings, told.append)
    next(written)
    assert len(read) == 32
    assert 1 + len(list(written)) == sum(told) == len(texts) * 20


def test_what_is_longer_than_the_positions_is_cut(model, texts):
    long = " ".join(texts * 10)
    written = reconstruct(model, [long], "en", GenerationSettings(beam=1))
    assert len(model.sentencepiece.encode(written)[0]) <= SHAPE.max_length + 2  # it may be cut into other pieces
    assert reconstruct(model, ["\u4e00", "\x00", "\ud800"], "en", QUICK)


@pytest.mark.parametrize(
    ("objective", "task", "languages", "message"),
    [
        ("bgt", "translate", ("en", "fr"), "no language 'fr' in this model; it knows en and xx"),
        ("bgt", "translate", ("en", "en"), "a translation from en to en; name two languages"),
        ("bgt", "reconstruct", ("en", "xx"), "a reconstruction from en to xx; name one language"),
        ("english-ae", "translate", (), "cannot translate: language encoders: none; generators: en; translators: none"),
        ("english-ae", "transfer", (), "cannot transfer: language encoders: none"),
        ("english-ae", "reconstruct", ("xx",), "cannot reconstruct in xx"),
        ("english-trans", "translate", ("xx", "en"), "cannot translate into en: .*; translators: xx$"),
        ("bilingual-trans", "reconstruct", (), "cannot reconstruct: .*generators: none; translators: en and xx"),
        ("bilingual-trans", "transfer", (), "cannot transfer"),
    ],
)
def test_what_a_model_cannot_do_is_refused(vocabulary, objective, task, languages, message):
    with pytest.raises(SettingsError, match=message):
        find_route(made(vocabulary, objective), task, *languages)


def test_what_else_is_refused(model, texts):
    with pytest.raises(SettingsError, match="12 sentences and 1 styles"):
        transfer(model, texts, texts[:1])
    with pytest.raises(SettingsError, match="a SentenceTransformer is an encoder alone; generate needs a directory"):
        reconstruct(SentenceTransformer(modules=list(model)), texts)


def test_rows_of_files(tmp_path):
    for name, text in {"two": "a\u2028b\r\n\n", "same": "x\ny\n", "one": "x\n", "none": ""}.items():
        (tmp_path / name).write_text(text, encoding="utf-8", newline="")
    two, same, one, none = (str(tmp_path / name) for name in ("two", "same", "one", "none"))
    assert list(read_rows(two, references=same)) == [Row("a\u2028b", None, "x"), Row("", None, "y")]
    assert [row.blank for row in read_rows(same, styles=two)] == [False, True]
    with pytest.raises(TextError, match="one: ends after line 1, but another file goes on"):
        list(read_rows(two, one))
    with pytest.raises(TextError, match="none: empty"):
        list(read_rows(none))


def test_words_and_marks():
    text = "¿Don't  YOU—co-operate, 3rd “time” … हिन्दी?"
    assert measures.words(text) == ["don't", "you", "co-operate", "3rd", "time", "हिन्दी"]
    assert measures.marks(text) == ["¿", "—", ",", "“", "”", ".", ".", ".", "?"]


@pytest.mark.parametrize(
    ("function", "output", "other", "expected"),
    [
        ("length_agreement", "one two three", "one, two!", 2 / 3),
        ("length_agreement", "one", "one two three four", 1 / 4),
        ("length_agreement", "", "one", 0),
        ("length_agreement", "", "?", 1),
        ("mark_agreement", "a, b, c.", "a, b!", 2 * 1 / 5),
        ("mark_agreement", "a, b, c.", ", , .", 1),
        ("mark_agreement", "a", "b", 1),
        ("mark_agreement", "a", "b.", 0),
        ("word_overlap", "the cat the dog", "The cat.", 2 / 4),
        ("word_overlap", "?", "the cat", 0),
        ("is_copy", " It　is\tＦine", "it is fine", True),
        ("is_copy", "it is fine", "it is fine.", False),
    ],
)
def test_measures_by_hand(function, output, other, expected):
    assert getattr(measures, function)(output, other) == pytest.approx(expected)


class Scorer:
    """Embeds a text as the numbers of its a's and of its b's."""

    def encode(self, texts, **_):
        rows = np.array([[text.count("a"), text.count("b")] for text in texts], np.float32)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_measures_of_sentences():
    plain = measures.measure(Scorer(), ["a b", "aa"], ["A: b b ba a", "aa"])
    assert plain[1] == measures.Measures(1.0, 1.0, 1.0)
    assert plain[0].cosine == pytest.approx(5 / np.sqrt(2 * 13))
    assert (plain[0].copies_source, plain[0].words_of_source, plain[0].marks) == (0, 1, None)
    styled = measures.measure(Scorer(), ["a b!"], ["b a"], ["A, b! c d"])[0]
    assert styled == measures.Measures(pytest.approx(1), 0, 1, 0.5, 0, pytest.approx(2 / 3), 0, 1)
    assert list(styled.titled()) == list(measures.TITLES.values())


def test_a_report_of_batches_has_the_means_of_all_rows_and_the_bleu_of_the_whole():
    sacrebleu = pytest.importorskip("sacrebleu")
    outputs, references = ["a b a b a", "b b a", "a"], ["A b a b b", "b b a c, d", "b"]
    report = Report(Scorer(), CorpusBleu("en"))
    report.add(outputs[:2], outputs[1::-1], None, references[:2])
    report.add(outputs[2:], outputs[2:], None, references[2:])
    found, values = report.means(), measures.measure(Scorer(), outputs, [outputs[1], outputs[0], outputs[2]])
    assert found.pop("BLEU") == pytest.approx(sacrebleu.corpus_bleu(outputs, [references], lowercase=True).score)
    assert found["cosine with source"] == pytest.approx(np.mean([one.cosine for one in values]))
    assert found["equal to source"] == pytest.approx(1 / 3)
    assert report.table().startswith("| of 3 sentences | mean |") and "| BLEU |" in report.table()
    assert Report(Scorer()).table().endswith("| nothing written | - |")


def test_bleu_needs_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "sacrebleu.metrics", None)
    with pytest.raises(MissingExtraError, match=r"st_paragram\[generation\]"):
        CorpusBleu("en")
