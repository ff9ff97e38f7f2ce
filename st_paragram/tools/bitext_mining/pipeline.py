"""The stages of a mining run, each knowing those whose results it takes."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

from st_paragram.core.threads import usable_cores
from st_paragram.errors import ParagramError
from st_paragram.tools.bitext_mining.effort_stage import EffortStage
from st_paragram.tools.bitext_mining.embed_stage import EmbedStage
from st_paragram.tools.bitext_mining.index_stage import IndexStage
from st_paragram.tools.bitext_mining.pair_stage import PairStage
from st_paragram.tools.bitext_mining.report import MiningReport, Searched
from st_paragram.tools.bitext_mining.search_plan import SearchPlan
from st_paragram.tools.bitext_mining.search_stage import SearchStage
from st_paragram.tools.bitext_mining.sentence_stage import SentenceStage
from st_paragram.tools.bitext_mining.settings import MiningSettings
from st_paragram.tools.search.settings import FLAT
from st_paragram.tools.stages.executors import StageTime
from st_paragram.tools.stages.metadata import read_metadata
from st_paragram.tools.stages.stage import Stage
from st_paragram.tools.stages.work import prune


@dataclass(frozen=True)
class Pipeline:
    """The stages, first to last."""

    sentences: SentenceStage
    embed: EmbedStage
    index: IndexStage
    effort: EffortStage
    search: SearchStage
    pairs: PairStage

    @property
    def stages(self) -> list[Stage]:
        """All of them, in order."""
        return [self.sentences, self.embed, self.index, self.effort, self.search, self.pairs]

    def made_output(self) -> bool:
        """Whether the output is what this work folder has made before."""
        try:
            return not self.pairs.pending()
        except ParagramError:  # stages before it are not done
            return False

    def forget_others(self) -> None:
        """Remove what was done for other texts and settings in the same work folder."""
        prune(self.sentences.root, {results for stage in self.stages for results in stage.folders})

    def report(self, times: list[StageTime]) -> MiningReport:
        """The numbers of all stages, which are done."""
        texts = self.sentences.texts
        counts = tuple(self.sentences.sentences(side).counts for side in range(len(texts)))
        searched = tuple(map(self._searched, range(len(self.search.plan.directions))))
        pairs = read_metadata(self.pairs.results()[0])
        return MiningReport(texts, counts, searched, pairs["pairs"], pairs["scores"], times)

    def _searched(self, direction: int) -> Searched:
        plan = self.search.plan
        if plan.factory(direction) == FLAT:
            return Searched(FLAT)
        return Searched(plan.factory(direction), len(plan.parts(direction)), **asdict(self.effort.effort(direction)))


def build(
    sentences: SentenceStage, output: Path, model: Path, fingerprint: str, settings: MiningSettings, workers: int
) -> Pipeline:
    """Put the stages together.

    Args:
        sentences: The first one, which knows the texts and the work folder.
        output: The file of pairs.
        model: Directory of a model.
        fingerprint: Of the model.
        settings: Of the mining run.
        workers: Processes that share the memory and the cores.
    """
    folder = sentences.root
    threads = max(1, usable_cores() // workers)
    embed = EmbedStage(folder, sentences, model, fingerprint, settings.vector_type, settings.rows, threads)
    plan = SearchPlan(sentences.texts, embed, settings, workers)
    index = IndexStage(folder, plan)
    effort = EffortStage(folder, plan, index)
    search = SearchStage(folder, plan, index, effort)
    return Pipeline(sentences, embed, index, effort, search, PairStage(folder, sentences, search, settings, output))
