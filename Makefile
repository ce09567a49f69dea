# Two commands matter: `make demo` shows what Memoranda does, `make test` passes every check.
# Both need Python 3.11 or newer, git and make, and keep to this folder: everything is installed into .venv.

# `make PYTHON=/path/to/python3.12 demo` chooses the interpreter. Left alone, the first one on the PATH that is new
# enough is taken, since python3 is not always the newest.
PYTHON ?= python3
CANDIDATES := $(PYTHON) $(if $(filter file,$(origin PYTHON)),python3.14 python3.13 python3.12 python3.11)

VENV := .venv
BIN := $(VENV)/bin
# Nothing that surrounds us may leak in: another active environment, a user's site-packages, an interactive prompt.
unexport VIRTUAL_ENV PYTHONHOME PYTHONPATH PIP_USER PIP_TARGET PIP_PREFIX
export PYTHONNOUSERSITE := 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_NO_INPUT := 1
# The pins are complete, so nothing is resolved; every file must have a recorded hash.
PIP_INSTALL := $(BIN)/python -m pip install --quiet --require-hashes --no-deps

heading = @printf '\n== %s ==\n' "$(1)"

.DEFAULT_GOAL := help
.NOTPARALLEL:
.DELETE_ON_ERROR:
.PHONY: help demo dev serve test engines test-engines bench bench-recall bench-serve bench-postgres lint format contract clean pins

help:
	@echo 'make demo     set up, open the example Home, remember something and recall it'
	@echo 'make serve    set up and serve many tenants on this machine, with an example to try'
	@echo 'make test     set up and pass every check'
	@echo 'make dev      set up what the checks need, and pass none'
	@echo 'make engines  set up the real Cognee (1.6 GB), its MCP server and the library of Mem0'
	@echo 'make test-engines  set up the real Cognee (1.6 GB) and the library of Mem0, and pass every check on them (five minutes)'
	@echo 'make bench    measure, and print a table'
	@echo 'make bench-recall  how well and how fast recall finds, up to a million notes (two hours)'
	@echo 'make bench-serve   what the service costs: guards, HTTP, a thousand tenants (half an hour)'
	@echo 'make bench-postgres  what Homes on PostgreSQL cost beside folders and plain rows (half an hour the first time)'
	@echo 'make lint     only the quick checks: style, types, the floors'
	@echo 'make format   put the source into the shape that the checks expect'
	@echo 'make contract write the schema of the contract again, after a change of its types'
	@echo 'make clean    delete what was installed and cached (a Home made by the demo stays)'
	@echo 'make pins     choose the dependencies again (maintainers; needs uv)'

# -- set-up ----------------------------------------------------------------------------------------------------------
# A stamp stands for a finished step, so that the second run starts at once.

$(BIN)/python:
	@command -v git >/dev/null || { echo 'Memoranda needs git, and there is none on the PATH.' >&2; exit 1; }
	@for python in $(CANDIDATES); do \
	  "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || continue; \
	  "$$python" -c 'import ensurepip, venv' 2>/dev/null || { \
	    echo "$$python cannot make a virtual environment: the modules venv and ensurepip are missing" \
	         '(on Debian and Ubuntu: install python3-venv).' >&2; exit 1; }; \
	  echo "Making $(VENV) with $$("$$python" --version)"; \
	  exec "$$python" -m venv --clear $(VENV); \
	done; \
	echo 'Memoranda needs Python 3.11 or newer, and none of these is:' >&2; \
	for python in $(CANDIDATES); do \
	  if command -v "$$python" >/dev/null; then found=$$("$$python" --version 2>&1); else found='not there'; fi; \
	  echo "  $$python: $$found" >&2; \
	done; \
	echo 'Say where one is: make PYTHON=/path/to/python3.12 $(MAKECMDGOALS)' >&2; exit 1

$(VENV)/run.stamp: requirements/run.txt | $(BIN)/python
	@echo 'Installing what it needs to run (pinned, hashes checked)'
	@$(PIP_INSTALL) -r $<
	@touch $@

# The real OPA, which our decisions are held against, is said to need Python 3.14; what it uses, 3.11 has. It has its own
# list, for pip forgets that limit for all of a list or for none of it.
$(VENV)/dev.stamp: requirements/dev.txt requirements/opa.txt | $(BIN)/python
	@echo 'Installing what it needs to be tested (pinned, hashes checked)'
	@$(PIP_INSTALL) -r $<
	@$(PIP_INSTALL) --ignore-requires-python -r requirements/opa.txt \
	  || echo 'There is no OPA for this machine: the decisions will not be held against it.' >&2
	@touch $@ $(VENV)/run.stamp

$(VENV)/bench.stamp: requirements/bench.txt | $(BIN)/python
	@echo 'Installing what it is measured against (pinned, hashes checked)'
	@$(PIP_INSTALL) -r $<
	@touch $@ $(VENV)/run.stamp

# The build backend is among the pins, so that this step asks no registry.
$(VENV)/package.stamp: pyproject.toml $(VENV)/run.stamp
	@$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	@$(BIN)/python -m pip check
	@touch $@

# -- use -------------------------------------------------------------------------------------------------------------

demo: $(VENV)/package.stamp
	@PATH="$(CURDIR)/$(BIN):$$PATH" bash examples/demo.sh

$(VENV)/serve.stamp: requirements/serve.txt | $(BIN)/python
	@echo 'Installing what the service needs (pinned, hashes checked)'
	@$(PIP_INSTALL) -r $<
	@touch $@ $(VENV)/run.stamp

serve: $(VENV)/serve.stamp $(VENV)/package.stamp
	@EAI_ENVIRONMENT=development $(BIN)/memoranda serve --example --data .service $(SERVE)

