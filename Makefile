# make run   sets up and runs the main job on a bundled robot
# make test  sets up and runs the tests
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
ROBOT ?= iiwa14

.PHONY: run test lint bench clean

run: $(VENV)/.ready
	$(BIN)/linkwise demo $(ROBOT)

test: $(VENV)/.ready
	$(BIN)/python -m pytest -q -n auto

lint: $(VENV)/.ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/.ready
	$(BIN)/linkwise bench --suite

$(VENV)/.ready: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[dev]"
	touch $@

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
