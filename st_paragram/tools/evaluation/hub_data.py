"""Load evaluation data from the Hugging Face Hub."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from st_paragram.core.extras import require
from st_paragram.errors import EvaluationError, one_line


@dataclass(frozen=True)
class HubData:
    """A data set on the Hugging Face Hub, at the revision that mteb uses."""

    name: str
    revision: str
    split: str = "test"

    def load(self, subset: str | None = None, split: str = "") -> Any:
        """Load a split (default: the split of this data set) as a `datasets.Dataset`."""
        datasets = require("datasets", "eval", "loading data from the hub")
        try:
            return datasets.load_dataset(
                self.name, subset, split=split or self.split, revision=self.revision
            )
        except Exception as error:  # datasets passes on the exceptions of many libraries
            reason = one_line(str(error).split("\n")[0])
            raise EvaluationError(
                f"cannot load {self.name} from the hub ({type(error).__name__}: {reason}); give a"
                " folder with the data: --data DIR"
            ) from error
