"""Describe a pair store, as `st-paragram inspect` does: `python data_prep/inspect_store.py en-es.h5 --plot es.png`."""

import sys

from st_paragram.cli.main import run_script

if __name__ == "__main__":
    sys.exit(run_script("inspect_store", "inspect", __doc__))
