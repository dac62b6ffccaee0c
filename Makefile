# One command each. The virtual environment is made once and again only when what it needs has changed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: demo test check format bench wheel images map clean

demo: $(READY)
	rm -rf runs/demo
	$(BIN)/seqwise compare --minutes 2 --out runs/demo

# a process for each core, of one thread each: threads of several processes would wait for each other
test: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses auto --maxprocesses 4 --dist loadfile

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# peers that cannot be installed are no reason to stop: the benchmarks that need them are named
bench: $(READY)
	-$(MAKE) --no-print-directory $(VENV)/.bench-ready
	$(BIN)/python -m benchmarks

# the source archive, and the wheel that is built from it
wheel: $(READY)
	rm -rf dist
	$(BIN)/python -m build --no-isolation --outdir dist

# the list of files in docs/architecture.md
map: $(READY)
	$(BIN)/python docs/make_map.py

# the pictures of the README; needs Chromium
images: $(READY)
	$(BIN)/python docs/make_images.py

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	touch $@

$(VENV)/.bench-ready: $(READY)
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev,bench]'
	touch $@

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache
