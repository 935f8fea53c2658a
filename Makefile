# Every target sets up what it needs first; that takes no time when nothing has changed.
PYTHON ?= python3
URL ?=
ARGS ?=
TESTS ?=
JOBS ?= 2
BIN := .venv/bin

# All data of these commands stays in the checkout.
export RECRAWL_HOME ?= $(CURDIR)/.recrawl

.DEFAULT_GOAL := help
.PHONY: help setup setup-bench crawl test check format docs bench bench-change soak lock up down clean

help: ## list what can be made
	@echo "make TARGET, where TARGET is one of:"
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  \1\t\2/p' $(MAKEFILE_LIST) | expand -t 12

setup: ## install everything into .venv
	@$(PYTHON) crawler/bootstrap.py

setup-bench:
	@$(PYTHON) crawler/bootstrap.py --bench

crawl: setup ## crawl and show the result: the demo site, or URL=https://... (ARGS=--allow-private for your own server)
	@$(if $(URL),$(BIN)/recrawl crawl "$(URL)" $(ARGS),$(BIN)/recrawl demo)

check: setup ## format, lint and types
	@$(BIN)/ruff format --check --quiet || { echo "make format mends the format"; exit 1; }
	@$(BIN)/ruff check --quiet
	@$(BIN)/mypy

test: check ## check, then all tests that take seconds; TESTS=tests/core for some of them
	@$(BIN)/pytest -n $(JOBS) --dist loadgroup $(TESTS)

format: setup ## put all files into the agreed format
	@$(BIN)/ruff format
	@$(BIN)/ruff check --fix

docs: setup ## make the reference pages of settings and commands again
	@$(BIN)/python -m crawler.cli.reference

bench: setup-bench ## measure speed beside other crawlers, and what a record costs
	@$(BIN)/python -m benchmarks

bench-change: setup ## how often detectors of change are right, by kind of edit and noise; ARGS="--held-out --seed 2"
	@$(BIN)/python -m benchmarks change $(ARGS)

soak: setup ## the tests that take minutes to hours
	@$(BIN)/pytest -m soak --timeout 0

lock: setup ## pin the newest versions that pyproject.toml allows
	@$(BIN)/uv pip compile pyproject.toml --group dev $(LOCKING) -o requirements.lock
	@$(BIN)/uv pip compile --group bench --constraint requirements.lock $(LOCKING) -o requirements-bench.lock
	@$(PYTHON) crawler/bootstrap.py

LOCKING := --quiet --upgrade --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --no-emit-index-url

up: setup ## start Postgres, the Prefect server and a worker; they stay until make down
	@$(BIN)/recrawl up

down: setup ## stop what make up started
	@$(BIN)/recrawl down

clean: ## throw the environment and all caches away; crawled data stays
	rm -rf .venv .cache .mypy_cache .pytest_cache .ruff_cache .hypothesis dist
