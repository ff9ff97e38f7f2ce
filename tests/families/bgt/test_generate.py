"""What models write, by which parts; the command `generate`: what it reads, writes and refuses."""

from __future__ import annotations

import io
import sys
from types import SimpleNamespace

import pytest
import torch
from support.generative import SHAPE, batch_of, new_generator

from st_paragram.cli.main import main
from st_paragram.errors import SettingsError
from st_paragram.families.bgt.beam_search import beam_search
from st_paragram.families.bgt.generate import find_side, generate
from st_paragram.families.bgt.sentence_transformers_encoder import GenerativeEncoder
from st_paragram.families.bgt.settings import GenerationSettings
from st_paragram.learning.models import load_save

QUICK = GenerationSettings(beam=2, max_length=6)


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


def write(model, task, texts, styles=None, source=None, target=None, settings=QUICK):
    return list(
        generate(model, task, zip(texts, styles or texts, strict=True), source, target, settings)
    )


@torch.inference_mode()
def test_each_task_reads_its_variables(model, vocabulary, texts):
    """A sentence comes from a language variable and its meaning, a translation from the meaning
    alone.
    """
    generator, styles = model.generator, texts[::-1]
    writable = torch.tensor([vocabulary.piece(one) is not None for one in range(len(vocabulary))])

    def mean(encoder, of):
        batch = batch_of(vocabulary, of)
        return encoder(batch.ids, batch.mask).mean

    def expected(decoder, *variables):
        latents = torch.cat([*variables, mean(generator.semantic, texts)], 1)
        found = beam_search(decoder, latents, generator.special.end, writable, 2, 6)
        return [" ".join(vocabulary.decode(one.ids).split()) for one in found]

    for side, language in (("a", "en"), ("b", "xx")):
        decoder, encoder = generator.generators[side], generator.languages[side]
        again = write(model, "reconstruct", texts, source=language)
        assert again == expected(decoder, mean(encoder, texts))
        assert write(model, "transfer", texts, styles, target=language) == expected(
            decoder, mean(encoder, styles)
        )
        translated = write(model, "translate", texts, target=language)
        assert translated == expected(generator.translators[side]) != again
    assert (
        write(model, "translate", texts, source="en")
        == write(model, "translate", texts)
        == translated
    )


def test_rows_keep_their_order_and_blank_ones_stay_blank(model, texts):
    whole = write(model, "reconstruct", texts)
    assert (
        write(model, "reconstruct", texts[::-1], settings=GenerationSettings(2, 6, batch_size=2))
        == whole[::-1]
    )
    assert write(model, "reconstruct", ["", texts[0], "  ", *texts[1:]]) == [
        "",
        whole[0],
        "",
        *whole[1:],
    ]
    assert (
        write(model, "transfer", texts[:2], [" ", texts[0]])[0] == ""
        and write(model, "reconstruct", []) == []
    )


def test_what_is_longer_than_the_positions_is_cut(model, texts):
    (written,) = write(
        model, "reconstruct", [" ".join(texts * 10)], settings=GenerationSettings(beam=1)
    )
    # it may be cut into other pieces
    assert len(model.sentencepiece.encode([written])[0]) <= SHAPE.max_length + 2
    assert write(model, "reconstruct", ["\u4e00", "\x00", "\ud800"])


@pytest.mark.parametrize(
    ("objective", "task", "languages", "message"),
    [
        ("bgt", "translate", ("en", "fr"), "no language 'fr' in this model; choose en or xx"),
        (
            "bgt",
            "translate",
            ("en", "en"),
            "cannot translate from en to en; translate needs two languages",
        ),
        (
            "english-ae",
            "transfer",
            (),
            "this model cannot transfer: its objective has no parts for this",
        ),
        (
            "english-trans",
            "translate",
            ("xx", "en"),
            "this model can translate only into xx, not into en",
        ),
    ],
)
def test_what_a_model_cannot_do_is_refused(vocabulary, objective, task, languages, message):
    with pytest.raises(SettingsError, match=message):
        find_side(made(vocabulary, objective), task, *languages)


@pytest.fixture(scope="module")
def folder(tmp_path_factory, model, pairs):
    folder = tmp_path_factory.mktemp("generate")
    load_save.save(model, folder / "bgt")
    first, second = zip(*pairs[:5], strict=True)
    for name, lines in {"en.txt": first, "xx.txt": second, "short.txt": first[:3]}.items():
        (folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return folder


def command(options):
    return main(["generate", *options.split(), "--beam", "2", "--max-length", "6"])


def test_the_command_writes_what_the_function_does(folder, monkeypatch, model, pairs, capsys):
    monkeypatch.chdir(folder)
    first, second = (list(side) for side in zip(*pairs[:5], strict=True))
    for options, expected in {
        "translate --from en --to xx en.txt": write(model, "translate", first),
        "transfer --to en --styles en.txt xx.txt": write(model, "transfer", second, first),
    }.items():
        assert command(f"bgt --task {options}") == 0
        assert capsys.readouterr().out.split("\n")[:-1] == expected
    assert command("bgt --task transfer xx.txt --style ba --output made/out.txt") == 0
    written = (folder / "made/out.txt").read_text(encoding="utf-8").split("\n")[:-1]
    assert written == write(model, "transfer", second, ["ba"] * 5)
    monkeypatch.setattr(
        sys, "stdin", SimpleNamespace(buffer=io.BytesIO(f"{first[0]}\n\n".encode()))
    )
    assert command("bgt --task reconstruct -") == 0
    assert capsys.readouterr().out.split("\n")[:-1] == [*write(model, "reconstruct", first[:1]), ""]


REFUSED = {
    "p-sp-mini --task reconstruct en.txt": (
        "a model of architecture 'averaging' has no decoders; generate needs a"
    ),
    "bgt --task reconstruct none.txt": "none.txt: No such file",
    "bgt --task transfer en.txt": "--task transfer needs a style",
    "bgt --task transfer en.txt --styles short.txt": "short.txt: ends after line 3, but the other",
    "bgt --task translate en.txt --output xx.txt": "xx.txt exists",
}


@pytest.mark.parametrize("options", REFUSED)
def test_what_cannot_be_is_refused_in_a_line(folder, monkeypatch, options, capsys):
    monkeypatch.chdir(folder)
    assert command(options) == 1
    shown = capsys.readouterr()
    assert REFUSED[options] in shown.err and shown.err.count("\n") == 1 and shown.out == ""
