"""Upload a model directory to the Hugging Face hub: checked before, private by default, in one commit."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from huggingface_hub import HfApi, constants
from huggingface_hub.errors import HFValidationError
from huggingface_hub.utils import validate_repo_id  # type: ignore[attr-defined]

from st_paragram.core.encoding.find import find
from st_paragram.errors import SettingsError, one_line, short
from st_paragram.hub import repository as repositories
from st_paragram.hub.card import hub_card
from st_paragram.hub.errors import HubError, told_in_a_line
from st_paragram.hub.model_files import model_files
from st_paragram.hub.repository import DEFAULT_BRANCH, Content, Repository
from st_paragram.hub.scores import scores_of

TOKEN_VARIABLE = "HF_TOKEN"
_LICENCE = re.compile(r"[a-z0-9][a-z0-9.-]*")
_BRANCH = re.compile(r"(?!.*(?:\.\.|//|@\{))[A-Za-z0-9][\w./-]*(?<![./])")
_COMMIT = re.compile("[0-9a-f]{7,40}")


@dataclass(frozen=True)
class PushReport:
    """What was uploaded, or would be.

    Args:
        repository: `owner/name`.
        files: of the model with its card, name -> bytes.
        uploaded: names of those that the hub did not have.
        removed: names of files of the model that was there before.
        commit: of the hub that holds the model; None for a dry run.
        url: of this commit; None for a dry run.
        private: only the owner sees the repository; None for a dry run.
    """

    repository: str
    files: Mapping[str, int]
    uploaded: tuple[str, ...]
    removed: tuple[str, ...] = ()
    commit: str | None = None
    url: str | None = None
    private: bool | None = None


def push(
    model: str | Path,
    repository: str,
    *,
    public: bool = False,
    branch: str = DEFAULT_BRANCH,
    message: str | None = None,
    licence: str | None = None,
    datasets: Sequence[str] = (),
    scores: Sequence[str | Path] = (),
    dry_run: bool = False,
    token: str | None = None,
) -> PushReport:
    """Upload a model; what the hub has already is not sent again.

    The directory is left as it is. Its card is uploaded with the repository's name in its snippets.

    Args:
        model: its directory, a name, or a hub id, as `st_paragram.load` takes it.
        repository: `owner/name` on the hub; made if it is not there.
        public: everybody may read the repository; without it a new one is private, and a public one is refused.
        branch: to push to; made if it is not there.
        message: of the commit.
        licence: an identifier of the hub, such as "cc-by-4.0", to put on the card.
        datasets: names on the hub of datasets that the model was trained on, for the card's metadata.
        scores: files of records by `st-paragram evaluate --json`, whose scores go on the card.
        dry_run: look at the model and say what would be uploaded; nothing is sent, and no token is needed.
        token: with the right to write; that of the environment variable `HF_TOKEN` without one.

    Raises:
        SettingsError: the name of the repository, of the branch, of the licence or of a dataset is none.
        ModelDirectoryError: there is no such model, or it is damaged.
        EvaluationError: a file of scores is none, or has not this model.
        HubError: there is no token, the hub refuses, or it cannot be reached.

    Example:
        >>> from st_paragram import push
        >>> push("p-sp-es", "owner/p-sp-es", licence="cc-by-4.0")  # doctest: +SKIP
    """
    _check(repository, branch, licence)
    for name in datasets:
        _check_name(name, "owner/name of a dataset")
    folder = find(model)
    results = scores_of(model, scores)
    token = token or os.environ.get(TOKEN_VARIABLE, "").strip()
    if not (token or dry_run):
        raise HubError(
            f"{repository}: no token; create a token with write access in the hub's settings, and put it "
            f"into the environment variable {TOKEN_VARIABLE}"
        )
    with model_files(folder) as files:
        card = hub_card(folder, files, repository, licence, datasets, results)
        contents: dict[str, Content] = {name: files.folder / name for name in files.names}
        contents["README.md"] = card.encode("utf-8")
        sizes = {name: repositories.size_of(content) for name, content in sorted(contents.items())}
        if dry_run:
            return PushReport(repository, sizes, tuple(sizes))
        with told_in_a_line(repository, token):
            api = HfApi(token=token)
            there = repositories.opened(api, repository, branch, public)
            return _pushed(api, there, contents, sizes, message or f"Upload {repository.partition('/')[2]}")


def _check(repository: str, branch: str, licence: str | None) -> None:
    """Refuse what no hub has."""
    _check_name(repository, "owner/name")
    if repository.count("/") != 1:
        raise SettingsError(
            f"{short(repository)} has no owner; give owner/name, where owner is your user or organization name"
        )
    if not _BRANCH.fullmatch(branch) or branch.startswith("refs/") or _COMMIT.fullmatch(branch):
        raise SettingsError(f"{short(branch)} is not a valid branch name; use {DEFAULT_BRANCH} or another word")
    if licence is not None and not _LICENCE.fullmatch(licence):
        raise SettingsError(f"{short(licence)} is not a licence of the hub; give an identifier such as cc-by-4.0")


def _check_name(name: str, wanted: str) -> None:
    try:
        validate_repo_id(name)
    except HFValidationError as error:
        raise SettingsError(f"{short(name)} is not a valid hub name ({one_line(error)}); give {wanted}") from error


def _pushed(
    api: HfApi, there: Repository, contents: Mapping[str, Content], sizes: Mapping[str, int], message: str
) -> PushReport:
    """Send what is new, if anything is."""
    new = repositories.changed(there, contents)
    removed = repositories.left_over(there, contents)
    commit = repositories.commit(api, there, new, removed, message) if new or removed else there.commit
    url = f"{constants.ENDPOINT}/{there.name}/tree/{commit}"
    return PushReport(there.name, sizes, tuple(sorted(new)), tuple(removed), commit, url, there.private)
