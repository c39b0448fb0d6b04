# All targets use a virtual environment in .venv; nothing is installed into the system's Python.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
REPORT ?= sample_report.xlsx

.PHONY: report test lint types check lock audit clean

report: $(VENV)/core ## score the sample with the offline judge
	@$(BIN)/python rag_eval_standalone.py sample_rag_input.xlsx -o $(REPORT) --judge offline

test: $(VENV)/full ## run the tests
	$(BIN)/python -m pytest

lint: $(VENV)/full
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-logo

types: $(VENV)/full
	$(BIN)/mypy

check: lint types test

# Enough for the offline judge and the report: seconds, not minutes.
$(VENV)/core: pyproject.toml requirements.txt
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Setting up $(VENV) (once) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint requirements.txt --editable .
	@touch $@

# What LLM judges and the tests need on top.
$(VENV)/full: $(VENV)/core requirements.txt requirements-dev.txt
	@echo "Installing ragas and what the tests need (once, one to several minutes) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --requirement requirements.txt --requirement requirements-dev.txt
	@touch $@

lock: ## write requirements.lock from requirements.txt; needs uv
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
		--output-file requirements.lock.new requirements.txt
	(sed -n '/^#/p' requirements.lock; cat requirements.lock.new) > requirements.lock.both
	mv requirements.lock.both requirements.lock && rm requirements.lock.new

audit: ## known vulnerabilities of the pinned packages; needs pip-audit and the network
	pip-audit --no-deps --disable-pip --requirement requirements.txt

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis sample_report.xlsx
