"""One definition of each setting for Python, YAML, the command line and the docs."""

from __future__ import annotations

import argparse
import re
from enum import Enum
from pathlib import Path
from typing import Annotated, Literal

import pydantic
import pytest
import yaml
from hypothesis import given as over
from hypothesis import strategies as st

from st_paragram.core.settings import add_setting_options, given, read, setting, settings
from st_paragram.errors import SettingsError


class Side(Enum):
    LEFT = "left"
    RIGHT = "right"


def parse_size(text: object) -> object:
    return int(text[:-1]) << 10 if isinstance(text, str) and text.endswith("K") else text


@settings
class Example:
    """Every kind of setting once."""

    name: str
    dim: int = setting(300, "components, 100 % of them", ge=1, lt=5000)
    rate: float = setting(1e-3, "learning rate", gt=0)
    share: float | None = setting(None, "share of the rows", ge=0.5, le=1)
    kind: Literal["near", "far"] = setting("near", "which rows")
    side: Side = setting(Side.LEFT, "which side", option="--of")
    fold: bool = setting(
        True, "make no difference of case", option="--keep-case", option_help="tell cases apart"
    )
    trim: bool = setting(True, "cut spaces off")
    loud: bool = setting(False, "say more")
    size: Annotated[int, pydantic.BeforeValidator(parse_size)] = setting(
        "4K", "bytes", ge=1024, option="-s --size", metavar="SIZE"
    )
    where: Path = setting(Path("data"), "folder")

    def __post_init__(self) -> None:
        if self.loud and self.kind == "far":
            raise SettingsError("loud and far exclude each other")


VALUES = {
    "dim": st.integers(1, 4999),
    "rate": st.floats(0, exclude_min=True, allow_infinity=False),
    "share": st.floats(0.5, 1),
    "kind": st.sampled_from(["near", "far"]),
    "side": st.sampled_from(["left", "right"]),
    "fold": st.booleans(),
    "trim": st.booleans(),
    "where": st.text("abc/", min_size=1).map(Path),
}
SOME = st.fixed_dictionaries({}, optional=VALUES)


def parsed(
    *arguments: object, leave_out: tuple[str, ...] = (), only: tuple[str, ...] | None = None
) -> Example:
    parser = argparse.ArgumentParser()
    add_setting_options(parser, Example, leave_out, only)
    return Example("x", **given(parser.parse_args(list(map(str, arguments))), Example))


@over(SOME)
def test_python_yaml_and_the_command_line_agree(values: dict[str, object]) -> None:
    example = Example("x", **values)
    plain = {
        name: str(value) if isinstance(value, Path) else value for name, value in values.items()
    }
    assert Example("x", **yaml.safe_load(yaml.safe_dump(plain))) == example
    flags = {"fold": "--keep-case", "trim": "--no-trim"}
    words = [flags[name] for name in flags if values.get(name) is False]
    options = {"side": "--of"}
    words += [
        f"{options.get(name, '--' + name)}={value}"
        for name, value in plain.items()
        if name not in flags
    ]
    assert parsed(*words) == example


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"dim": 0}, "dim is 0; it must be greater than or equal to 1"),
        ({"dim": "many"}, "dim is 'many'; it must be a valid integer"),
        ({"kind": "middle"}, "kind is 'middle'; it must be 'near' or 'far'"),
        ({"loud": True, "kind": "far"}, "loud and far exclude each other"),
        ({"colour": 1}, "unknown setting 'colour'; known settings: dim, fold, "),
    ],
)
def test_refusals_name_the_setting_the_value_and_what_is_expected(
    values: dict[str, object], message: str
) -> None:
    with pytest.raises(SettingsError) as caught:
        Example(**{"name": "x", **values})
    assert str(caught.value).startswith(message)


def test_what_yaml_1_1_makes_of_numbers_is_accepted(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text("dim: 10.0\nrate: 1e-3\nsize: 8K\nfold: no\n")
    assert yaml.safe_load(path.read_text())["rate"] == "1e-3"
    example = read(Example, path, {"name": "x"})
    assert (example.dim, type(example.dim), example.rate, example.size) == (10, int, 0.001, 8192)
    assert example.fold is False


def test_later_places_are_stronger(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text("dim: 2\nrate: 0.5\n")
    example = read(Example, path, {"dim": 3, "name": "x"})
    assert (example.dim, example.rate, example.kind) == (3, 0.5, "near")
    path.write_text("")
    assert read(Example, path, {"name": "x"}) == read(Example, None, {"name": "x"}) == Example("x")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("dims: 3", "unknown setting 'dims'; known settings: dim, "),
        ("{", "not readable as YAML (line 1: expected"),
    ],
)
def test_other_files_are_refused_by_name(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(text)
    with pytest.raises(SettingsError) as caught:
        read(Example, path, {"name": "x"})
    assert str(caught.value).startswith(f"{path}: {message}")


def test_options_have_several_names_are_left_out_chosen_and_checked(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert parsed() == Example("x") and parsed("--dim", 3, "--no-trim") == Example(
        "x", dim=3, trim=False
    )
    assert parsed("-s", "8K").size == parsed("--size", 8192).size == 8192
    assert parsed("--dim", 3, only=("dim",)).dim == 3
    for words, chosen in (
        ("--dim x", {}),
        ("--kind x", {}),
        ("--name x", {}),
        ("--dim 3", {"leave_out": ("dim",)}),
    ):
        with pytest.raises(SystemExit):
            parsed(*words.split(), **chosen)
        assert words.split()[0] in capsys.readouterr().err


def test_help_shows_every_default_and_what_flags_do() -> None:
    parser = argparse.ArgumentParser()
    add_setting_options(parser, Example, defaults={"rate": 0.5, "kind": "far"})
    shown = " ".join(parser.format_help().split())
    for text in (
        "--dim N components, 100 % of them (default: 300)",
        "--rate X learning rate (default: 0.5)",
        "--share X share of the rows",
        "--kind {near,far} which rows (default: far)",
        "--of {left,right} which side (default: left)",
        "--keep-case tell cases apart --no-trim",
        "--where PATH folder (default: data)",
    ):
        assert text in shown
    # Python 3.13 names the value once
    assert re.search(r"-s( SIZE)?, --size SIZE bytes \(default: 4K\)", shown)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("dim: yes", "dim is True; it must be a number"),
        ("share: false", "share is False; it must be a number"),
        ("dim: 2.5", "dim is 2.5; "),
        ("dim: many", "dim is 'many'; "),
        ("dim: [1]", r"dim is \[1\]; "),
        ("rate: .inf", "rate is inf; "),
        ("rate: .nan", "rate is nan; "),
        ("rate: nan", "rate is 'nan'; "),
        ("loud: 2", "loud is 2; "),
        ("kind: 1", "kind is 1; "),
    ],
)
def test_a_value_of_another_type_is_refused_in_one_line(
    tmp_path: Path, text: str, message: str
) -> None:
    (tmp_path / "x.yaml").write_text(f"name: x\n{text}\n")
    with pytest.raises(SettingsError, match=message) as caught:
        read(Example, tmp_path / "x.yaml")
    assert "\n" not in str(caught.value)


def test_a_number_in_exponential_form_is_a_number(tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text("name: x\nrate: 1e-3\n")  # a text for YAML 1.1
    assert read(Example, tmp_path / "x.yaml").rate == 0.001
