# `make demo` and `make test` are all that a fresh machine needs; both set up .venv first.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test check quick slow test-lowest test-latest results bench torture clean always

demo: .venv/ready
	$(BIN)/balancemix demo --out demo

test: .venv/ready
	scripts/check

check: test

quick: .venv/ready
	scripts/check --quick

slow: .venv/ready
	$(BIN)/python -m pytest -q -m slow

# The tests alone with other versions: the lower bounds of pyproject.toml, the newest there are.
test-lowest test-latest: test-%: .venv-%/ready
	BIN=.venv-$*/bin scripts/check --tests

results: .venv/ready
	$(BIN)/python benchmarks/results.py
	$(BIN)/python benchmarks/pilots.py
	$(BIN)/python benchmarks/doubts.py

bench: .venv/ready
	$(BIN)/python benchmarks/performance.py

# Nearly two million damaged inputs, commands and runs: some hours; goes on where it was.
# TORTURE takes other options, e.g. TORTURE="--only labels.csv --count 2000".
TORTURE = --branches 2000 --write docs/reliability.md
torture: .venv/ready
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.torture --state .torture/state.jsonl $(TORTURE)
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.torture --planted

# Installed once, and again only when what is to be installed changes. Without PINS, which is what
# was tested, the newest versions are looked for each time.
GROUPS = --group test
.venv/ready: GROUPS += --group lint
.venv/ready: PINS = constraints.txt
.venv-lowest/ready: PINS = constraints-lowest.txt
.venv/ready: constraints.txt
.venv-lowest/ready: constraints-lowest.txt
.venv-latest/ready: always

.venv/ready .venv-lowest/ready .venv-latest/ready: %/ready: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "balancemix needs Python 3.11 or newer, this is " + sys.version)'
	test -x $*/bin/python || $(PYTHON) -m venv $*
	$*/bin/python -m pip install --quiet $(if $(PINS),--constraint $(PINS),--upgrade) pip
	$*/bin/python -m pip install --quiet --editable '.[tables,review]' $(GROUPS) \
	  $(if $(PINS),--constraint $(PINS) --build-constraint $(PINS),--upgrade --upgrade-strategy eager)
	touch $@

# Environments of their own, for slow tests with tools that findings are exchanged with.
.venv-label-studio/ready: PACKAGES = label-studio==1.23.2
.venv-fiftyone/ready: PACKAGES = fiftyone==1.22.1
.venv-cleanlab/ready: PACKAGES = --group benchmark
.venv-label-studio/ready .venv-fiftyone/ready .venv-cleanlab/ready: %/ready: Makefile
	test -x $*/bin/python || $(PYTHON) -m venv $*
	$*/bin/python -m pip install --quiet --upgrade pip
	$*/bin/python -m pip install --quiet $(PACKAGES)
	touch $@

clean:
	rm -rf .venv .venv-* demo .pytest_cache .mypy_cache .ruff_cache .hypothesis .torture
