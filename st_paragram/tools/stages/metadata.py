"""The JSON file next to the result of a task, written last: the task is done if the file is there."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from st_paragram.core.files import atomic, read_json
from st_paragram.errors import StoreError, refused


def metadata_file(path: Path) -> Path:
    """The JSON file next to a task's result."""
    return path.with_name(f"{path.name}.json")


def write_metadata(path: Path, metadata: Mapping[str, Any]) -> None:
    """Mark a task as done.

    Args:
        path: The task's result, which is complete.
        metadata: What later stages and reports need to know about it.
    """
    with atomic(metadata_file(path)) as handle:
        handle.write(json.dumps(metadata, sort_keys=True).encode())


def read_metadata(path: Path) -> dict[str, Any]:
    """The metadata of a task that is done.

    Args:
        path: The task's result.

    Raises:
        StoreError: The task is not done, or its metadata is damaged.
    """
    with refused(StoreError, metadata_file(path), "not readable", "remove its folder and start again"):
        return dict(read_json(metadata_file(path)))


def written_before(result: Path, output: Path, name: str = "output") -> bool:
    """Whether an output outside the work folder still is the one that a task wrote, by its size and time of change.

    Args:
        result: The task's result; its metadata has what `output_state` gave.
        output: The file that was asked for.
        name: Under which name.
    """
    if not (metadata_file(result).is_file() and output.is_file()):
        return False
    return bool(read_metadata(result).get(name) == output_state(output))


def output_state(output: Path) -> list[int]:
    """Size and time of change of a file, for the metadata of the task that wrote it."""
    status = output.stat()
    return [status.st_size, status.st_mtime_ns]
