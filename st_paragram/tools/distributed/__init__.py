"""Steps for datatrove pipelines, which run on many machines.

Datatrove (extra `distributed`) has executors for one machine, Slurm and Ray. They divide files
among tasks, mark completed tasks, and skip these when the same pipeline is run again.

Pairs are cleaned (`clean`) and texts embedded (`embed`). To mine translations, the distinct
sentences of both texts (`distinct`) are embedded, searched (`search`) and joined to pairs (`join`).
These steps share a folder, whose paths are in `mining`.
"""

from st_paragram.core.extras import require

require("datatrove", "distributed", "a pipeline of datatrove")
