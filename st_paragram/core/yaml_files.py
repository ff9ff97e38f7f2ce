"""Read YAML that may be damaged, or a stranger's.

Aliases cost nothing while they are read, but a text of a few lines can stand for billions of values that way, and a
mapping can hold itself: so what they expand to is counted before anything is built from it.
"""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import Any

import yaml

from st_paragram.errors import DAMAGED, one_line

MOST_BYTES = 1 << 20
MOST_VALUES = 100_000
MOST_DEPTH = 64
_MOST_DIGITS = 300  # as many as a floating-point number can have before its point
_NUMBERS = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")


def read_yaml(path: str | Path, loader: type[yaml.SafeLoader] = yaml.SafeLoader) -> Any:  # noqa: ANN401
    """The value of a file with one document; None if it is empty.

    Args:
        path: of the file.
        loader: which words mean which values.

    Raises:
        OSError: the file cannot be read.
        ValueError: no YAML, larger than 1 MiB, of more than 100,000 values or nested more than 64 deep; in one line
            that does not name the file.
    """
    data = Path(path).read_bytes()
    if len(data) > MOST_BYTES:
        raise ValueError(f"{len(data):,} bytes, more than {MOST_BYTES:,}")
    try:
        reader = loader(data)
        try:
            node = reader.get_single_node()
            if node is None:
                return None
            _weigh(node, {})
            return reader.construct_document(node)
        finally:
            reader.dispose()
    except RecursionError as error:
        raise ValueError(f"nested more than {MOST_DEPTH} levels deep") from error
    except (yaml.YAMLError, *DAMAGED) as error:
        raise ValueError(one_line(error)) from error


def _weigh(node: yaml.Node, known: dict[int, tuple[int, int]], depth: int = 0) -> tuple[int, int]:
    """How many values a node expands to, counting aliases every time, and how deep they are nested.

    Raises:
        ValueError: too many, too deep (as a node that holds itself is), or a number of too many digits.
    """
    if depth > MOST_DEPTH:
        raise ValueError(f"nested more than {MOST_DEPTH} levels deep")
    if id(node) not in known:
        parts = [_weigh(part, known, depth + 1) for part in _parts(node)]
        count, height = 1 + sum(count for count, _ in parts), 1 + max((height for _, height in parts), default=0)
        if count > MOST_VALUES:
            raise ValueError(f"it expands to more than {MOST_VALUES:,} values")
        if height > MOST_DEPTH + 1:
            raise ValueError(f"nested more than {MOST_DEPTH} levels deep")
        known[id(node)] = count, height
    return known[id(node)]


def _parts(node: yaml.Node) -> list[yaml.Node]:
    if isinstance(node, yaml.ScalarNode):
        if node.tag in _NUMBERS and len(node.value) > _MOST_DIGITS:
            raise ValueError(f"a number of {len(node.value):,} digits")
        return []
    return list(chain.from_iterable(node.value)) if isinstance(node, yaml.MappingNode) else list(node.value)
