# Everything runs in .venv; `make demo` and `make test` need nothing but Python 3.11+.
PYTHON ?= python3
BIN := .venv/bin

QUICK := tests/test_architecture.py tests/test_docs.py tests/test_tables.py tests/test_normalise.py tests/test_resize.py \
  tests/upscaling tests/cameras tests/pictures tests/degrade tests/data tests/cli/test_waiting.py \
  tests/models/test_mixing.py tests/models/test_guide.py tests/models/test_shipped_weights.py \
  tests/training/test_dual.py tests/training/test_losses.py tests/evaluation/test_metrics.py \
  tests/evaluation/test_suites.py tests/evaluation/test_choice.py tests/training/test_recipe.py

.PHONY: demo test quick slow fuzz mutants kill lint format weights results docs page clean

.venv/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --upgrade pip
	$(BIN)/pip install --quiet -c constraints.txt -e '.[serve]'
	@touch $@

# What developers need on top.
.venv/dev: .venv/installed
	$(BIN)/pip install --quiet -c constraints.txt -e '.[dev]'
	@touch $@

demo: .venv/installed
	$(BIN)/ducos demo --out demo-output
	@echo "Next, with your own pair:  $(BIN)/ducos doctor rgb.png depth.png"
	@echo "                           $(BIN)/ducos upscale rgb.png depth.png -o sharp.png --preview look.png"
	@echo "Or drop it on a page:      $(BIN)/ducos serve --open"

test: .venv/dev
	$(BIN)/pytest -n 2

# About a minute: what breaks most often.
quick: .venv/dev
	$(BIN)/pytest -n 2 $(QUICK)

slow: .venv/dev
	$(BIN)/pytest -n 2 -m slow

# An hour: damaged files for every reader. What is found lies in fuzz-found/.
SECONDS ?= 3600
fuzz: .venv/dev
	$(BIN)/python -m tests.fuzz.run --seconds $(SECONDS) $(ARGS)

# An hour: 50 kills of batch, train and batch on Ray, with byte-equal results.
kill: .venv/dev
	$(BIN)/python benchmarks/kill.py $(ARGS)

# An hour or more: are small changes of these modules noticed?
mutants: .venv/dev
	$(BIN)/pip install --quiet -c constraints.txt -e '.[mutants]'
	$(BIN)/python benchmarks/mutants.py $(ARGS)

lint: .venv/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: .venv/dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# The embedded weights from their recipe; hours. `make weights ARGS=--dry-run` says what is left.
RECIPE ?= configs/ducos-tiny.toml
weights: .venv/dev
	$(BIN)/python scripts/make_weights.py $(RECIPE) $(if $(ASSETS),--assets $(ASSETS)) $(if $(CAPTURES),--captures $(CAPTURES)) $(ARGS)

# Figures of the embedded weights, stored run by run; then the tables of README and docs/results.md.
# make results BENCH=DIR CAPTURES=DIR HELDOUT=DIR PRIORS=DIR ONLY=lu6
results: .venv/dev
	$(BIN)/python scripts/results.py run $(if $(BENCH),--bench $(BENCH)) $(if $(CAPTURES),--captures $(CAPTURES)) \
	  $(if $(HELDOUT),--heldout $(HELDOUT)) $(if $(PRIORS),--priors $(PRIORS)) $(if $(ONLY),--only $(ONLY)) $(ARGS)

# The site into site/, with every link checked. To read it: $(BIN)/python -m http.server -d site
docs: .venv/dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	$(BIN)/python scripts/site_links.py site

# The page of `ducos serve` from page/ into the package; needs Node.
page:
	cd page && npm ci && npm run build

clean:
	rm -rf .venv demo-output build dist site
