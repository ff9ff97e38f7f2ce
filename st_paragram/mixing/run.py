"""A whole search: from texts to a mixture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tqdm import tqdm

from st_paragram.core.files import check_output, digest, folder_for_file, is_pipe, remove_unfinished
from st_paragram.core.text.parallel import TextSource
from st_paragram.errors import SettingsError, TextError
from st_paragram.mixing import report
from st_paragram.mixing.development import Development, read_development
from st_paragram.mixing.samples import draw, hold_out, without_development
from st_paragram.mixing.search import Result, most_trainings, search
from st_paragram.mixing.settings import MixSettings
from st_paragram.mixing.stores import stores, vocabulary
from st_paragram.mixing.trainings import Trainings, quiet
from st_paragram.tools.cleaning.config import Cleaning, only_length
from st_paragram.tools.corpora.mixture import MixtureSource
from st_paragram.tools.preparation.settings import PrepareSettings
from st_paragram.tools.stages.work import Work, work_folder


@dataclass(frozen=True)
class MixRun:
    """What a search is asked to do.

    Attributes:
        sources: The texts, each with a unique name.
        output: The YAML file to make.
        settings: How texts are compared.
        cleaning: Filters of the texts.
        graded: Files of graded pairs to score models on.
        translations: Texts to score models on.
        temperatures: To try on the mixture that is chosen.
        json: A file for all figures.
        overwrite: Replace outputs that exist.
        work: Where results are kept.
    """

    sources: Sequence[MixtureSource]
    output: Path
    settings: MixSettings
    cleaning: Cleaning = field(default_factory=only_length)
    graded: Sequence[Path] = ()
    translations: Sequence[TextSource] = ()
    temperatures: Sequence[float] = ()
    json: Path | None = None
    overwrite: bool = False
    work: Work = field(default_factory=Work)

    @property
    def languages(self) -> tuple[str, str]:
        """English, and all languages with dashes between."""
        return "en", "-".join(sorted({each.source.pair[1] for each in self.sources}))

    def check(self) -> Development:
        """Refuse what can be refused before the texts are read; returns the sets that were given.

        Raises:
            SettingsError: Fewer than two groups of sources, nothing to score models on, or a temperature below 1.
            TextError: A text is missing, or a development set is refused.
            EvaluationError: A development set is a known test set.
            ParagramError: An output exists, or cannot be made.
        """
        for path in filter(None, (self.output, self.json)):
            check_output(path, self.overwrite)
        groups = {each.group for each in self.sources}
        if len(groups) < 2:
            raise SettingsError(f"{len(groups)} sources; give at least two to compare")
        if low := [each for each in self.temperatures if not each >= 1]:
            raise SettingsError(f"temperatures has {low[0]:g}; give numbers of at least 1")
        for text in (text for each in self.sources for text in each.source.paths):
            if wrong := folder_for_file(text):
                raise TextError(f"{wrong}; name a file")
            if not Path(text).is_file() or is_pipe(text):
                raise TextError(f"{text}: no such file; check the path (standard input cannot be read twice)")
        development = read_development(self.graded, self.translations, self.languages)
        if not (development.graded or development.translations or self.settings.held_out):
            raise SettingsError("held_out is 0, and no development set is given; give --dev or --dev-bitext")
        return development

    def preparation(self) -> PrepareSettings:
        """How texts are prepared."""
        size = self.settings.vocab_size
        return PrepareSettings(
            languages=self.languages, cleaning=self.cleaning, vocab_size=size, seed=self.settings.seed
        )


def mix(run: MixRun) -> Result:
    """Find the weights and write the mixture; the same call resumes a search that was stopped.

    Raises:
        ParagramError: As of `MixRun.check`; a text is refused; another run is at work; a file cannot be written.
    """
    given = run.check()
    with work_folder(run.work, run.output) as folder:
        for place in ("samples", "texts", "vocabulary", "trainings"):
            remove_unfinished(folder / place)  # what a killed run has left; stores do this themselves
        found = search(_trainings(run, given, folder), run.temperatures)
        report.write(found, run.settings, run.sources, run.output)
        if run.json:
            report.write_values(found, run.settings, run.json)
    return found


def _trainings(run: MixRun, given: Development, folder: Path) -> Trainings:
    settings, preparation = run.settings, run.preparation()
    drawn = draw(run.sources, run.languages, settings.sample, settings.seed, folder / "samples")
    development = hold_out(drawn, settings.held_out, given)
    if not (development.graded or development.translations):
        raise TextError("the sources are too small to hold pairs out; give --dev or --dev-bitext")
    samples = without_development(drawn, development, folder / "texts")
    with quiet():
        tokenizer = vocabulary(samples, preparation, settings, folder / "vocabulary")
        prepared = stores(samples, preparation, tokenizer, folder / "stores")
    identity = digest([store.digest for store in prepared])
    fewest, _ = most_trainings(
        len({each.group for each in run.sources}), settings.seeds, settings.method, len(run.temperatures)
    )
    progress = tqdm(total=fewest, desc="training", unit=" trainings", disable=None)
    return Trainings(samples, prepared, development, settings, run.languages, folder / "trainings", identity, progress)
