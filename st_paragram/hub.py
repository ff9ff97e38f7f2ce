"""Upload a model directory to the Hugging Face hub, after checks, privately by default, in one
commit.
"""

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
from st_paragram.core.model_directory.configuration import (
    AVERAGING,
    MODULES_FILE,
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
from st_paragram.learning.models.card import (
    LICENSE,
    NO_LICENSE,
    Card,
    from_record,
    render,
    score_entry,
)
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

    Example:
        >>> from st_paragram import push
        >>> push("p-sp-es", "owner/p-sp-es", license="cc-by-4.0")  # doctest: +SKIP
    """
    datasets = names_of(datasets)
    scores = names_of(scores)
    owner, _, name = repository.partition("/")
    if not (owner and name):
        raise SettingsError(
            f"{short(repository)} has no owner; give owner/name, where owner is you or an"
            " organization"
        )
    folder = find(model)
    card_scores = scores_of(model, scores)
    token = token or os.environ.get(TOKEN_VARIABLE, "").strip()
    if not (token or dry_run):
        advice = (
            f"create one with write access in the hub's settings, and set {TOKEN_VARIABLE} to it"
        )
        raise HubError(f"{repository}: no token; {advice}")
    with TemporaryDirectory(prefix="st_paragram-push-") as temporary:
        files = Path(temporary) / folder.resolve().name
        dimension = _save_again(folder, files)
        card = _card(folder, files, dimension, repository, license)
        card.data.datasets = _with(card.data.get("datasets"), datasets)
        add_scores(card, name, card_scores)
        (files / "README.md").write_text(str(card), encoding="utf-8")
        paths = {
            path.relative_to(files).as_posix(): path
            for path in sorted(files.rglob("*"))
            if path.is_file()
        }
        report = PushReport(repository, {file: path.stat().st_size for file, path in paths.items()})
        if dry_run:
            return report
        try:
            api = HfApi(token=token)
            api.create_repo(repository, private=not public, exist_ok=True)
            before = api.model_info(repository)
            if not (public or before.private):
                raise HubError(
                    f"{repository} is public; push with --public (public=True), or choose another"
                    " name"
                )
            added = [CommitOperationAdd(file, path) for file, path in paths.items()]
            message = message or f"Upload {name}"
            commit = api.create_commit(
                repository, added, commit_message=message, parent_commit=before.sha
            ).oid
        except HubError:
            raise
        # errors of the client and of httpx, OSError, ValueError and RuntimeError
        except Exception as error:
            raise HubError(f"{repository}: {_reason(error, token)}") from None
    url = f"{constants.ENDPOINT}/{repository}/tree/{commit}"
    return replace(report, commit=commit, url=url, private=bool(before.private))


def _reason(error: Exception, token: str) -> str:
    """Return the error of the hub or its client in one line without tokens, and advice."""
    # if an upload breaks off
    cause = (isinstance(error, RuntimeError) and error.__cause__) or error
    answer = str(cause)
    if isinstance(cause, HfHubHTTPError) and cause.server_message:
        answer = f"{cause.server_message} (HTTP {cause.response.status_code})"
    answer = one_line(_TOKEN.sub("[token]", answer.replace(token, "[token]")), 300)
    return (
        f"not uploaded: {answer}; check the name, {TOKEN_VARIABLE} and the network, and push again"
    )


def _save_again(folder: Path, files: Path) -> int:
    """Write the model for every reader, without other files in its folder; return its dimension."""
    if read_configuration(folder).architecture == AVERAGING:
        encoder = Encoder(folder)
        encoder.save(files, training=training_text(folder))
        return encoder.dimension
    model = load(folder, device="cpu")
    load_save.save(model, files, training=read_training_record(folder))
    return int(model.get_embedding_dimension() or 0)


def _card(folder: Path, files: Path, dimension: int, address: str, license: str | None) -> Any:
    """Return the directory's card, or a new card, with the repository's name in its snippets and
    the license.
    """
    path, modules, name = folder / "README.md", files / MODULES_FILE, address.partition("/")[2]
    stock = modules.is_file() and b'"st_paragram.' not in modules.read_bytes()
    if path.is_file():
        with refused(
            ModelDirectoryError, path, "not a model card", "correct its metadata", yaml.YAMLError
        ):
            card: Any = ModelCard(path.read_text(encoding="utf-8"))
            card.data.license = license or card.data.get("license")
    else:
        record, summary = (
            read_training_record(folder),
            f"Sentence embeddings with {dimension} dimensions.",
        )
        new = (
            from_record(record, facts_of(record), dimension)
            if record
            else Card(name, summary, stock)
        )
        new = replace(new, name=name, stock=new.stock and stock, address=address, license=license)
        card = ModelCard(
            render(new) + table_note(read_configuration(files).values.get("table_type"))
        )
    # in the snippets, possibly followed by the comment that it is a path
    own = re.escape(folder.resolve().name)
    card.text = re.sub(rf'\("{own}"\)(?:  #.*)?', f'("{address}")', card.text)
    if license:
        stated = rf"{re.escape(NO_LICENSE)}|{LICENSE.format('[^`]+')}"
        card.text = re.sub(stated, LICENSE.format(license), card.text)
    card.data.library_name = card.data.get("library_name") or (
        "sentence-transformers" if stock else "st_paragram"
    )
    card.data.pipeline_tag = card.data.get("pipeline_tag") or "sentence-similarity"
    card.data.tags = _with(card.data.get("tags"), ["st_paragram"])
    return card


def _with(values: str | list[str] | None, more: Sequence[str]) -> list[str] | None:
    """Append values to the value or list of values of a key."""
    return (
        list(dict.fromkeys([*([values] if isinstance(values, str) else values or []), *more]))
        or None
    )


def add_scores(card: Any, name: str, scores: Sequence[EvalResult]) -> None:
    """Add scores to a section of a card and to its `model-index`, replacing scores of the same
    sets.
    """
    if not scores:
        return
    old = {(score.dataset_name, score.metric_type): score for score in card.data.eval_results or []}
    new = {(score.dataset_name, score.metric_type): score for score in scores}
    card.data.model_name, card.data.eval_results = (
        card.data.model_name or name,
        [*(old | new).values()],
    )
    table = markdown_table(
        ("set", "measure", "x 100"), [(*key, f"{new[key].metric_value:.1f}") for key in new], left=2
    )
    text = re.sub(rf"\n## {_SCORES}\n.*?(?=\n## |\Z)", "", card.text, flags=re.DOTALL)
    card.text = f"{text.rstrip()}\n\n## {_SCORES}\n\n{table}\n"


def scores_of(model: str | Path, files: Sequence[str | Path]) -> list[EvalResult]:
    """Read a model's scores from files by `st-paragram evaluate --json`; the digest of its content
    identifies it.

    Scores under the model's name, but with another digest or without one, are not used, and a
    warning counts them.
    """
    if not files:
        return []
    digest = model_digest(find(model))
    name = _folder(str(model))
    advice = f"make it with `st-paragram evaluate {model} --json`"
    entries = list[EvalResult]()
    for file in files:
        scores = [score for score in read_scores(file) if not score.against]
        own = [score for score in scores if score.digest == digest]
        others = [score for score in scores if score.digest != digest]
        if not own:
            raise EvaluationError(f"{file}: {_without_own(scores, model)}; {advice}")
        of_name = [score for score in others if _folder(score.model) == name]
        wrong = [score for score in of_name if score.digest]
        if wrong:
            seen = f"{counted(len(wrong), 'score')} of {name} with other weights or settings"
            logger.warning(f"{file}: {seen} than {model}: not used")
        if len(of_name) > len(wrong):
            seen = f"{counted(len(of_name) - len(wrong), 'score')} of {name} without a digest"
            logger.warning(f"{file}: {seen} of its weights and settings: not used")
        for score in own:
            row = _row(score)
            if row is not None:
                _check_share(file, score)
                entries += score_entry("sentence-similarity", *row)
    return entries


def _without_own(scores: Sequence[Score], model: str | Path) -> str:
    """Say what a file has whose scores are not of a model."""
    if not scores:
        return "it has no scores"
    names = one_line(", ".join(dict.fromkeys(score.model for score in scores)))
    if not any(score.digest for score in scores):
        return (
            f"scores of {names} without a digest of the weights and settings, as earlier versions"
            " wrote them"
        )
    return f"scores of {names}, but not of the weights and settings of {model}"


def _check_share(file: str | Path, score: Score) -> None:
    """Refuse a score outside -1 .. 1."""
    if score.value is not None and abs(score.value) > 1 + _ROUNDING:
        seen = f"{one_line(score.set)}, {one_line(score.measure)}: value is {score.value}"
        raise EvaluationError(
            f"{file}: {seen}; scores are from -1 to 1, which is -100 to 100 percent: correct it"
        )


def _folder(name: str) -> str:
    return Path(name.partition("@")[0]).resolve().name


def _row(score: Score) -> tuple[str, str, float | None] | None:
    """Return set, measure and share of a score that belongs on a card."""
    if (score.benchmark, score.measure) == ("sts", "mteb Spearman") and score.set != "STS12-16":
        return f"MTEB {score.set}", "cosine_spearman", score.value
    if (score.benchmark, score.measure) == ("tatoeba", "accuracy"):
        return f"Tatoeba {score.set}-eng", "accuracy", score.value
    if score.benchmark == "bucc" and score.measure.endswith(" F1"):
        return f"BUCC 2018 {score.set}, {score.measure.removesuffix(' F1')}", "f1", score.value
    return None
