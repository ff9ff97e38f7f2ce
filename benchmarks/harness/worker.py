"""The process of one peer: `python -m harness.worker`, a job as a line of JSON on standard input."""

from __future__ import annotations

import importlib
import json
import os
import sys
from typing import Any

from harness.channel import Channel, PeerAbsentError

#: Kinds of jobs, and the module whose `run(peer, arguments, channel)` does them.
KINDS = {
    "encode": "encoders",
    "lookup": "lookups",
    "load": "loading",
    "train": "training_peers",
    "train-run": "training_runs",
    "encoder-train": "encoder_training",
    "limit": "limits",
}


def main() -> int:
    """Do the job; standard output belongs to the channel, what libraries print goes to standard error."""
    outgoing = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    channel = Channel(sys.stdin, outgoing)
    job: dict[str, Any] = json.loads(sys.stdin.readline())
    try:
        module = importlib.import_module(f"harness.{KINDS[job['kind']]}")
        module.run(job["peer"], job["arguments"], channel)
    except PeerAbsentError as error:
        channel.send({"absent": str(error)})
    except Exception as error:  # whatever goes wrong inside a peer is a row of the table, not the end of the benchmark
        reason = str(error).strip().split("\n")[0]
        channel.send({"absent": f"cannot run: {type(error).__name__}: {reason}"[:200]})
        raise
    return 0


if __name__ == "__main__":
    sys.exit(main())
