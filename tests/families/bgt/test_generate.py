"""What models write, by which parts; the command `generate`: what it reads, writes and refuses."""

from __future__ import annotations

import io
import sys
from types import SimpleNamespace

import pytest
import torch
from sentence_transformers import SentenceTransformer
from support.generative import SHAPE, batch_of, new_generator

from st_paragram.cli.main import main
from st_paragram.errors import SettingsError
from st_paragram.families.bgt.generate import find_side, generate
from st_paragram.families.bgt.sentence_transformers_encoder import GenerativeEncoder
from st_paragram.families.bgt.settings import GenerationSettings
from st_paragram.learning.models import directory

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


def reconstruct(model, texts, language=None, settings=QUICK):
    return list(generate(model, "reconstruct", zip(texts, texts, strict=True), language, settings=settings))


def translate(model, texts, source=None, target=None, settings=QUICK):
    return list(generate(model, "translate", zip(texts, texts, strict=True), source, target, settings))


def transfer(model, texts, styles, language=None, settings=QUICK):
    return list(generate(model, "transfer", zip(texts, styles, strict=True), target=language, settings=settings))


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
def test_each_task_reads_its_variables(model, vocabulary, texts):
    """A sentence comes from its language variable and its meaning, a translation from the meaning alone."""
    generator, styles = model.generator, texts[::-1]
    meaning = mean(generator.semantic, vocabulary, texts)

    def expected(decoder, *variables):
        return unrolled(decoder, torch.cat([*variables, meaning], 1), vocabulary, generator.special.end, 6)

    for side, language in (("a", "en"), ("b", "xx")):
        own = mean(generator.languages[side], vocabulary, texts)
        assert reconstruct(model, texts, language, GREEDY) == expected(generator.generators[side], own)
        of_styles = mean(generator.languages[side], vocabulary, styles)
        assert transfer(model, texts, styles, language, GREEDY) == expected(generator.generators[side], of_styles)
    into_xx = translate(model, texts, settings=GREEDY)
    assert into_xx == translate(model, texts, "en", settings=GREEDY) == expected(generator.translators["b"])
    into_en = translate(model, texts, "xx", "en", GREEDY)
    assert into_en == translate(model, texts, "xx", None, GREEDY) == expected(generator.translators["a"])


@torch.inference_mode()
def test_a_model_without_language_variables_writes_out_of_the_meaning(vocabulary, texts):
    alone = made(vocabulary, "english-ae")
    latents = mean(alone.generator.semantic, vocabulary, texts)
    expected = unrolled(alone.generator.generators["a"], latents, vocabulary, alone.generator.special.end, 6)
    assert reconstruct(alone, texts, settings=GREEDY) == expected


def test_batches_the_order_of_sentences_and_blank_ones_change_nothing(model, texts):
    whole = reconstruct(model, texts, "en", QUICK)
    backwards = reconstruct(model, texts[::-1], "en", GenerationSettings(beam=2, max_length=6, batch_size=5))
    assert whole == backwards[::-1]
    written = reconstruct(model, ["", texts[0], "  ", *texts[1:], ""], "en", QUICK)
    assert written == ["", whole[0], "", *whole[1:], ""]
    assert transfer(model, texts[:2], [" ", texts[0]], settings=QUICK)[0] == "" and reconstruct(model, [], "en") == []


def test_sentences_are_read_as_they_are_written(model, texts):
    settings, read = GenerationSettings(beam=1, max_length=2, batch_size=2), []
    rows = ((read.append(text) or text, text) for text in texts * 20)
    told = []
    written = generate(model, "reconstruct", rows, settings=settings, done=told.append)
    next(written)
    assert len(read) == 32
    assert 1 + len(list(written)) == sum(told) == len(texts) * 20