dev: $(VENV)/dev.stamp $(VENV)/package.stamp

# -- checks ----------------------------------------------------------------------------------------------------------

lint: $(VENV)/dev.stamp $(VENV)/package.stamp
	$(call heading,style: ruff check)
	@$(BIN)/ruff check .
	$(call heading,style: ruff format)
	@$(BIN)/ruff format --check .
	$(call heading,types: mypy)
	@$(BIN)/mypy
	$(call heading,floors: lint-imports)
	@$(BIN)/lint-imports

test: lint
	$(call heading,tests: pytest)
	@$(BIN)/python -m pytest -n auto --maxprocesses 4 --dist worksteal
	$(call heading,golden questions of the examples)
	@if [ -e src/memoranda/faces/cli ]; then PATH="$(CURDIR)/$(BIN):$$PATH" bash examples/golden.sh; \
	 else echo 'The command line is not there yet: left out.'; fi

# The real engines, each in an environment of its own.
COGNEE := $(VENV)/cognee
$(COGNEE)/finished: src/memoranda/manager/cognee.txt $(VENV)/dev.stamp
	@echo 'Installing Cognee (pinned, hashes checked)'
	@rm -rf $(COGNEE) && $(BIN)/python -m venv $(COGNEE)
	@$(COGNEE)/bin/python -m pip install --quiet --require-hashes --no-deps -r $<
	@touch $@

# Of Mem0 the library: its server is on no registry. `MEM0_SERVER_DIR=…` asks a copy of that instead, with an environment
# of its own (`MEMORANDA_REAL_MEM0=…`).
MEM0 := $(VENV)/mem0
$(MEM0)/finished: requirements/mem0.txt $(VENV)/dev.stamp
	@echo "Installing Mem0's library (pinned, hashes checked)"
	@rm -rf $(MEM0) && $(BIN)/python -m venv $(MEM0)
	@$(MEM0)/bin/python -m pip install --quiet --require-hashes --no-deps -r $<
	@touch $@

# Cognee's MCP server, into a folder of its own: it is run by Cognee's interpreter, and what it needs and Cognee has is
# not installed again.
COGNEE_MCP := $(VENV)/cognee-mcp
$(COGNEE_MCP)/finished: requirements/cognee-mcp.txt $(COGNEE)/finished
	@echo "Installing Cognee's MCP server (pinned, hashes checked)"
	@rm -rf $(COGNEE_MCP)
	@$(COGNEE)/bin/python -m pip install --quiet --require-hashes --no-deps --target $(COGNEE_MCP) -r $<
	@touch $@

engines: $(COGNEE)/finished $(COGNEE_MCP)/finished $(MEM0)/finished

# What asks Cognee runs one after the other, and beside it what asks Mem0 (`xdist_group`): each is started once.
test-engines: engines $(VENV)/package.stamp
	$(call heading,tests: the real engines)
	@MEMORANDA_REAL_COGNEE=$(CURDIR)/$(COGNEE) MEMORANDA_REAL_COGNEE_MCP=$(CURDIR)/$(COGNEE_MCP) \
	  MEMORANDA_REAL_MEM0=$${MEMORANDA_REAL_MEM0:-$(CURDIR)/$(MEM0)} \
	  $(BIN)/python -m pytest -n 2 --dist loadgroup --durations=5 tests/real

bench: $(VENV)/bench.stamp $(VENV)/package.stamp
	@$(BIN)/python -m bench

bench-serve: $(VENV)/dev.stamp $(VENV)/package.stamp
	@$(BIN)/python -m bench serve

bench-postgres: $(VENV)/dev.stamp $(VENV)/package.stamp
	@$(BIN)/python -m bench postgres

bench-recall: $(VENV)/bench.stamp $(VENV)/package.stamp
	@$(BIN)/python -m bench finding french background recall under_load million peers

format: $(VENV)/dev.stamp
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

# The schema of the contract, again from its types.
contract: $(VENV)/dev.stamp $(VENV)/package.stamp
	@$(BIN)/python -m memoranda.service.schema > contracts/v1/memory-provider.schema.json

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

# -- maintenance -----------------------------------------------------------------------------------------------------
# All files of each chosen version are hashed, so one list serves every platform and every Python. A list says nothing
# about where it was resolved. Packages that only Windows or a browser would install are left out.

UV ?= uv
UV_COMPILE = $(UV) pip compile --quiet --universal --python-version 3.11 --fork-strategy fewest --generate-hashes \
  --no-header --no-annotate --no-emit-index-url --no-emit-find-links \
  $(addprefix --no-emit-package ,pywin32 colorama httpx2-jsfetch)

pins:
	$(UV_COMPILE) $(UPGRADE) pyproject.toml requirements/build.in -c requirements/limits.in -o requirements/run.txt
	$(UV_COMPILE) $(UPGRADE) pyproject.toml requirements/build.in -c requirements/limits.in --extra service -c requirements/run.txt -o requirements/serve.txt
	$(UV_COMPILE) $(UPGRADE) pyproject.toml requirements/build.in -c requirements/limits.in --extra service --extra telemetry --extra dev -c requirements/serve.txt -o requirements/dev.txt
	$(UV_COMPILE) $(UPGRADE) requirements/cognee.in -o src/memoranda/manager/cognee.txt
	$(UV_COMPILE) $(UPGRADE) --no-deps requirements/cognee-mcp.in -o requirements/cognee-mcp.txt
	$(UV_COMPILE) $(UPGRADE) requirements/mem0.in -o requirements/mem0.txt
	$(UV_COMPILE) $(UPGRADE) pyproject.toml requirements/build.in -c requirements/limits.in --extra bench -c requirements/run.txt -o requirements/bench.txt
