# Two commands matter: `make demo` shows the library at work, `make test` checks it.
# Both need only Python 3 and make; everything is installed into .venv, once.

PYTHON ?= python3
JOBS ?= 2
# How `make test` runs: THREADS=8 sets the number of threads of the library, ORDER=random puts
# the tests into an order that SEED decides.
THREADS ?=
ORDER ?=
SEED ?= 0
MINUTES ?= 20
CORES := Haswell Sandybridge Nehalem
SMOKE := $(addprefix tests/project/test_,import.py versions.py vocabulary.py project.py) \
    tests/kernels/test_kernels.py
BIN := .venv/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
INSTALL := $(BIN)/python -m pip install -qq --disable-pip-version-check
PYTEST := $(if $(THREADS),OMP_NUM_THREADS=$(THREADS) )$(BIN)/python -m pytest -q \
    $(if $(THREADS),--threads $(THREADS)) $(if $(filter random,$(ORDER)),--shuffle $(SEED))
# Each process takes a row of tests, so that what a file prepares is prepared once, and
# from the others when it has none left.
PARALLEL := -n $(JOBS) --dist worksteal
FAST = $(PYTEST) $(PARALLEL) -m "not slow"
ROUNDING = $(shell grep -rlF --include='test_*.py' mark.rounding tests)

# Tests start a hundred processes, none of which should compile all modules again.
unexport PYTHONDONTWRITEBYTECODE

# Through the environment the pins reach pip's isolated build step as well.
export PIP_CONSTRAINT := constraints.txt

ifneq ($(wildcard ../shared/data),)
export KERNLETS_DATA ?= $(CURDIR)/../shared/data
endif

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help demo test test-slow test-oldest test-processors fuzz reproduce pages docs \
    test-docs coverage dist browser bench lint clean

help: ## list the targets
	@grep -E '^[a-z-]+:.*## ' Makefile | sed 's/:.*## /\t/' | expand -t 17

demo: .venv/.plot ## install and run the demonstration on handwritten digits
	@$(BIN)/python -m demo

test: .venv/.test ## install what the tests need, lint, check types, run the fast tests
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(FAST)
	OPENBLAS_CORETYPE=Haswell $(PYTEST) $(PARALLEL) -m "rounding and not slow" $(ROUNDING)

test-slow: .venv/.test ## run the tests that reproduce published numbers
	$(PYTEST) -m slow

test-processors: .venv/.test ## run the fast tests as on older processors
	for core in $(CORES); do echo "as on $$core"; \
	    OPENBLAS_CORETYPE=$$core $(FAST) || exit 1; done

test-oldest: .venv-oldest/.test ## run the fast tests with the oldest versions allowed
	NUMBA_CACHE_DIR=$(CURDIR)/.venv-oldest/numba .venv-oldest/bin/python -m pytest -q \
	    $(PARALLEL) -m "not slow" --ignore=tests/website

fuzz: .venv/.test ## attack the library with random cases (SEED=0 MINUTES=20)
	$(BIN)/python -m fuzz --seed $(SEED) --minutes $(MINUTES) --jobs $(JOBS)

reproduce: .venv/.plot ## run the experiments of the papers in full (hours on two cores)
	$(BIN)/python -m papers all --scale full --jobs $(JOBS) --out reproduction

pages: .venv/.plot ## write the pages in docs from the records in the repository
	$(BIN)/python -m benchmarks.pages

# All pages are read each time (-E), since pages that are not give no warnings. Examples
# that have not changed are not run again.
docs: .venv/.docs ## build the site into build/site (ONLINE=1: links to other sites)
	rm -rf build/site
	$(BIN)/python -m sphinx -E -W --keep-going -q -j $(JOBS) -d build/doctrees docs build/site
	@echo "open build/site/index.html"

test-docs: docs .venv/.test ## look at the site in a browser, light and dark, wide and narrow
	KERNLETS_REQUIRE_SITE=1 $(PYTEST) -m slow tests/website

# One test lets a command write tiny files only, which the tracer in it cannot live with.
coverage: .venv/.dev ## run the fast tests and report which lines of the library ran
	$(FAST) --cov --cov-report=term --cov-report=html:build/coverage --deselect \
	    tests/cli/test_cli_files.py::test_errors_of_writing_name_the_target

# What a user gets: the wheel without anything else, and the sdist with its own tests.
dist: .venv/.dev ## build wheel and sdist, and test both in clean environments
	rm -rf dist build/dist
	$(BIN)/python -m build -q --outdir dist
	$(PYTHON) -m venv build/dist/wheel && $(PYTHON) -m venv build/dist/sdist
	build/dist/wheel/$(notdir $(BIN))/python -m pip install -qq dist/*.whl
	cd build/dist && wheel/$(notdir $(BIN))/python ../../.ci/try_wheel.py
	mkdir build/dist/source && tar xf dist/*.tar.gz -C build/dist/source --strip 1
	build/dist/sdist/$(notdir $(BIN))/python -m pip install -qq build/dist/source pytest pandas
	cd build/dist/source && ../sdist/$(notdir $(BIN))/python -m pytest -q $(SMOKE)

browser: ## install the browser in which a test looks at the report (Debian, as root)
	@command -v chromium >/dev/null || { apt-get update -qq && \
	    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium >/dev/null; }

bench: .venv/.bench ## measure against the peer libraries (JSON and a table)
	$(BIN)/python -m benchmarks

lint: .venv/.test ## style and types
	$(BIN)/ruff check .
	$(BIN)/mypy

clean: ## remove the environment, builds and caches
	rm -rf .venv .venv-oldest build dist .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/.created:
	@$(PYTHON) -m venv .venv
	@touch $@

.venv-oldest/.test: pyproject.toml constraints-oldest.txt
	@echo "installing the oldest versions into .venv-oldest (once; a few minutes)"
	@$(PYTHON) -m venv --clear .venv-oldest
	@PIP_CONSTRAINT=constraints-oldest.txt .venv-oldest/bin/python -m pip install -qq \
	    --disable-pip-version-check -e ".[test]"
	@touch $@

# A stamp per extra: repeated runs start at once, changed pins install again.
.venv/.%: .venv/.created pyproject.toml constraints.txt
	@echo "installing kernlets[$*] into .venv (once; may take a few minutes)"
	@$(INSTALL) -e ".[$*]"
	@touch $@
