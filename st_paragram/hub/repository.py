"""A model repository on the hub: what it holds, how a model's files differ from that, and one commit of them."""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from huggingface_hub import CommitOperationAdd, CommitOperationCopy, CommitOperationDelete, HfApi
from huggingface_hub.errors import RepositoryNotFoundError, RevisionNotFoundError
from huggingface_hub.hf_api import ModelInfo, RepoSibling

from st_paragram.core.encoding.directory import CONFIG_FILE
from st_paragram.core.files import content_digest
from st_paragram.errors import one_line
from st_paragram.hub.errors import HubError

logger = logging.getLogger(__name__)

#: Content to upload: a file of this machine, or bytes.
Content = Path | bytes
DEFAULT_BRANCH = "main"
_OF_ANY_REPOSITORY = re.compile(r"\..*|README\.md|LICEN[CS]E.*|NOTICE.*", re.DOTALL)
_OF_A_MODEL = re.compile(r".*\.(safetensors|model)|[0-9]+_\w+/.*|(modules|tokenizer\w*|token_embedding_config)\.json")


@dataclass(frozen=True)
class Repository:
    """A branch of a repository that is there.

    Args:
        name: `owner/name`.
        branch: to which is pushed.
        commit: its newest.
        private: only its owner sees it.
        created: by this call.
        files: of this commit, by name.
    """

    name: str
    branch: str
    commit: str
    private: bool
    created: bool
    files: Mapping[str, RepoSibling]


def opened(api: HfApi, name: str, branch: str, public: bool) -> Repository:
    """A branch of a repository; both are made if they are not there, the repository private by default.

    Raises:
        HubError: the repository is there and public, which was not asked for, or holds something else than a model of
            this package.
    """
    created = False
    try:
        info = api.model_info(name)
    except RepositoryNotFoundError:
        api.create_repo(name, private=not public)
        created = True
        info = api.model_info(name)
    if not public and not info.private:
        raise HubError(
            f"{name}: the repository exists and is public; push with --public (public=True) if intended, or "
            "choose another name"
        )
    if public and info.private:
        logger.warning(f"{name} is private and remains private; make it public in its settings on the hub")
    info = _of_branch(api, name, branch)
    files = {sibling.rfilename: sibling for sibling in info.siblings or []}
    strange = [one for one in files if not _OF_ANY_REPOSITORY.fullmatch(one)]
    if strange and CONFIG_FILE not in files:
        raise HubError(f"{name}: holds {one_line(strange[0], 80)} but no model of st_paragram; choose another name")
    return Repository(name, branch, str(info.sha), bool(info.private), created, files)


def changed(repository: Repository, contents: Mapping[str, Content]) -> dict[str, Content]:
    """What the repository does not hold yet, or holds otherwise."""
    return {name: content for name, content in contents.items() if not _is_same(repository.files.get(name), content)}


def left_over(repository: Repository, contents: Mapping[str, Content]) -> list[str]:
    """Files of the model that was pushed before, by their names, which the model to push does not have."""
    return sorted(name for name in repository.files if _OF_A_MODEL.fullmatch(name) and name not in contents)


def commit(
    api: HfApi, repository: Repository, contents: Mapping[str, Content], removed: list[str], message: str
) -> str:
    """Upload files and remove others in one commit, on top of the commit that was looked at; returns the new one."""
    operations: list[CommitOperationAdd | CommitOperationCopy | CommitOperationDelete] = []
    operations += [CommitOperationAdd(name, content) for name, content in contents.items()]
    operations += [CommitOperationDelete(name) for name in removed]
    made = api.create_commit(
        repository.name,
        operations,
        commit_message=message,
        revision=repository.branch,
        parent_commit=repository.commit,
    )
    return made.oid


def size_of(content: Content) -> int:
    """Bytes."""
    return len(content) if isinstance(content, bytes) else content.stat().st_size


def _of_branch(api: HfApi, name: str, branch: str) -> ModelInfo:
    try:
        return api.model_info(name, revision=branch, files_metadata=True)
    except RevisionNotFoundError:
        api.create_branch(name, branch=branch, exist_ok=True)
        return api.model_info(name, revision=branch, files_metadata=True)


def _is_same(there: RepoSibling | None, content: Content) -> bool:
    """Whether a file of the hub has this content, by its SHA-256, or by git's digest where it is small."""
    if there is None:
        return False
    if there.lfs is not None:
        digest = hashlib.sha256(content).hexdigest() if isinstance(content, bytes) else content_digest(content)
        return there.lfs.sha256 == digest
    data = content if isinstance(content, bytes) else content.read_bytes()
    return there.blob_id == hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()
