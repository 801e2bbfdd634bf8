# Everything runs in .venv; `make demo` and `make test` need nothing but Python 3.11+.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test slow lint format clean

.venv/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --upgrade pip
	$(BIN)/pip install --quiet -c constraints.txt -e '.[dev]'
	@touch $@

demo: .venv/installed
	$(BIN)/ducos demo --out demo-output

test: .venv/installed
	$(BIN)/pytest -n 2

slow: .venv/installed
	$(BIN)/pytest -n 2 -m slow

lint: .venv/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: .venv/installed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf .venv demo-output build dist
