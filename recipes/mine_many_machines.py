r"""Mine translations in texts that are too large for one machine, with datatrove and faiss.

    python recipes/mine_many_machines.py --source en --target es --folder mining --tasks 8
    python recipes/mine_many_machines.py --source en --target es --folder /shared/mining \
        --tasks 1000 --workers 200 --executor slurm --memory 8 --hours 24

`en` and `es` are folders of Parquet files with a column of sentences. The pairs are in the files
`mining/mined/*.tsv`: `score TAB source TAB target`, best first. If a task fails or is killed, run
the command again: completed tasks are skipped. Use a new folder for other texts or options. All
machines need st_paragram and the same paths.
"""

import argparse
import os
import sys
from pathlib import Path

from datatrove.executor import LocalPipelineExecutor, RayPipelineExecutor, SlurmPipelineExecutor
from datatrove.io import get_datafolder
from datatrove.pipeline.readers import ParquetReader

from st_paragram import EmbedTexts, MiningSettings, distributed
from st_paragram.cli.main import run_reporting_errors

SIDES = ("source", "target")
#: Options that do not change the results.
HOW = ("folder", "executor", "workers", "threads", "memory", "partition", "hours")


def main() -> int:
    """Mine, and return the exit status."""
    parser = argparse.ArgumentParser(description="Mine translations on many machines.")
    add = parser.add_argument
    add("--source", required=True, help="folder of sentences in one language")
    add("--target", required=True, help="folder of sentences in the other language")
    add("--text-key", default="text", help="column of the sentences")
    add("--model", default="p-sp-mini", help="model directory, name or hub id")
    add("--folder", type=Path, required=True, help="folder for all results, on a shared disk")
    add("--threshold", type=float, help="minimum score of a pair (default: all candidates)")
    add("--margin", choices=("distance", "ratio", "absolute"), default="distance", help="score")
    add("--neighbors", type=int, default=4, help="neighbors searched per sentence")
    add("--recall", type=float, default=0.9, help="share of nearest neighbors to find")
    add("--index", default="auto", help="auto, or a faiss factory string")
    add("--executor", choices=("local", "slurm", "ray"), default="local", help="where tasks run")
    add("--tasks", type=int, default=8, help="files that each text is divided into")
    add("--workers", type=int, default=2, help="tasks at the same time")
    add("--threads", type=int, default=1, help="threads per task")
    add("--memory", type=int, default=4, help="Slurm and Ray: GB per thread")
    add("--partition", default="cpu", help="Slurm: partition")
    add("--hours", type=int, default=4, help="Slurm: maximum time of a task")
    options = parser.parse_args()
    folder = options.folder
    run = {name: value for name, value in vars(options).items() if name not in HOW}
    for side in SIDES:
        files = get_datafolder(run[side])
        paths = files.list_files()
        if not paths:
            parser.error(f"--{side}: no files in {run[side]}; check the path")
        changed = max(map(files.modified, paths))
        run[f"{side} files"] = f"{files.du('')} bytes, changed {changed}"
    distributed.make_mining_folder(folder, run)  # refuses a folder of another run
    os.environ["OMP_NUM_THREADS"] = str(options.threads)

    # Margin scores and the kind of index, as in mine_bitext.py.
    settings = MiningSettings(
        margin=options.margin,
        neighbors=options.neighbors,
        threshold=options.threshold,
        index=options.index,
        recall=options.recall,
    )

    # Group the texts by hash, so that equal texts meet in one task, which keeps one of them.
    # Then embed the distinct sentences. A pipeline comes with its number of tasks.
    pipelines = {}
    for side in SIDES:
        reader = ParquetReader(getattr(options, side), text_key=options.text_key)
        deal = distributed.DealTexts(folder, side, groups=options.tasks)
        distinct = distributed.DistinctTexts(folder, side)
        vectors = str(folder / "vectors" / side)
        embed = EmbedTexts(options.model, vectors, normalize=True, only_known=True)
        pipelines[f"deal-{side}"] = [reader, deal], options.tasks
        pipelines[f"embed-{side}"] = [distinct, embed], options.tasks

    # Train an index once, and add the sentences to copies of it. Choose the search effort, and
    # search all files of the index for each file of sentences. Then compare the cosines of
    # neighbors with the means of both sentences.
    for side in SIDES:
        train = distributed.TrainIndex(folder, side, settings)
        index = distributed.IndexVectors(folder, side)
        pipelines[f"train-{side}"] = [train], 1
        pipelines[f"index-{side}"] = [index], options.tasks
    for side in SIDES:
        effort = distributed.ChooseEffort(folder, side, settings)
        search = distributed.SearchVectors(folder, side, settings)
        pipelines[f"effort-{side}"] = [effort], 1
        pipelines[f"search-{side}"] = [search], options.tasks
    for side in SIDES:
        score = distributed.ScorePairs(folder, side, settings)
        pipelines[f"score-{side}"] = [score], options.tasks

    # Keep each sentence in one pair, and write the texts.
    pipelines["match"] = [distributed.MatchPairs(folder)], 1
    pipelines["write"] = [distributed.WritePairs(folder)], options.tasks

    # Run them one after another. Slurm gets all jobs at once, and each waits for the one before.
    size = {"cpus_per_task": options.threads, "mem_per_cpu_gb": options.memory}
    executor = None
    for name, (pipeline, tasks) in pipelines.items():
        logs = f"{folder}/logs/{name}"
        shared = {"tasks": tasks, "workers": options.workers, "logging_dir": logs}
        if options.executor == "slurm":
            place = {"partition": options.partition, "job_name": name, "depends": executor}
            time = f"{options.hours}:00:00"
            executor = SlurmPipelineExecutor(pipeline, time=time, **shared, **size, **place)
        elif options.executor == "ray":
            executor = RayPipelineExecutor(pipeline, **shared, **size)
        else:
            executor = LocalPipelineExecutor(pipeline, **shared)
        executor.run()
        if options.executor != "slurm" and executor.get_incomplete_ranks():
            parser.exit(1, f"{name}: tasks failed, see {folder}/logs/{name}; run this again\n")
    return 0


if __name__ == "__main__":
    sys.exit(run_reporting_errors("mine_many_machines", main))
