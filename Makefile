# `make demo` and `make test` are all that a fresh machine needs; both set up .venv first.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test check slow results bench clean

demo: .venv/ready
	$(BIN)/balancemix demo --out demo

test: .venv/ready
	scripts/check

check: test

slow: .venv/ready
	$(BIN)/python -m pytest -q -m slow

results: .venv/ready
	$(BIN)/python benchmarks/results.py
	$(BIN)/python benchmarks/pilots.py
	$(BIN)/python benchmarks/doubts.py

bench: .venv/ready
	$(BIN)/python benchmarks/performance.py

# Installed once, and again only when what is to be installed changes.
.venv/ready: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "balancemix needs Python 3.11 or newer, this is " + sys.version)'
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --editable . --group test --group lint
	touch $@

clean:
	rm -rf .venv demo .pytest_cache .mypy_cache .ruff_cache .hypothesis
