"""Make the published models: prepare their text, train, pack and score them, and write their cards.

    python recipes/release.py --texts texts --output release --benchmarks eval --workers 2
    python recipes/release.py --texts texts --output release --only p-sp-mini-float32

`texts` has a file for each source and language, such as `texts/es/quran.tsv.xz` (rows `english TAB
other`; `texts/en` has paraphrases). recipes/release.yaml describes the models, and the license of
each source. If a run is interrupted, the same command resumes it. Existing folders are skipped:
remove a folder to rebuild the model.
"""

import argparse
import random
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from huggingface_hub import ModelCard

import st_paragram
from st_paragram.cli.main import main as st_paragram_command
from st_paragram.cli.main import run_reporting_errors
from st_paragram.conversion.use_import import import_use
from st_paragram.core.files import write_text
from st_paragram.core.formatting import markdown_table
from st_paragram.core.languages import LANGUAGES
from st_paragram.core.model_directory.card import blocks, render
from st_paragram.core.model_directory.configuration import (
    CONFIG_FILE,
    read_configuration,
    table_note,
)
from st_paragram.core.model_directory.languages import pieces_in, write_languages
from st_paragram.core.model_directory.model_files import model_digest
from st_paragram.core.model_directory.record import read_training_record
from st_paragram.core.settings import read_yaml
from st_paragram.core.text.parallel import TextSource, read_pairs
from st_paragram.core.tokenizers.base import Tokenizer
from st_paragram.core.tokenizers.character_map import with_rules
from st_paragram.core.tokenizers.characters import ARABIC, CHARACTERS, simplified_characters
from st_paragram.core.tokenizers.sentencepiece import SentencePieceTokenizer, train_vocabulary
from st_paragram.core.tokenizers.spelling import spelling_rules
from st_paragram.errors import SettingsError
from st_paragram.hub import add_scores, scores_of
from st_paragram.learning.models.card import from_record
from st_paragram.learning.modules.token_embedding import TokenEmbedding
from st_paragram.learning.training.checkpoints import complete_checkpoints
from st_paragram.runs.families import facts_of
from st_paragram.runs.run import TrainingRun, run_training
from st_paragram.tools.evaluation.scores import read_scores
from st_paragram.tools.preparation.prepare import prepare
from st_paragram.tools.preparation.settings import PrepareSettings

#: The entries of a model in release.yaml.
KEYS = {
    "languages",
    "config",
    "settings",
    "preparation",
    "open_only",
    "leave_out",
    "caps",
    "begin_with",
    "pack",
    "license",
    "rules",
    "spelling",
}

#: Sentences of the cards.
ARABIC_AND_CHINESE = (
    "Variants of Arabic letters are read as one letter, without vowel signs, and traditional"
    " Chinese as simplified."
)
OTHER_CHARACTERS = (
    "Invisible characters are left out, and decimal digits of all scripts are read as 0 to 9."
)
SPELLINGS = (
    "Spellings that writers exchange are read as one: quotation marks and dashes, letters of"
    " Romanian, Russian and Urdu, vowel points of Hebrew, joined letters of Malayalam and"
    " Devanagari, tone marks of Vietnamese, and Latin letters in Cyrillic words."
)


def source_of(path: str | Path) -> str:
    """Return the source of a text, which is the name of its file."""
    return Path(path).name.partition(".tsv")[0]


def texts_of(
    name: str, model: dict[str, Any], sources: dict[str, Any], folder: Path
) -> list[TextSource]:
    """Return the texts that a model may be trained on, language by language."""
    if unknown := sorted(set(model) - KEYS):
        raise SettingsError(
            f"{name}: unknown entry {unknown[0]!r}; known entries: {', '.join(sorted(KEYS))}"
        )
    texts = []
    for language in model["languages"]:
        paths = {path: source_of(path) for path in sorted((folder / language).glob("*.tsv*"))}
        if nameless := [path for path, source in paths.items() if source not in sources]:
            raise SettingsError(
                f"{nameless[0]}: a source without a license; describe it under `sources`"
            )
        wanted = {
            path: source
            for path, source in paths.items()
            if source not in model.get("leave_out", [])
            and (sources[source].get("open") or not model.get("open_only"))
        }
        if not wanted:
            raise SettingsError(
                f"{folder / language}: no text to train {name} on; put SOURCE.tsv files there"
            )
        caps = model.get("caps", {})
        texts += [
            TextSource((str(path),), ("en", language), cap=caps.get(each))
            for path, each in wanted.items()
        ]
    return texts


