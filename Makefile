# make demo: set up the package alone, train p-sp-es on the built-in bitext, show what it does beside p-sp-mini.
# make test: set up everything for development, run the tests. make docs: write the documentation's site into site/.
VENV ?= .venv
PYTHON ?= python3
# For a CPU-only torch on Linux: make install TORCH_INDEX=https://download.pytorch.org/whl/cpu
TORCH_INDEX ?=
BIN := $(VENV)/bin
LOWEST ?= .venv-lowest
# What an installation is made of
SOURCES := setup.cfg setup.py pyproject.toml $(wildcard st_paragram/core/native/src/*)

.PHONY: help install demo docs test test-slow test-lowest lint format fuzz kill sanitize starve soak clean
.DEFAULT_GOAL := help

help:
	@echo "make install | demo | test | test-slow | docs | lint | format | clean"
	@echo "with the oldest versions that setup.cfg allows: make test-lowest PYTHON=python3.10"
	@echo "hours of hostile tries (docs/reliability.md): make fuzz | kill | sanitize | starve | soak"

install: $(VENV)/.installed

# A torch wheel that pip is configured to find locally goes first: plain `torch` on Linux brings gigabytes of CUDA.
$(VENV)/.torch:
	@echo "Setting up $(VENV): this takes some minutes the first time."
	$(PYTHON) -m venv $(VENV)
	@if [ -n "$(TORCH_INDEX)" ]; then $(BIN)/pip install --index-url "$(TORCH_INDEX)" "torch>=2.6"; \
	else $(BIN)/pip install --quiet --no-index --no-deps "torch>=2.6" 2>/dev/null || true; fi
	@touch $@

# The package alone, for the demo; with everything for development, which has all that the demo needs; for the site.
$(VENV)/.installed-core: $(SOURCES) | $(VENV)/.torch
	$(BIN)/pip install --quiet --editable .
	@touch $@

$(VENV)/.installed: $(SOURCES) | $(VENV)/.torch
	$(BIN)/pip install --quiet --editable ".[dev]"
	@touch $(VENV)/.installed-core $@

$(VENV)/.installed-docs: $(SOURCES) | $(VENV)/.torch
	$(BIN)/pip install --quiet --editable ".[docs]"
	@touch $(VENV)/.installed-core $@

demo: $(VENV)/.installed-core
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
	PYTHONPATH=tests $(BIN)/python -m support.commands_pages
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict  # --quiet would hide what --strict counts
	@echo "site/index.html"

test: install
	$(BIN)/python -m pytest -n auto --dist worksteal -m "not slow"

test-slow: install
	$(BIN)/python -m pytest -n auto --dist worksteal -m slow

test-lowest: $(LOWEST)/.installed
	$(LOWEST)/bin/python tests/support/requirements.py
	$(LOWEST)/bin/python -m pytest -n auto --dist worksteal

$(LOWEST)/.installed: $(SOURCES)
	$(PYTHON) -m venv $(LOWEST)
	$(LOWEST)/bin/pip install --quiet uv
	@if [ -n "$(TORCH_INDEX)" ]; then $(LOWEST)/bin/uv pip install --python $(LOWEST)/bin/python \
		--index-url "$(TORCH_INDEX)" --resolution lowest-direct "torch>=2.6"; fi
	$(LOWEST)/bin/uv pip install --python $(LOWEST)/bin/python --resolution lowest-direct --editable ".[dev]"
	@touch $@

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	PYTHONPATH=tests $(BIN)/python -m support.english
	$(BIN)/lint-imports
	$(BIN)/mypy

format: install
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

fuzz: install
	PYTHONPATH=tests $(BIN)/python -m hostile.campaign

kill: install
	PYTHONPATH=tests $(BIN)/python -m hostile.kill --kills 200
	PYTHONPATH=tests $(BIN)/python -m hostile.together --rounds 20

sanitize: install
	PYTHONPATH=tests $(BIN)/python -m hostile.sanitize --tries 10000

starve: install
	PYTHONPATH=tests $(BIN)/python -m hostile.starved --starts 1000

soak: install
	PYTHONPATH=tests $(BIN)/python -m hostile.soak --minutes 10

clean:
	rm -rf $(VENV) $(LOWEST) build demo dist site *.egg-info st_paragram/core/native/*.so .mypy_cache .pytest_cache .ruff_cache .hypothesis
