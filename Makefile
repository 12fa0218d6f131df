# One command for everything. All targets set up what they need; a fresh clone needs Python 3.11 or newer, Rust
# and a C compiler.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
export PYTHON
.PHONY: help quickstart test check bench soak

help: ## these lines
	@sed -n 's/^\([a-z]*\):.*## /  make \1\t/p' $(firstword $(MAKEFILE_LIST)) | expand -t 20

quickstart: ## set up, compare two embedded databases, write the report (a minute and a half after the build)
	@scripts/bootstrap run
	@.venv/bin/dbdyno quickstart

test: ## set up and run all tests; databases that are not here are skipped and named
	@scripts/bootstrap dev
	@. scripts/environment; cargo test --locked --quiet && \
	.venv/bin/python -m pytest -n logical --maxprocesses 4 --dist loadgroup $(PYTEST)

check: ## formatting, lints, types, stubs, import directions, documentation
	@scripts/bootstrap dev
	@scripts/check

bench: ## dbdyno beside its peers, in one run (20 minutes; BENCH=--quick: 3)
	@scripts/bootstrap dev
	@. scripts/environment; .venv/bin/python bench/run.py $(BENCH)

soak: ## what is long: twenty kills, long runs, fuzzing, campaigns against oneself
	@scripts/bootstrap dev
	@.venv/bin/python bench/soak.py $(SOAK)
