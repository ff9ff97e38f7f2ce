"""The description of a release: `release.yaml`, read and checked. Nothing here needs torch."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pydantic
import pydantic.dataclasses

from st_paragram.core.families import family_named
from st_paragram.core.settings import fields_of, read_yaml
from st_paragram.errors import SettingsError
from st_paragram.learning.training.settings import TrainingSettings
from st_paragram.tools.preparation.settings import PrepareSettings

_STRICT = pydantic.ConfigDict(extra="forbid")


@pydantic.dataclasses.dataclass(frozen=True, config=_STRICT)
class Licence:
    """Under which licence a source of text is offered.

    Attributes:
        licence: As stated at the source, or "none stated".
        open: Anyone may use, change and pass on the text and derived works.
        note: What a reader of the card should know of it, such as a test set that is near.
    """

    licence: str
    open: bool = False
    note: str = ""


@pydantic.dataclasses.dataclass(frozen=True, config=_STRICT)
class Packing:
    """A smaller copy of a model.

    Attributes:
        name: Of the copy.
        dtype: Type of the table.
        dim: Components that stay; None: all.
    """

    name: str
    dtype: Literal["float32", "float16", "int8", "int4"]
    dim: pydantic.PositiveInt | None = None


@pydantic.dataclasses.dataclass(frozen=True, config=_STRICT)
class ModelDescription:
    """One model of a release.

    Attributes:
        languages: Beside English; "en" stands for English paraphrases.
        config: A configuration of `train bitext` by name.
        settings: Of the training run, stronger than those of the configuration.
        preparation: Of its text.
        open_only: Train on open sources alone.
        leave_out: Sources that are not trained on.
        begin_with: A model of the release, made before, whose vocabulary is taken and whose rows training begins with.
        pack: Smaller copies.
        licence: Of the model.
    """

    languages: list[str]
    config: str = "short"
    settings: dict[str, Any] = pydantic.Field(default_factory=dict)
    preparation: dict[str, Any] = pydantic.Field(default_factory=dict)
    open_only: bool = False
    leave_out: list[str] = pydantic.Field(default_factory=list)
    begin_with: str | None = None
    pack: list[Packing] = pydantic.Field(default_factory=list)
    licence: str = "other"

    @property
    def language(self) -> str:
        """The languages in one word, as stores and commands take them."""
        return "-".join(self.languages)

    def training(self) -> TrainingSettings:
        """The settings of the training run.

        Raises:
            SettingsError: One is refused, or there is no such configuration.
        """
        settings: TrainingSettings = family_named(TrainingSettings.family).read_settings(self.config, self.settings)
        return settings

    def preparing(self) -> PrepareSettings:
        """The settings of the preparation.

        Raises:
            SettingsError: One is refused.
        """
        return _prepare_settings(self.language, self.preparation)


@pydantic.dataclasses.dataclass(frozen=True, config=_STRICT)
class Release:
    """A family of models.

    Attributes:
        models: By their names, in the order in which they are made.
        sources: The licences of all sources of text, by the names of their files.
    """

    models: dict[str, ModelDescription]
    sources: dict[str, Licence]

    def only(self, names: list[str]) -> Release:
        """The release with some of its models alone; all, if none is named.

        Raises:
            SettingsError: There is no model of a name.
        """
        for name in names:
            if name not in self.models:
                raise SettingsError(f"no model {name!r} in the release; it has {', '.join(self.models)}")
        return replace(self, models={name: self.models[name] for name in names}) if names else self


def read_release(path: str | Path) -> Release:
    """Read a release's description.

    Raises:
        SettingsError: The file is missing or no YAML, or an entry is unknown, missing or refused.
    """
    values = read_yaml(path)
    try:
        release = pydantic.TypeAdapter(Release).validate_python(values)
    except pydantic.ValidationError as error:
        first = error.errors()[0]
        raise SettingsError(f"{path}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from error
    before: set[str] = set()
    for name, model in release.models.items():
        if model.begin_with not in (None, *before):
            raise SettingsError(f"{path}: {name}: begin_with is {model.begin_with!r}, no model that is made before")
        before.add(name)
        try:
            model.training()
            model.preparing()
        except SettingsError as error:
            raise SettingsError(f"{path}: {name}: {error}") from error
        if unknown := sorted(set(model.leave_out) - set(release.sources)):
            raise SettingsError(f"{path}: {name}: leave_out names {unknown[0]!r}, which is none of the sources")
    return release


def _prepare_settings(language: str, values: dict[str, Any]) -> PrepareSettings:
    known = set(fields_of(PrepareSettings))
    if unknown := sorted(set(values) - known):
        raise SettingsError(f"preparation: unknown setting {unknown[0]!r}; known are {', '.join(sorted(known))}")
    return PrepareSettings(languages=("en", language), **values)
