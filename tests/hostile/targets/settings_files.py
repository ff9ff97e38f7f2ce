"""Settings and lists of cleaning steps in YAML, damaged: refused, or read as something that is allowed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from hostile.damage import damaged, edited_json, json_bytes
from st_paragram.core.settings import read, table
from st_paragram.learning import training
from st_paragram.learning.training.settings import TrainingSettings
from st_paragram.tools import cleaning
from st_paragram.tools.cleaning.config import read_cleaning
from st_paragram.tools.corpora.mixture import read_mixture
from st_paragram.tools.preparation.settings import PrepareSettings
from st_paragram.tools.search.settings import SearchSettings

TRIES, QUICK = 20_000, 40

_SEARCH = "index: IVF64,SQ8\nrecall: 0.95\nvector_type: int8\nmemory: 2G\nmost_repeats: 10\nseed: 3\n"
_MIXTURE = """\
sources:
  talks: {path: talks.tsv, languages: en-es, weight: 0.3, cap: 5}
  manual: {path: [manual.en, manual.de], languages: en-de, group: manuals}
  faq: {path: faq.csv, languages: es-en, columns: [spanish, english]}
"""
_PREPARE = "languages: [en, fr-es]\nlower_case: true\nsegmentation: none\ntemperature: 2\nvocab_size: 5000\nseed: 1\n"
_CLEANING = "- near_duplicates: {threshold: 0.9, copies: 2, on: first}\n- overlap\n- label: {column: 3, value: x}\n"
_STRANGE = (
    *("!!python/object/apply:os.system [ls]", "!!binary x", "!!bool x", "!!int ''", "!!timestamp x", "!!set {a, b}"),
    *(
        "!!omap [a: 1]",
        "!!null x",
        "!!float 1_0:0.1",
        "2001-99-99",
        "2001-01-01",
        "1:2:3",
        "0x" + "f" * 250,
        "9" * 5000,
    ),
    *("&x [*x]", "*nothing", "{? [a]: b}", "{<<: {dim: 3}}", "{<<: 3}", "? a", "- a", "|\n a", "'", "\t", "%YAML 1.2"),
    *("[" * 400 + "]" * 400, "{a: " * 400 + "1" + "}" * 400, ".inf", "-.inf", ".nan", "~", "yes", "on", "1e3", "1_000"),
    *("\x07", "\ud7ff", "\u2028", "\ufeff", "...\n---", "# x", "\\", '"\\ud800"', '"\\x00"', '"\\x1b[31m"'),
)


def prepare(folder: Path) -> list[tuple[Any, bytes]]:
    """Readers, and what they read."""
    of_training = (Path(training.__file__).parent / "configs").glob("*.yaml")
    of_cleaning = Path(cleaning.__file__).parent.glob("*.yaml")
    return [
        *((_reader(TrainingSettings), path.read_bytes()) for path in sorted(of_training)),
        *((read_cleaning, path.read_bytes()) for path in sorted(of_cleaning)),
        (_reader(SearchSettings), _SEARCH.encode()),
        (_reader(PrepareSettings), _PREPARE.encode()),
        (read_cleaning, _CLEANING.encode()),
        (read_mixture, _MIXTURE.encode()),
    ]


def attempt(shared: list[tuple[Any, bytes]], rng: np.random.Generator, folder: Path) -> str:
    """Damage a file and read it."""
    reader, data = shared[rng.integers(len(shared))]
    path = folder / "settings.yaml"
    path.write_bytes(data)
    try:
        expected = reader(path)
    finally:
        path.write_bytes(_other(data, rng))
    return "unharmed" if reader(path) == expected else "other content"


def _reader(cls: type) -> Any:
    table(cls)
    return lambda path: read(cls, path)


def _other(data: bytes, rng: np.random.Generator) -> bytes:
    kind = rng.random()
    if kind < 0.3:
        return damaged(data, rng)
    if kind < 0.6:
        return json_bytes(edited_json(json.loads(json.dumps(yaml.safe_load(data))), rng))
    if kind < 0.65:
        return _bomb(rng)
    marks = [place for place, byte in enumerate(data) if byte in b":[,-{"]
    place = marks[rng.integers(len(marks))] + 1
    end = data.find(b"\n", place) if rng.random() < 0.5 else place
    strange = _STRANGE[rng.integers(len(_STRANGE))].encode("utf-8", "surrogatepass")
    return data[:place] + b" " + strange + data[end:]


def _bomb(rng: np.random.Generator) -> bytes:
    """Lines that refer to one another: lists or mappings of exponential size."""
    merge, ways = rng.random() < 0.5, int(rng.integers(2, 12))
    lines = ["x0: &x0 {a: 1, b: 2}" if merge else "x0: &x0 [dim, seed]"]
    for level in range(1, int(rng.integers(2, 40))):
        aliases = ", ".join([f"*x{level - 1}"] * ways)
        lines.append(f"x{level}: &x{level} " + (f"{{<<: [{aliases}]}}" if merge else f"[{aliases}]"))
    return "\n".join(lines).encode()
