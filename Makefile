# `make run` opens the app, `make test` checks everything; both set up what they need first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: run demo test lint types imports pytest system-run system-test clean

run: system-run $(VENV)/.ready-run
	@if [ -n "$$DISPLAY$$WAYLAND_DISPLAY" ] || [ "$$(uname)" = Darwin ]; then \
		exec $(BIN)/gptscope; \
	else \
		echo "No display here (DISPLAY and WAYLAND_DISPLAY are empty), so this is the demo in the terminal; on a desktop, 'make run' opens the window."; \
		exec $(BIN)/gptscope demo; \
	fi

demo: $(VENV)/.ready-run
	$(BIN)/gptscope demo

test: system-test $(VENV)/.ready-test lint types imports pytest

lint: $(VENV)/.ready-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.ready-test
	$(BIN)/mypy

# import-linter finds the namespace package through the links that the type checker uses too
imports: $(VENV)/.ready-test
	PYTHONPATH=.typing $(BIN)/lint-imports --no-logo

pytest: $(VENV)/.ready-test
	$(BIN)/pytest $(PYTEST_ARGS)

system-run system-test:
	@sh .ci/system-packages $(@:system-%=%)

$(BIN)/python: | system-run
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "gptscope needs Python 3.11 or newer, but $(PYTHON) is $$($(PYTHON) --version 2>&1). Run 'make PYTHON=/path/to/python3.11 run'."; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.ready-run: pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install --disable-pip-version-check --quiet $(PIP_ARGS) -c constraints.txt -e .
	@touch $@

$(VENV)/.ready-test: pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install --disable-pip-version-check --quiet $(PIP_ARGS) -c constraints.txt -e '.[dev]'
	@touch $@ $(VENV)/.ready-run

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
