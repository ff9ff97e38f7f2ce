# make demo: install only the package, train p-sp-es on the built-in bitext, and compare it with p-sp-mini.
# make test: install everything for development, and run the tests. make docs: build the documentation site in site/.
VENV ?= .venv
PYTHON ?= python3
# For a CPU-only torch on Linux: make install TORCH_INDEX=https://download.pytorch.org/whl/cpu
TORCH_INDEX ?=
BIN := $(VENV)/bin
# Files that the installation depends on
SOURCES := setup.cfg setup.py pyproject.toml $(wildcard st_paragram/core/native/src/*)
PYTEST := $(BIN)/python -m pytest -n auto --dist worksteal
# A file in each folder that make creates here. Only folders with it are replaced or removed.
MARKER := .made-by-make
# $(call own,FOLDER): create FOLDER with the marker; refuse a folder that make did not create.
own = if [ -L "$(1)" ] || { [ -e "$(1)" ] && [ ! -f "$(1)/$(MARKER)" ]; }; then \
	echo "$(1) exists and make did not create it; move it elsewhere" >&2; exit 1; fi; \
	mkdir -p "$(1)" && touch "$(1)/$(MARKER)"

# pip shows each package and the progress of downloads.
PIP_INSTALL := $(BIN)/pip install --disable-pip-version-check --no-warn-script-location
# Show what was installed and its size; if torch came with CUDA, also how to get a smaller one.
report = @version=$$($(BIN)/python -c "from importlib.metadata import version; print(version('torch'))"); \
	echo "$(VENV): torch $$version; $$(du -sh "$(VENV)" | cut -f1) in all"; \
	if [ -n "$$(ls -d $(VENV)/lib/python*/site-packages/nvidia 2>/dev/null)" ]; then \
	echo "This torch includes CUDA. Without a GPU, a smaller one is enough:"; \
	echo "  make clean && make install TORCH_INDEX=https://download.pytorch.org/whl/cpu"; fi

.PHONY: help install demo docs test test-slow lint format clean
.DEFAULT_GOAL := help

help:
	@echo "make install | demo | test | test-slow | docs | lint | format | clean"

install: $(VENV)/.installed-dev

# First try a torch wheel that pip is configured to find locally: the default `torch` for Linux adds gigabytes of CUDA.
$(VENV)/.torch:
	@echo "Setting up $(VENV): this takes a few minutes the first time."
	@[ -e "$(VENV)" ] || { $(call own,$(VENV)); }
	$(PYTHON) -m venv $(VENV)
	@if [ -n "$(TORCH_INDEX)" ]; then $(PIP_INSTALL) --index-url "$(TORCH_INDEX)" "torch>=2.6"; \
	else $(BIN)/pip install --quiet --no-index --no-deps "torch>=2.6" 2>/dev/null || true; fi
	@touch $@

# Only the package for the demo; with an extra for development or for the documentation site.
$(VENV)/.installed: $(SOURCES) | $(VENV)/.torch
	$(PIP_INSTALL) --editable .
	$(report)
	@touch $@

$(VENV)/.installed-%: $(SOURCES) | $(VENV)/.torch
	$(PIP_INSTALL) --editable ".[$*]"
	$(report)
	@touch $(VENV)/.installed $@

demo: $(VENV)/.installed
	@$(call own,demo)
	rm -rf demo/p-sp-es demo/p-sp-es.checkpoints demo/p-sp-mini
	$(BIN)/python recipes/train_bitext.py --lang es --data built-in --output demo/p-sp-es
	$(BIN)/python recipes/try_model.py demo/p-sp-es --lang es
	$(BIN)/st-paragram get p-sp-mini --output demo/p-sp-mini
	$(BIN)/python recipes/try_model.py demo/p-sp-mini --lang es
	@echo
	@echo "Done. demo/p-sp-es is the model that was just trained; demo/p-sp-mini comes with the package."
	@echo "Compare their results on natural sentences: p-sp-es knows only the words of the built-in text, while p-sp-mini"
	@echo "was trained on real text. Next: docs/five_minutes.md and README.md."

docs: $(VENV)/.installed-docs
	@$(call own,site)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict  # --quiet would hide the warnings that --strict counts
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
	@for folder in "$(VENV)" demo site; do \
		if [ -L "$$folder" ]; then echo "$$folder is a link and stays"; \
		elif [ -f "$$folder/$(MARKER)" ]; then echo "rm -rf $$folder"; rm -rf "$$folder"; \
		elif [ -e "$$folder" ]; then echo "$$folder stays: make did not create it"; fi; done
	rm -rf build/lib* build/temp* build/bdist* build/__editable__* dist/st_paragram-* st_paragram.egg-info
	@rmdir build dist 2>/dev/null || true
	rm -rf st_paragram/core/native/*.so .mypy_cache .pytest_cache .ruff_cache .hypothesis
