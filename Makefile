PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/installed

.PHONY: install demo test test-slow soak coverage browser bench docs check clean

install: $(STAMP)

$(STAMP): pyproject.toml constraints.txt src/ebse/__init__.py
	@$(PYTHON) -c 'import sys; sys.exit("ebse needs Python 3.11 or newer; try: make PYTHON=python3.12 ...") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@touch $@

demo: install
	$(BIN)/python -m ebse.cli.demo --out demo

# Each worker computes on one thread: small arrays gain nothing from more, and workers do not wait for each other.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --maxprocesses 8

test: install
	$(PYTEST) -m "not slow and not soak" --durations=25

# The page is opened in a browser by a slow test, which is skipped where there is none.
browser:
	@command -v chromium > /dev/null || { test "$$(id -u)" = 0 && command -v apt-get > /dev/null && \
		apt-get install -y -q chromium > /dev/null 2>&1; } || echo "no Chromium could be installed"

test-slow: install browser .venv/docs
	$(PYTEST) -m slow --durations=25

# Long repetitions of what the slow tests do a few times; run by hand.
soak: install
	$(BIN)/python -m pytest -m soak

coverage: install
	$(PYTEST) -m "not slow and not soak" --cov=ebse --cov-report=term --cov-report=html

.venv/bench: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[bench]'
	@touch $@

bench: .venv/bench
	$(BIN)/python benchmarks/speed.py $(BENCH)

.venv/docs: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[docs]'
	@touch $@

docs: .venv/docs
	$(BIN)/python -m sphinx -W --keep-going -b html docs docs/_build/html
	@echo "docs/_build/html/index.html"

check: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

clean:
	rm -rf .venv demo dist docs/_build .mypy_cache .pytest_cache .ruff_cache htmlcov .coverage
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
