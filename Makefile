# Two commands matter: `make demo` shows the library at work, `make test` checks it.
# Both need only Python 3 and make; everything is installed into .venv, once.

PYTHON ?= python3
JOBS ?= 2
BIN := .venv/bin
INSTALL := $(BIN)/python -m pip install -qq --disable-pip-version-check
PYTEST := $(BIN)/python -m pytest -q

# Through the environment the pins reach pip's isolated build step as well.
export PIP_CONSTRAINT := constraints.txt

ifneq ($(wildcard ../shared/data),)
export KERNLETS_DATA ?= $(CURDIR)/../shared/data
endif

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help demo test test-slow reproduce pages browser bench lint clean

help: ## list the targets
	@grep -E '^[a-z-]+:.*## ' Makefile | sed 's/:.*## /\t/' | expand -t 12

demo: .venv/.plot ## install and run the demonstration on handwritten digits
	@$(BIN)/kernlets demo

test: .venv/.test ## install what the tests need, lint, run the fast tests
	$(BIN)/ruff check .
	$(PYTEST) -n $(JOBS) -m "not slow"

test-slow: .venv/.test ## run the tests that reproduce published numbers
	$(PYTEST) -m slow

reproduce: .venv/.plot ## run the experiments of the papers in full (hours on two cores)
	$(BIN)/kernlets reproduce all --scale full --jobs $(JOBS) --out reproduction

pages: .venv/.plot ## write the pages in docs from the records in the repository
	$(BIN)/python -m kernlets.lab.pages

browser: ## install the browser in which a test looks at the report (Debian, as root)
	@command -v chromium >/dev/null || { apt-get update -qq && \
	    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium >/dev/null; }

bench: .venv/.bench ## measure against the peer libraries (JSON and a table)
	$(BIN)/python -m benchmarks

lint: .venv/.test ## style and types
	$(BIN)/ruff check .
	$(BIN)/mypy

clean: ## remove the environment, builds and caches
	rm -rf .venv build dist .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/.created:
	@$(PYTHON) -m venv .venv
	@touch $@

# A stamp per extra: repeated runs start at once, changed pins install again.
.venv/.%: .venv/.created pyproject.toml constraints.txt
	@echo "installing kernlets[$*] into .venv (once; may take a few minutes)"
	@$(INSTALL) -e ".[$*]"
	@touch $@
