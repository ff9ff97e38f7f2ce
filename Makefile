# make demo: set up the package alone, train p-sp-es on the built-in bitext, show what it does beside p-sp-mini.
# make test: set up everything for development, run the tests. make docs: write the documentation's site into site/.
VENV ?= .venv
PYTHON ?= python3
# For a CPU-only torch on Linux: make install TORCH_INDEX=https://download.pytorch.org/whl/cpu
TORCH_INDEX ?=
BIN := $(VENV)/bin
# What an installation is made of
SOURCES := setup.cfg setup.py pyproject.toml $(wildcard st_paragram/core/native/src/*)
PYTEST := $(BIN)/python -m pytest -n auto --dist worksteal

.PHONY: help install demo docs test test-slow lint format clean
.DEFAULT_GOAL := help

help:
	@echo "make install | demo | test | test-slow | docs | lint | format | clean"

install: $(VENV)/.installed-dev

# A torch wheel that pip is configured to find locally goes first: plain `torch` on Linux brings gigabytes of CUDA.
$(VENV)/.torch:
	@echo "Setting up $(VENV): this takes some minutes the first time."
	$(PYTHON) -m venv $(VENV)
	@if [ -n "$(TORCH_INDEX)" ]; then $(BIN)/pip install --index-url "$(TORCH_INDEX)" "torch>=2.6"; \
	else $(BIN)/pip install --quiet --no-index --no-deps "torch>=2.6" 2>/dev/null || true; fi
	@touch $@

# The package alone for the demo; with an extra for development or for the site.
$(VENV)/.installed: $(SOURCES) | $(VENV)/.torch
	$(BIN)/pip install --quiet --editable .
	@touch $@

$(VENV)/.installed-%: $(SOURCES) | $(VENV)/.torch
	$(BIN)/pip install --quiet --editable ".[$*]"
	@touch $(VENV)/.installed $@

demo: $(VENV)/.installed
	rm -rf demo
	$(BIN)/python recipes/train_bitext.py --lang es --data built-in --output demo/p-sp-es
	$(BIN)/python recipes/try_model.py demo/p-sp-es --lang es
	$(BIN)/st-paragram get p-sp-mini --output demo/p-sp-mini
	$(BIN)/python recipes/try_model.py demo/p-sp-mini --lang es
	@echo
	@echo "Done. demo/p-sp-es is the model that was just trained, demo/p-sp-mini the one that comes with the package."
	@echo "Look at the natural sentences of both: p-sp-es knows the words of the built-in text alone, p-sp-mini shows what"
	@echo "a model that was trained on real text gives. Next: docs/five_minutes.md, and README.md."

docs: $(VENV)/.installed-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict  # --quiet would hide what --strict counts
	@echo "site/index.html"

test: install
	$(PYTEST) -m "not slow"

test-slow: install
	$(PYTEST) -m slow

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/mypy

format: install
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf $(VENV) build demo dist site *.egg-info st_paragram/core/native/*.so .mypy_cache .pytest_cache .ruff_cache .hypothesis
