# Each target first sets up what it needs, which takes no time if nothing has changed.
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
# Many containers set it, and each process would compile all modules again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup setup-extras setup-plugins setup-test setup-bench setup-docs crawl test check format docs bench bench-change soak lock release up down clean

help: ## list all targets
	@echo "make TARGET, where TARGET is one of:"
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  \1\t\2/p' $(MAKEFILE_LIST) | expand -t 18

setup: ## install recrawl and its dependencies into .venv
	@$(PYTHON) scripts/bootstrap.py

setup-test: ## also install the dependencies of tests and checks
	@$(PYTHON) scripts/bootstrap.py --test

setup-extras: setup ## install optional dependencies (again after each upgrade): EXTRAS=mcp,parquet
	@$(if $(EXTRAS),,$(error EXTRAS is not set. Example: make setup-extras EXTRAS=mcp,parquet))
	@.cache/tools/bin/python -m pip --python $(BIN)/python install --quiet --require-hashes --no-deps $(EXTRA_LOCKS)

setup-plugins: setup ## install plugins (again after each upgrade): PACKAGES=docs/examples/recrawl-example-plugins
	@$(if $(PACKAGES),,$(error PACKAGES is not set. Example: make setup-plugins PACKAGES="my-package path/to/another"))
	@.cache/tools/bin/python -m pip --python $(BIN)/python install --quiet $(PACKAGES)
	@$(BIN)/recrawl plugins

COMMA := ,
EXTRA_LOCKS = $(patsubst %,-r requirements-%.lock,$(subst $(COMMA), ,$(EXTRAS)))

setup-bench:
	@$(PYTHON) scripts/bootstrap.py --test --bench

setup-docs:
	@$(PYTHON) scripts/bootstrap.py --test --docs

crawl: export RECRAWL_POSTGRES_IDLE_TIME ?= 0
crawl: setup ## crawl the demo site or URL=https://... and show the result (ARGS=--allow-private for your own server)
	@$(if $(URL),$(BIN)/recrawl crawl "$(URL)" $(ARGS),$(BIN)/python -m labs demo)

check: setup-test ## check format, lint, layers, types and commit subjects
	@$(BIN)/ruff format --check --quiet || { echo "Some files are not formatted. Run make format."; exit 1; }
	@$(BIN)/ruff check --quiet
	@$(BIN)/lint-imports --no-logo --cache-dir .cache/import-linter > .cache/imports.txt || { cat .cache/imports.txt; exit 1; }
	@$(BIN)/mypy
	@git log -10 --no-merges --format=%s 2>/dev/null | awk 'length > 72 { print "commit subject longer than 72 characters: " $$0; bad = 1 } END { exit bad }'

test: check ## run check and then all fast tests, or those of TESTS=tests/core
	@$(BIN)/pytest -n $(JOBS) --dist loadgroup $(TESTS)

format: setup-test ## format all files and apply automatic lint fixes
	@$(BIN)/ruff format
	@$(BIN)/ruff check --fix

docs: setup-docs ## regenerate the reference pages and build the documentation site in .cache/site
	@$(BIN)/python -m crawler.cli.reference
	@$(BIN)/python -m tests.docs.test_reference
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet --strict --config-file docs/site/mkdocs.yml
	@echo "Open .cache/site/index.html in a browser."

bench: setup-bench ## run all benchmarks: speed compared with other crawlers, memory, store; ARGS="crawl --pinned" for one
	@$(BIN)/python -m benchmarks $(ARGS)

bench-change: setup-test ## measure the accuracy of change detection by kind of edit and noise; ARGS="--held-out --seed 2"
	@$(BIN)/python -m benchmarks change $(ARGS)

soak: setup-test ## run the slow tests, which take minutes to hours
	@$(BIN)/pytest -m soak --timeout 0

lock: ## update the lock files to the newest versions that pyproject.toml allows
	@$(PYTHON) scripts/bootstrap.py --tools
	@$(LOCKING) pyproject.toml --extra browser --group build -o requirements.lock
	@$(LOCKING) --group dev --constraint requirements.lock -o requirements-test.lock
	@$(LOCKING) --group bench --constraint requirements.lock --constraint requirements-test.lock -o requirements-bench.lock
	@$(LOCKING) --group docs --constraint requirements.lock --constraint requirements-test.lock --constraint requirements-bench.lock -o requirements-docs.lock
	@$(LOCKING) --group tools -o requirements-tools.lock
	@for extra in mcp parquet; do \
	  sed -n "s/^$$extra = \[\(.*\)\].*/\1/p" pyproject.toml | tr '"' '\n' | grep '[a-z]' | $(LOCKING) - --constraint requirements.lock --constraint requirements-test.lock -o requirements-$$extra.lock || exit 1; \
	done

LOCKING := UV_CACHE_DIR=.cache/uv .cache/tools/bin/uv pip compile --quiet --upgrade --universal --python-version 3.11 \
	--generate-hashes --no-header --no-annotate --no-emit-index-url

release: setup-test ## build, check and tag the version in crawler/__init__.py; ARGS=--dry-run to omit the tag
	@$(BIN)/python -m scripts.release $(ARGS)

up: setup ## start the local stack: Postgres, the Prefect server, a worker and the web UI
	@$(BIN)/recrawl up

down: setup ## stop the local stack
	@$(BIN)/recrawl down

clean: ## delete the environment and all caches, but not crawled data
	rm -rf .venv .cache .mypy_cache .pytest_cache .ruff_cache .hypothesis dist