def rules_of(name: str, model: dict[str, Any], unihan: Path | None) -> dict[str, str]:
    """Return the rules that a vocabulary is trained with: Arabic letters, traditional Chinese, and
    with `spelling` those of `CHARACTERS` and of spellings that writers exchange.
    """
    if not model.get("rules"):
        return {}
    if unihan is None:
        raise SettingsError(
            f"{name} is to read traditional Chinese as simplified; give --unihan"
            " Unihan_Variants.txt"
        )
    rules = ARABIC | simplified_characters(unihan)
    return rules | CHARACTERS | spelling_rules() if model.get("spelling") else rules


def word_rows(pairs: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Put word pairs into rows of four to seven at random, each pair into two rows: single words
    are too short.
    """
    words, rng = list(pairs), random.Random(0)
    for _ in range(2):
        rng.shuffle(words)
        start = 0
        while start < len(words):
            end = start + rng.randint(4, 7)
            first, second = zip(*words[start:end], strict=True)
            yield " ".join(first), " ".join(second)
            start = end


def with_word_rows(
    texts: list[TextSource], sources: dict[str, Any], folder: Path
) -> list[TextSource]:
    """Write the texts that are lists of words as rows of several words, unless they exist; other
    texts stay.
    """
    written = []
    for text in texts:
        source = source_of(text.paths[0])
        if sources[source].get("words"):
            rows = folder / Path(text.paths[0]).parent.name / f"{source}.tsv"
            if not rows.exists():
                write_text(
                    rows, "".join("\t".join(row) + "\n" for row in word_rows(read_pairs(text)))
                )
            text = replace(text, paths=(str(rows),))
        written.append(text)
    return written


def vocabulary_with_rules(
    texts: list[TextSource], settings: PrepareSettings, rules: Mapping[str, str]
) -> SentencePieceTokenizer:
    """Train a vocabulary that reads some characters as others, on the same number of sentences of
    each language.
    """
    sample, seen, rng = (
        defaultdict[str, list[str]](list),
        Counter[str](),
        random.Random(settings.seed),
    )
    most = 2 * settings.sample_pairs // len({code for text in texts for code in text.languages})
    for text in texts:
        for row in read_pairs(text):
            for code, sentence in zip(text.languages, row, strict=True):
                seen[code] += 1
                if len(sample[code]) < most:
                    sample[code].append(sentence)
                # each sentence has the same chance to stay
                elif (place := rng.randrange(seen[code])) < most:
                    sample[code][place] = sentence
    small = train_vocabulary(["a b c"], size=8, characters={})
    normalizer = SentencePieceTokenizer(with_rules(small, rules)).processor
    sentences = (
        normalizer.normalize(sentence.lower()).replace("\u2581", " ")  # its mark for spaces
        for code in sorted(sample)
        for sentence in sample[code]
    )
    content = train_vocabulary(
        sentences,
        size=settings.pieces(0),
        character_coverage=settings.coverage,
        num_threads=settings.vocab_threads,
        seed=settings.seed,
        characters={},
    )
    return SentencePieceTokenizer(with_rules(content, rules), lower_case=True)


def train(
    name: str,
    model: dict[str, Any],
    texts: list[TextSource],
    sources: dict[str, Any],
    rules: Mapping[str, str],
    arguments: argparse.Namespace,
) -> None:
    """Prepare the texts and train a model, or resume its training."""
    language, settings, vocabulary = (
        "-".join(model["languages"]),
        dict(model.get("settings", {})),
        None,
    )
    if first := model.get("begin_with"):  # a model of the release, with its pieces and embeddings
        settings["init"] = str(arguments.output / first)
        vocabulary = cast("SentencePieceTokenizer", st_paragram.Encoder(settings["init"]).tokenizer)
    use = arguments.output / "use"  # the published multilingual USE
    if settings.get("init") == "use":
        if not use.exists():
            import_use(use)
        settings["init"] = str(use)
    preparation = PrepareSettings(("en", language), **model.get("preparation", {}))
    store = arguments.output / "stores" / f"{name}.h5"
    if not store.exists():
        if rules and vocabulary is None:
            sentences = [
                text for text in texts if not sources[source_of(text.paths[0])].get("words")
            ]
            vocabulary = vocabulary_with_rules(sentences, preparation, rules)
        texts = with_word_rows(texts, sources, store.with_suffix(".words"))
        prepare(texts, store, preparation, vocabulary, workers=arguments.workers, overwrite=True)
    about, config = f"{len(texts)} texts of the sources below", model.get("config", "short")
    run = TrainingRun(
        language, arguments.output / name, [str(store)], about, config, overrides=settings
    )
    run_training(
        replace(run, development=arguments.dev, resume=bool(complete_checkpoints(run.checkpoints)))
    )


def with_characters(tokenizer: Tokenizer) -> SentencePieceTokenizer:
    """Add `CHARACTERS` to a vocabulary that was trained with other rules."""
    return SentencePieceTokenizer(with_rules(tokenizer.content, CHARACTERS), **tokenizer.options)


def add_languages(folder: Path, texts: list[TextSource], tokenizer: Tokenizer) -> None:
    """Record the pieces that a tokenizer finds in the texts of each language."""
    pieces = dict[str, Any]()
    for text in texts:
        for side, language in enumerate(text.languages):
            found = pieces_in((row[side] for row in read_pairs(text)), tokenizer)
            pieces[language] = pieces.get(language, False) | found
    write_languages(folder, pieces)


def describe(
    folder: Path,
    original: str,
    model: dict[str, Any],
    sources: dict[str, Any],
    benchmarks: Path | None,
) -> None:
    """Score a model and write its card, with training record, sources, licenses and scores, unless
    that was done.
    """
    readme, heading = folder / "README.md", "Sources"
    if readme.exists() and f"\n## {heading}\n" in readme.read_text(encoding="utf-8"):
        return
    record, values = read_training_record(folder), read_configuration(folder).values
    assert record is not None  # written by `train`
    pairs: dict[str, list[str]] = {}
    for text in record.preparation["report"]["sources"]:
        source, count = source_of(text["name"]), text["rows"]
        count = min(count, model.get("caps", {}).get(source, count))
        pairs.setdefault(source, []).append(f"{Path(text['name']).parent.name} {count:,}")
    rows = [
        (source, ", ".join(counts), sources[source]["license"], sources[source].get("from", ""))
        for source, counts in sorted(pairs.items())
    ]
    about = (
        "The training data before preparation, and the license of each source. Word lists count in"
        " rows of 4 to 7."
    )
    notes = dict.fromkeys(sources[source].get("note", "") for source in sorted(pairs))
    section = (
        heading,
        blocks(about, markdown_table(("source", "pairs", "license", "from"), rows), *notes),
    )
    record, license = replace(record, name=folder.name), model.get("license", "other")
    card = from_record(
        record, facts_of(record), values["embedding_dimension"], license, sources=False
    )
    copy = (
        ""
        if folder.name == original
        else f"A smaller copy of {original}: its first dimensions, rounded."
    )
    reads = ARABIC_AND_CHINESE if model.get("rules") else ""
    if copy or not reads or model.get("spelling"):
        reads = f"{reads} {OTHER_CHARACTERS}".strip()
    if model.get("spelling"):
        reads = f"{reads} {SPELLINGS}"
    card = replace(
        card,
        summary=blocks(card.summary, copy, reads),
        stock=card.stock and values["table_type"] != "int4",
        sections=(*card.sections, section),
        languages=tuple(sorted({"en", *model["languages"]})),
    )
    written: Any = ModelCard(render(card))
    if benchmarks:
        scores = folder.parent / "scores" / f"{folder.name}.json"
        others = []
        for language in sorted({*model["languages"]} - {"en"}):
            codes = LANGUAGES[language].test_codes
            if any((benchmarks / "tatoeba" / f"{code}-eng.tsv").exists() for code in codes):
                others.append(language)
        wanted = ["sts", "tatoeba", "--languages", *others] if others else ["sts"]
        command = [
            "evaluate",
            str(folder),
            "--data",
            str(benchmarks),
            "--json",
            str(scores),
            "--benchmarks",
            *wanted,
        ]
        digest = model_digest(folder)
        is_scored = scores.exists() and any(score.digest == digest for score in read_scores(scores))
        if not is_scored and st_paragram_command(command):
            raise SystemExit(1)
        add_scores(written, folder.name, scores_of(folder, [scores]))
    write_text(readme, str(written) + table_note(values["table_type"]))


def main() -> int:
    """Make the missing models, and print their folders."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--texts", type=Path, required=True, metavar="DIR", help="folder of texts, LANG/SOURCE.tsv"
    )
    parser.add_argument(
        "--output", type=Path, required=True, metavar="DIR", help="output folder for the models"
    )
    default = Path(__file__).with_name("release.yaml")
    parser.add_argument(
        "--config", type=Path, default=default, help="description of models (default: %(default)s)"
    )
    parser.add_argument(
        "--only", nargs="+", default=[], metavar="MODEL", help="models to make (default: all)"
    )
    parser.add_argument(
        "--dev", type=Path, metavar="FILE.tsv", help="development pairs (default: built-in pairs)"
    )
    parser.add_argument(
        "--benchmarks",
        type=Path,
        metavar="DIR",
        help="evaluation data, as for `st-paragram evaluate`",
    )
    about = "Unihan_Variants.txt of Unicode's Unihan.zip, for traditional Chinese characters"
    parser.add_argument("--unihan", type=Path, metavar="FILE", help=about)
    parser.add_argument(
        "--workers", type=int, default=1, metavar="N", help="processes for preparation (default: 1)"
    )
    arguments = parser.parse_args()
    release = read_yaml(arguments.config)
    models, sources = release["models"], release["sources"]
    if unknown := [name for name in arguments.only if name not in models]:
        raise SettingsError(
            f"no model {unknown[0]!r} in {arguments.config}; it has {', '.join(models)}"
        )
    chosen = {name: models[name] for name in arguments.only or models}
    texts = {
        name: texts_of(name, model, sources, arguments.texts) for name, model in chosen.items()
    }
    missing = [name for name in chosen if not (arguments.output / name / CONFIG_FILE).exists()]
    rules = {name: rules_of(name, models[name], arguments.unihan) for name in missing}
    for name, model in chosen.items():
        folder, packed = (
            arguments.output / name,
            [arguments.output / copy["name"] for copy in model.get("pack", [])],
        )
        if name in missing:
            train(name, model, texts[name], sources, rules[name], arguments)
        for output, copy in zip(packed, model.get("pack", []), strict=True):
            if not (output / CONFIG_FILE).exists():
                whole = st_paragram.load(folder, device="cpu", truncate_dim=copy.get("dim"))
                embedding = cast("TokenEmbedding", whole[0])
                tokenizer = embedding.tokenizer
                if model.get("rules") and not model.get("spelling"):
                    embedding.tokenizer = with_characters(tokenizer)
                st_paragram.save(
                    whole, output, dtype=copy["dtype"], training=read_training_record(folder)
                )
                if copy.get("languages"):
                    add_languages(output, texts[name], tokenizer)
        for output in (folder, *packed):
            describe(output, name, model, sources, arguments.benchmarks)
            print(output)
    return 0


if __name__ == "__main__":
    sys.exit(run_reporting_errors("release", main))
