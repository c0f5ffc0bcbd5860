SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.ONESHELL:
.DEFAULT_GOAL := help

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export KVPOOL_CACHE ?= $(CURDIR)/.cache
export PATH := $(CURDIR)/$(BIN):$(PATH)
PACKAGES := operator/kvpool agents/kvpool_agent agents/kvpool_keeper
SOURCES := $(PACKAGES) devcluster demo tools tests benchmarks

.PHONY: help
help: ## Say what can be made.
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sort | sed -E 's/:[^#]*## /\t/' | expand -t 22

$(VENV)/.ready: requirements/dev.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "kvpool needs Python 3.11 or newer, \
	and $(PYTHON) is " + sys.version.split()[0] + ": name another with make PYTHON=...")'
	$(PYTHON) -m venv $(VENV)
	echo "installing the locked dependencies into $(VENV) (about a minute the first time)"
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.lock
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	touch $@

.PHONY: setup
setup: $(VENV)/.ready ## Install the locked dependencies into .venv.

.PHONY: build-devcluster
build-devcluster: setup ## Compile the real control plane and Traefik, once, into the cache.
	@python -m devcluster.build all

.PHONY: devcluster
devcluster: setup ## Start a control plane alone; prints the export line.
	@python -m devcluster up

.PHONY: devcluster-stop
devcluster-stop: setup ## Stop it.
	@python -m devcluster down

.PHONY: devcluster-shell
devcluster-shell: setup ## A shell beside the nodes of `make devcluster NODES=3`.
	@python -m devcluster shell

.PHONY: lint
lint: setup ## All checks that run no product code.
	@tools/lint.sh

.PHONY: test
test: lint build-devcluster ## Lint, then every test this machine can run.
	@tools/test.sh $(ARGS)

.PHONY: test-e2e
test-e2e: build-devcluster ## The chart on three real nodes: installed, upgraded, cut off, uninstalled.
	@tools/test-e2e.sh $(ARGS)

.PHONY: demo
demo: setup ## The whole of kvpool on one machine, on real nodes where it can have them; KEEP=1 leaves it running.
	@python -m demo

.PHONY: demo-shell
demo-shell: setup ## A shell inside a demo that KEEP=1 left running.
	@python -m demo.shell || [ $$? -ne 3 ] # 3: there is none; else what the last command in the shell came to

.PHONY: demo-stop
demo-stop: setup ## End a demo that KEEP=1 left running.
	@python -m demo.shell --stop

.PHONY: generate
generate: setup ## Write again what is generated: CRDs, chart copies, protobuf code, docs tables.
	@tools/generate.sh

.PHONY: lock
lock: ## Write requirements/*.lock again (hashes, no addresses).
	@tools/lock.sh

.PHONY: bench
bench: setup ## Measure and print; nothing is judged by time.
	@python -m benchmarks

.PHONY: bench-sim
bench-sim: setup ## Measure the simulator beside the fastest one that is published.
	@python -m benchmarks.bench_sim

.PHONY: clean
clean: ## End what runs and remove what was built here; the cache stays.
	[ ! -e $(VENV)/.ready ] || { python -m demo.shell --stop; python -m devcluster down; }
	rm -rf build $(VENV)
