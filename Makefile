# Everything runs in .venv; `make demo` and `make test` need nothing but Python 3.11+.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test quick slow lint format clean

.venv/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --upgrade pip
	$(BIN)/pip install --quiet -c constraints.txt -e .
	@touch $@

# What developers need on top.
.venv/dev: .venv/installed
	$(BIN)/pip install --quiet -c constraints.txt -e '.[dev]'
	@touch $@

demo: .venv/installed
	$(BIN)/ducos demo --out demo-output
	@echo "Next, with your own pair:  $(BIN)/ducos doctor rgb.png depth.png"
	@echo "                           $(BIN)/ducos upscale rgb.png depth.png -o sharp.png --preview look.png"

test: .venv/dev
	$(BIN)/pytest -n 2

# About a minute: what breaks most often.
quick: .venv/dev
	$(BIN)/pytest -n 2 -m 'not slow and not long'

slow: .venv/dev
	$(BIN)/pytest -n 2 -m slow

lint: .venv/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: .venv/dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf .venv demo-output build dist