def test_what_is_longer_than_the_positions_is_cut(model, texts):
    written = reconstruct(model, [" ".join(texts * 10)], "en", GenerationSettings(beam=1))
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
    ],
)
def test_what_a_model_cannot_do_is_refused(vocabulary, objective, task, languages, message):
    with pytest.raises(SettingsError, match=message):
        find_side(made(vocabulary, objective), task, *languages)


def test_an_encoder_alone_writes_nothing(model, texts):
    with pytest.raises(SettingsError, match="a SentenceTransformer is an encoder alone; generate needs a directory"):
        reconstruct(SentenceTransformer(modules=list(model)), texts)


# The command.


@pytest.fixture(scope="module")
def folder(tmp_path_factory, model, vocabulary, pairs):
    """A model, one that only translates, and texts."""
    folder = tmp_path_factory.mktemp("generate")
    directory.save(model, folder / "bgt")
    directory.save(made(vocabulary, "bilingual-trans"), folder / "trans")
    first, second = zip(*pairs[:5], strict=True)
    for name, lines in {"en.txt": first, "xx.txt": second, "short.txt": first[:3], "empty.txt": ()}.items():
        (folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    (folder / "old.txt").write_text("old")
    return folder


def command(*arguments):
    return main(["generate", *arguments, "--beam", "2", "--max-length", "6"])


def test_each_task_writes_what_its_function_does(folder, monkeypatch, model, pairs, capsys):
    monkeypatch.chdir(folder)
    first, second = (list(side) for side in zip(*pairs[:5], strict=True))
    asked = {
        "reconstruct --from xx xx.txt": reconstruct(model, second, "xx", QUICK),
        "translate --from en --to xx en.txt": translate(model, first, "en", "xx", QUICK),
        "transfer --to en --styles en.txt xx.txt": transfer(model, second, first, "en", QUICK),
    }
    for options, expected in asked.items():
        assert command("bgt", "--task", *options.split()) == 0
        assert capsys.readouterr().out.split("\n")[:-1] == expected
    assert command("bgt", "--task", "transfer", "xx.txt", "--style", first[0], "--output", "made/out.txt") == 0
    written = transfer(model, second, first[:1] * 5, "en", QUICK)
    assert (folder / "made/out.txt").read_text(encoding="utf-8").split("\n")[:-1] == written
    text = f"{first[0]}\n\n  \n{first[1]}"
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(text.encode())))
    assert command("bgt", "--task", "reconstruct", "-", "--batch-size", "1") == 0
    expected = reconstruct(model, first[:2], "en", QUICK)
    assert capsys.readouterr().out.split("\n")[:-1] == [expected[0], "", "", expected[1]]


REFUSED = {
    "p-sp-mini --task reconstruct en.txt": "a model of architecture 'averaging', an encoder alone; generate",
    "bgt/language-en --task reconstruct en.txt": "needs a directory made by `st-paragram train bgt`",
    "bgt --task reconstruct none.txt": "none.txt: No such file",
    "bgt --task reconstruct empty.txt": "empty.txt: empty; give a text",
    "bgt --task reconstruct en.txt --from fr": "no language 'fr' in this model; it knows en and xx",
    "trans --task reconstruct en.txt": "this model cannot reconstruct: language encoders: none",
    "bgt --task transfer en.txt": "a transfer needs a style",
    "bgt --task transfer en.txt --style a --styles en.txt": "either --style SENTENCE or",
    "bgt --task transfer en.txt --styles short.txt": "short.txt: ends after line 3, but another",
    "bgt --task transfer - --styles -": "two files are standard input",
    "bgt --task translate en.txt --style a": "a style for --task translate",
    "bgt --task translate en.txt --output old.txt": "old.txt exists",
}


@pytest.mark.parametrize("arguments", REFUSED)
def test_what_cannot_be_is_refused_in_a_line(folder, monkeypatch, arguments, capsys):
    monkeypatch.chdir(folder)
    assert command(*arguments.split()) == 1
    shown = capsys.readouterr()
    assert REFUSED[arguments] in shown.err and shown.err.count("\n") == 1 and shown.out == ""
