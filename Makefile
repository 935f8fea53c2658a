# Every target sets up what it needs first; that takes no time when nothing has changed.
PYTHON ?= python3
URL ?=
ARGS ?=
TESTS ?=
EXTRAS ?=
PACKAGES ?=
JOBS ?= 3
BIN := .venv/bin

# All data of these commands stays in the checkout.
export RECRAWL_HOME ?= $(CURDIR)/.recrawl

.DEFAULT_GOAL := help
.PHONY: help setup setup-extras setup-plugins setup-test setup-bench setup-docs crawl test check format docs bench bench-change soak lock release up down clean

help: ## list what can be made
	@echo "make TARGET, where TARGET is one of:"
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  \1\t\2/p' $(MAKEFILE_LIST) | expand -t 18

setup: ## install what crawling needs into .venv
	@$(PYTHON) scripts/bootstrap.py

setup-test: ## install what tests and checks need as well
	@$(PYTHON) scripts/bootstrap.py --test

setup-extras: setup ## add what some commands need, once more after an upgrade: EXTRAS=mcp,parquet
	@$(if $(EXTRAS),,$(error Say which: make setup-extras EXTRAS=mcp,parquet))
	@.cache/tools/bin/python -m pip --python $(BIN)/python install --quiet --require-hashes --no-deps $(EXTRA_LOCKS)

setup-plugins: setup ## add plugins, once more after an upgrade: PACKAGES=docs/examples/recrawl-example-plugins
	@$(if $(PACKAGES),,$(error Say which, as pip names them: make setup-plugins PACKAGES="my-package path/to/another"))
	@.cache/tools/bin/python -m pip --python $(BIN)/python install --quiet $(PACKAGES)
	@$(BIN)/recrawl plugins

COMMA := ,
EXTRA_LOCKS = $(patsubst %,-r requirements-%.lock,$(subst $(COMMA), ,$(EXTRAS)))

setup-bench:
	@$(PYTHON) scripts/bootstrap.py --test --bench

setup-docs:
	@$(PYTHON) scripts/bootstrap.py --test --docs

crawl: setup ## crawl and show the result: the demo site, or URL=https://... (ARGS=--allow-private for your own server)
	@$(if $(URL),$(BIN)/recrawl crawl "$(URL)" $(ARGS),$(BIN)/python -m labs demo)

check: setup-test ## format, lint, layers, types and commit subjects
	@$(BIN)/ruff format --check --quiet || { echo "make format mends the format"; exit 1; }
	@$(BIN)/ruff check --quiet
	@$(BIN)/lint-imports --no-logo --cache-dir .cache/import-linter > .cache/imports.txt || { cat .cache/imports.txt; exit 1; }
	@$(BIN)/mypy
	@git log -10 --no-merges --format=%s 2>/dev/null | awk 'length > 72 { print "more than 72 characters: " $$0; bad = 1 } END { exit bad }'

test: check ## check, then all tests that take seconds; TESTS=tests/core for some of them
	@$(BIN)/pytest -n $(JOBS) --dist loadgroup $(TESTS)

format: setup-test ## put all files into the agreed format
	@$(BIN)/ruff format
	@$(BIN)/ruff check --fix

docs: setup-docs ## generate the reference pages, and build the documentation as a site in .cache/site
	@$(BIN)/python -m crawler.cli.reference
	@$(BIN)/python -m tests.docs.test_reference
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet --strict --config-file docs/site/mkdocs.yml
	@echo "Look at it: .cache/site/index.html"

bench: setup-bench ## measure speed beside other crawlers, memory, claims and records; ARGS="crawl --pinned" for one
	@$(BIN)/python -m benchmarks $(ARGS)

bench-change: setup-test ## how often detectors of change are right, by kind of edit and noise; ARGS="--held-out --seed 2"
	@$(BIN)/python -m benchmarks change $(ARGS)

soak: setup-test ## the tests that take minutes to hours
	@$(BIN)/pytest -m soak --timeout 0

lock: ## pin the newest versions that pyproject.toml allows, for crawling first and for the rest within that
	@$(PYTHON) scripts/bootstrap.py --tools
	@$(LOCKING) pyproject.toml --extra browser --extra markdown --group build -o requirements.lock
	@$(LOCKING) --group dev --constraint requirements.lock -o requirements-test.lock
	@$(LOCKING) --group bench --constraint requirements.lock --constraint requirements-test.lock -o requirements-bench.lock
	@$(LOCKING) --group docs --constraint requirements.lock --constraint requirements-test.lock --constraint requirements-bench.lock -o requirements-docs.lock
	@$(LOCKING) --group tools -o requirements-tools.lock
	@for extra in mcp parquet; do \
	  sed -n "s/^$$extra = \[\(.*\)\].*/\1/p" pyproject.toml | tr '"' '\n' | grep '[a-z]' | $(LOCKING) - --constraint requirements.lock --constraint requirements-test.lock -o requirements-$$extra.lock || exit 1; \
	done

LOCKING := UV_CACHE_DIR=.cache/uv .cache/tools/bin/uv pip compile --quiet --upgrade --universal --python-version 3.11 \
	--generate-hashes --no-header --no-annotate --no-emit-index-url

release: setup-test ## build, check and tag the version that crawler/__init__.py names; ARGS=--dry-run to stop before the tag
	@$(BIN)/python -m scripts.release $(ARGS)

up: setup ## start Postgres, the Prefect server and a worker; they stay until make down
	@$(BIN)/recrawl up

down: setup ## stop what make up started
	@$(BIN)/recrawl down

clean: ## throw the environment and all caches away; crawled data stays
	rm -rf .venv .cache .mypy_cache .pytest_cache .ruff_cache .hypothesis dist
