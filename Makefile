# kvplan: every task in one place. `make` lists them.
.DEFAULT_GOAL := help
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready
OUT ?= out/demo-plan

.PHONY: help setup check test test-fast bench crds lock sbom demo demo-plan priors clean

help: ## List the targets
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z0-9-]+):[^#]*## (.*)/\1\t\2/' | expand -t 16

include e2e/controlplane.mk

setup: $(STAMP) ## Create .venv and install everything development needs

NATIVE := router/native/Cargo.toml router/native/Cargo.lock $(wildcard router/native/src/*.rs)

$(STAMP): pyproject.toml e2e/engine/pyproject.toml tools/bootstrap.sh tools/native.sh $(NATIVE)
	@PYTHON="$(PYTHON)" tools/bootstrap.sh "$(VENV)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]' --editable e2e/engine
	@tools/native.sh "$(BIN)/python"
	@touch $@

check: setup ## Lint, types, import layers, generated files unchanged
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/python -m kvplan_cli.crds --check crds
	@$(BIN)/python -m kvplan_cli.condition_table --check docs/conditions.md
	@$(BIN)/python -m kvplan_cli.reference --check docs/reference
	@$(BIN)/python tools/chart.py --check

test: setup ## All tests (the slow ones too)
	@$(BIN)/pytest -n auto

test-fast: setup ## Tests without the slow ones
	@$(BIN)/pytest -n auto -m "not slow"

bench: setup ## Benchmarks; rewrites docs/benchmarks.md
	@$(BIN)/python -m tests.bench.run --write docs/benchmarks.md

crds: setup ## Regenerate crds/*.yaml, docs/conditions.md and docs/reference from the code
	@$(BIN)/python -m kvplan_cli.crds crds
	@$(BIN)/python -m kvplan_cli.condition_table docs/conditions.md
	@$(BIN)/python -m kvplan_cli.reference docs/reference
	@$(BIN)/python tools/chart.py

lock: setup ## Lock what the images install, with hashes (requirements/)
	@$(BIN)/python tools/lock.py

sbom: setup ## Bills of materials of both images, in out/
	@mkdir -p out
	@$(BIN)/python -m venv out/tools
	@out/tools/bin/pip install --quiet --disable-pip-version-check --require-hashes -r requirements/tools.txt
	@for image in operator router; do out/tools/bin/cyclonedx-py requirements --output-reproducible \
	  -o "out/sbom-$$image.json" "requirements/$$image.txt"; done

demo: controlplane ## The main job: kubectl apply to a routed request, on a real control plane; report in out/demo
	@$(BIN)/python -m e2e.loop.demo --out out/demo

demo-plan: setup ## Real traces (or a stated generated one) in; a proven plan, its explanation, table and plots out
	@$(BIN)/kvplan demo-plan --out "$(OUT)"

priors: setup ## Regenerate the hardware snapshot (needs the extra `priors`)
	@$(BIN)/python -m pip install --quiet --editable '.[priors]'
	@$(BIN)/python -m kvplan_cli.priors_snapshot

clean: ## Remove the environment and everything generated outside git
	@rm -rf $(VENV) out .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
