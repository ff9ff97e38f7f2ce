"""Upload a model directory to the Hugging Face hub in one commit, private by default."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml
from huggingface_hub import CommitOperationAdd, EvalResult, HfApi, ModelCard, constants
from huggingface_hub.errors import HfHubHTTPError

from st_paragram.core.encoding.encoder import Encoder
from st_paragram.core.files import names_of
from st_paragram.core.formatting import counted, markdown_table
from st_paragram.core.model_directory.card import (
    LICENSE,
    NO_LICENSE,
    Card,
    render,
    without_record,
)
from st_paragram.core.model_directory.configuration import (
    AVERAGING,
    read_configuration,
    table_note,
)
from st_paragram.core.model_directory.find import find
from st_paragram.core.model_directory.model_files import model_digest
from st_paragram.core.model_directory.record import read_training_record, training_text
from st_paragram.errors import (
    EvaluationError,
    ModelDirectoryError,
    ParagramError,
    SettingsError,
    one_line,
    refused,
    short,
)
from st_paragram.families.loading import load
from st_paragram.learning.models import load_save
from st_paragram.learning.models.card import from_record, score_entry
from st_paragram.runs.families import facts_of
from st_paragram.tools.evaluation.scores import Score, read_scores

logger = logging.getLogger(__name__)

TOKEN_VARIABLE = "HF_TOKEN"
_TOKEN = re.compile(r"hf_[A-Za-z0-9]{4,}|(?<=Bearer )\S+")
_SCORES = "Scores on test sets"
_ROUNDING = 1e-6  # of scores


class HubError(ParagramError):
    """A model that could not be uploaded: no token, a refusal by the hub, or no network."""


@dataclass(frozen=True)
class PushReport:
    """What was uploaded, or would be uploaded."""

    repository: str  # `owner/name`
    files: Mapping[str, int]  # name -> bytes, for the model and its card
    license: str | None  # hub identifier on the card; None if no license has been chosen
    commit: str | None = None  # commit on the hub; None for a dry run, like the following fields
    url: str | None = None  # address of this commit
    private: bool | None = None  # whether the repository is private


def push(
    model: str | Path,
    repository: str,
    *,
    public: bool = False,
    message: str | None = None,
    license: str | None = None,
    datasets: str | Sequence[str] = (),
    scores: str | Path | Sequence[str | Path] = (),
    dry_run: bool = False,
    token: str | None = None,
) -> PushReport:
    """Upload a model; files that are already on the hub are not sent again, and no files are
    removed there.

    The directory is not changed. Its card is uploaded with the repository's name in its code
    snippets.

    Args:
        model: The model's directory, name or hub id, as for `st_paragram.load`.
        repository: `owner/name` on the hub; created if missing.
        public: Make the repository public. Otherwise a new repository is private, and a public
            repository is refused.
        message: Commit message.
        license: Hub identifier of a license for the card, such as "cc-by-4.0".
        datasets: Hub names of datasets that the model was trained on, for the card's metadata.
        scores: Score files from `st-paragram evaluate --json` for the card.
        dry_run: Check the model and report what would be uploaded; nothing is sent, and no token is
            needed.
        token: Token with write access; by default the environment variable `HF_TOKEN`.

    Raises:
        SettingsError: The repository's name has no owner.
        ModelDirectoryError: The model does not exist or is damaged.
        EvaluationError: A score file is not valid, or has no scores of these weights.
        HubError: The token is missing, the hub refuses the upload or a name, or it cannot be
            reached.

    Examples:
        >>> from st_paragram import push
        >>> push("p-sp-es", "owner/p-sp-es", license="cc-by-4.0")  # doctest: +SKIP
    """
    owner, _, name = repository.partition("/")
    if not (owner and name):
        raise SettingsError(
            f"{short(repository)} has no owner; give owner/name, where owner is you or an"
            " organization"
        )
    folder = find(model)
    card_scores = scores_of(model, names_of(scores))
    token = token or os.environ.get(TOKEN_VARIABLE, "").strip()
    if not token and not dry_run:
        raise HubError(
            f"{repository}: no token; create one with write access in the hub's settings, and set"
            f" {TOKEN_VARIABLE} to it"
        )
    with TemporaryDirectory(prefix="st_paragram-push-") as temporary:
        files = Path(temporary) / folder.resolve().name
        dimension = _save_again(folder, files)
        card = _card(folder, files, dimension, repository)
        if license:
            _set_license(card, license)
        card.data.datasets = _extended(card.data.get("datasets"), names_of(datasets))
        add_scores(card, name, card_scores)
        (files / "README.md").write_text(str(card), encoding="utf-8")
        paths = [path for path in sorted(files.rglob("*")) if path.is_file()]
        names = [path.relative_to(files).as_posix() for path in paths]
        sizes = {file: (files / file).stat().st_size for file in names}
        if dry_run:
            return PushReport(repository, sizes, card.data.get("license"))
        try:
            api = HfApi(token=token)
            api.create_repo(repository, private=not public, exist_ok=True)
            before = api.model_info(repository)
            if before.private or public:
                commit = api.create_commit(
                    repository,
                    [CommitOperationAdd(file, files / file) for file in names],
                    commit_message=message or f"Upload {name}",
                    parent_commit=before.sha,
                ).oid
        # errors of the client and of httpx, OSError, ValueError and RuntimeError
        except Exception as error:
            raise HubError(f"{repository}: {_reason(error, token)}") from None
    if not (before.private or public):
        raise HubError(
            f"{repository} is public; push with --public (public=True), or choose another name"
        )
    url = f"{constants.ENDPOINT}/{repository}/tree/{commit}"
    return PushReport(
        repository,
        sizes,
        card.data.get("license"),
        commit,
        url,
        private=bool(before.private),
    )


def _reason(error: Exception, token: str) -> str:
    """Return the error of the hub or its client in one line without tokens, and advice."""
    if isinstance(error, RuntimeError) and isinstance(error.__cause__, Exception):
        error = error.__cause__  # why an upload broke off
    answer = str(error)
    if isinstance(error, HfHubHTTPError) and error.server_message:
        answer = f"{error.server_message} (HTTP {error.response.status_code})"
    answer = one_line(_TOKEN.sub("[token]", answer.replace(token, "[token]")), 300)
    return (
        f"not uploaded: {answer}; check the name, {TOKEN_VARIABLE} and the network, and push again"
    )


def _save_again(folder: Path, files: Path) -> int:
    """Write the model for every reader, without other files in its folder; return its dimension."""
    if read_configuration(folder).architecture == AVERAGING:
        encoder = Encoder(folder)
        encoder.save(files, card="", training=training_text(folder))
        return encoder.dimension
    model = load(folder, device="cpu")
    load_save.save(model, files, training=read_training_record(folder))
    return int(model.get_embedding_dimension() or 0)


def _card(folder: Path, files: Path, dimension: int, address: str) -> Any:
    """Return the directory's card, or a new card, with the repository's name in its snippets."""
    plain = without_record(address.partition("/")[2], dimension, files)
    text = _new_card(folder, files, plain, dimension, address)
    path = folder / "README.md"
    if path.is_file():
        text = path.read_text(encoding="utf-8")
    with refused(
        ModelDirectoryError, path, "not a model card", "correct its metadata", yaml.YAMLError
    ):
        card: Any = ModelCard(text)
    # in the snippets, possibly followed by the comment that it is a path
    own = re.escape(folder.resolve().name)
    card.text = re.sub(rf'\("{own}"\)(?:  #.*)?', f'("{address}")', card.text)
    library = "sentence-transformers" if plain.stock else "st_paragram"
    card.data.library_name = card.data.get("library_name") or library
    card.data.pipeline_tag = card.data.get("pipeline_tag") or "sentence-similarity"
    card.data.tags = _extended(card.data.get("tags"), ["st_paragram"])
    return card


def _new_card(folder: Path, files: Path, plain: Card, dimension: int, address: str) -> str:
    """Return the text of a card for a directory without one."""
    record = read_training_record(folder)
    card = from_record(record, facts_of(record), dimension) if record else plain
    card = replace(card, name=plain.name, stock=card.stock and plain.stock, address=address)
    return render(card) + table_note(read_configuration(files).values.get("table_type"))


def _set_license(card: Any, license: str) -> None:
    """Name the license in the metadata and in the text."""
    card.data.license = license
    statement = rf"{re.escape(NO_LICENSE)}|{LICENSE.format('[^`]+')}"
    card.text = re.sub(statement, LICENSE.format(license), card.text)


def _extended(values: str | list[str] | None, more: Sequence[str]) -> list[str] | None:
    """Append values to the value or values of a key, each once."""
    extended = [*names_of(values or []), *more]
    return list(dict.fromkeys(extended)) or None


def add_scores(card: Any, name: str, scores: Sequence[EvalResult]) -> None:
    """Add scores to a section of a card and to its `model-index`; old scores are replaced."""
    if not scores:
        return
    new = {(score.dataset_name, score.metric_type): score for score in scores}
    old = card.data.eval_results or []
    kept = [score for score in old if (score.dataset_name, score.metric_type) not in new]
    card.data.model_name = card.data.model_name or name
    card.data.eval_results = kept + list(new.values())
    rows = [(*key, f"{score.metric_value:.1f}") for key, score in new.items()]
    table = markdown_table(("set", "measure", "x 100"), rows, left=2)
    text = re.sub(rf"\n## {_SCORES}\n.*?(?=\n## |\Z)", "", card.text, flags=re.DOTALL)
    card.text = f"{text.rstrip()}\n\n## {_SCORES}\n\n{table}\n"


def scores_of(model: str | Path, files: Sequence[str | Path]) -> list[EvalResult]:
    """Read a model's scores from files by `st-paragram evaluate --json`.

    The digest of its content identifies the model. Scores under its name with another digest, or
    without one, are not used, and a warning counts them.
    """
    if not files:
        return []
    digest = model_digest(find(model))
    name = _folder(str(model))
    entries: list[EvalResult] = []
    for file in files:
        scores = [score for score in read_scores(file) if not score.against]
        own = [score for score in scores if score.digest == digest]
        if not own:
            raise EvaluationError(
                f"{file}: it has no scores of the weights and settings of {model}; make it with"
                f" `st-paragram evaluate {model} --json`"
            )
        of_name = [score for score in scores if _folder(score.model) == name]
        others = [score for score in of_name if score.digest != digest]
        if others:
            logger.warning(
                f"{file}: {counted(len(others), 'score')} of {name} with other weights or settings,"
                " or without their digest: not used"
            )
        for score in own:
            row = _row(score)
            if row is not None:
                _check_share(file, score)
                entries += score_entry("sentence-similarity", *row)
    return entries


def _check_share(file: str | Path, score: Score) -> None:
    """Refuse a score outside -1 .. 1."""
    if score.value is not None and abs(score.value) > 1 + _ROUNDING:
        raise EvaluationError(
            f"{file}: {one_line(score.set)}, {one_line(score.measure)}: value is {score.value};"
            " scores are from -1 to 1, which is -100 to 100 percent: correct it"
        )


def _folder(name: str) -> str:
    return Path(name.partition("@")[0]).resolve().name


def _row(score: Score) -> tuple[str, str, float | None] | None:
    """Return set, measure and share of a score that belongs on a card."""
    benchmark = score.benchmark
    measure = score.measure
    if benchmark == "sts" and measure == "mteb Spearman" and score.set != "STS12-16":
        return f"MTEB {score.set}", "cosine_spearman", score.value
    if benchmark == "tatoeba" and measure == "accuracy":
        return f"Tatoeba {score.set}-eng", "accuracy", score.value
    if benchmark == "bucc" and measure.endswith(" F1"):
        return f"BUCC 2018 {score.set}, {measure.removesuffix(' F1')}", "f1", score.value
    return None
