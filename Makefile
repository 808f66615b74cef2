# Every target is described in the README or in CONTRIBUTING.
.PHONY: setup setup-base demo test test-slow test-full bench lint lock system clean
SHELL := /bin/bash
export PYTHON ?= python3
BIN := .venv/bin
BASE := .venv/.base
ALL := .venv/.ready

# What a release needs; `setup` adds Spark and what tests and developers need.
setup-base: $(BASE)

setup: $(ALL)

$(BASE): requirements.lock pyproject.toml
	scripts/set-up $<
	touch $@

$(ALL): requirements-dev.lock $(BASE)
	scripts/set-up $<
	touch $@

# PostgreSQL and Java, for the tests that use real ones.
system:
	scripts/system-packages

demo: setup-base
	rm -rf demo
	$(BIN)/discreet demo demo

# One server of each kind, in one of two processes; compiled files are kept, also where the environment says otherwise.
PYTEST := env -u PYTHONDONTWRITEBYTECODE $(BIN)/python -m pytest -n 2 --dist loadgroup --no-loadscope-reorder
TRACED := --cov --cov-report= --cov-fail-under=0

test: setup system
	$(PYTEST) -m "not slow and not full" --hypothesis-profile=fast $(if $(COVERAGE),$(TRACED))

# With COVERAGE=yes in both, what is reported is the coverage of both, and it must be above the floor.
test-slow: setup system
	$(PYTEST) -m "(slow or hypothesis) and not full" $(TRACED) $(if $(COVERAGE),--cov-append)
	@echo "Branch coverage, in percent:" && $(BIN)/coverage report --format=total $(if $(COVERAGE),,--fail-under=0)

test-full: setup system
	$(PYTEST)
	DISCREET_TEST_SPARK=cluster $(BIN)/python -m pytest tests/engine/test_engine_suite.py \
	  tests/engine/test_access_patterns.py tests/engine/spark/test_spark_existing_session.py

bench: setup
	$(BIN)/python -m benchmarks.noise --json
	$(BIN)/python -m benchmarks.counts --json
	$(BIN)/python -m benchmarks.earnings --json
	$(BIN)/python -m benchmarks.accuracy_earnings --json
	$(BIN)/python -m benchmarks.flows --json
	$(BIN)/python -m benchmarks.employer --json
	$(BIN)/python -m benchmarks.utility_employer --json
	$(BIN)/python -m benchmarks.sensitivity --json
	$(BIN)/python -m benchmarks.rake --json
	$(BIN)/python -m benchmarks.hypercube --json
	$(BIN)/python -m benchmarks.serve --json
	$(BIN)/python -m benchmarks.scale --json

lint: setup
	$(BIN)/ruff check src tests benchmarks
	$(BIN)/ruff format --check src tests benchmarks
	$(BIN)/mypy
	$(BIN)/lint-imports

# All packages fit each other; the base is a part of them.
lock: COMPILE := $(BIN)/pip-compile --quiet --build-deps-for editable --generate-hashes --strip-extras \
  --no-emit-index-url --no-emit-find-links --no-emit-trusted-host --no-emit-options --no-header --allow-unsafe
lock:
	$(COMPILE) --all-extras -o requirements-dev.lock pyproject.toml
	$(COMPILE) --constraint requirements-dev.lock -o requirements.lock pyproject.toml

clean:
	rm -rf .venv demo build .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache .coverage*
