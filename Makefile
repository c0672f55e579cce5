# On a fresh machine with Python 3.11, two commands do everything: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test lint browser types layers unit fuzz soak gpu-test test-lowest format docs embedded clean

demo: $(VENV)/installed
	@$(BIN)/python examples/demo.py

# The tests leave a core idle now and then, and mypy takes half a minute of one.
test:
	$(MAKE) --jobs 2 lint $(if $(CI),browser)
	$(MAKE) --jobs 2 types layers unit

lint: $(VENV)/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

# The pages are tested in Debian's Chromium; without it those tests are skipped, so CI gets it.
browser:
	@command -v chromium >/dev/null || \
	  (apt-get update -qq && apt-get install -qq --no-install-recommends chromium fonts-dejavu-core >/dev/null) || \
	  echo "Chromium cannot be installed here: the tests of the pages are skipped"

types: $(VENV)/ready
	$(BIN)/mypy

layers: $(VENV)/ready
	$(BIN)/lint-imports

# One thread of torch and BLAS in each of two workers: more would wait for each other, and busily.
unit: $(VENV)/ready
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses 2 --dist loadfile --cov --cov-report=term

# Random and hostile input: `make fuzz SECONDS=600 SEED=7 TARGETS='treebanks texts'`; all targets, a minute each, if nothing is said.
fuzz: $(VENV)/ready
	$(BIN)/python -m tests.fuzz $(TARGETS) $(if $(DRAWS),--draws $(DRAWS)) $(if $(SECONDS),--seconds $(SECONDS)) $(if $(SEED),--seed $(SEED))

# An hour of parsing random text with kills, full disks and closed pipes: `make soak SECONDS=600`.
soak: $(VENV)/ready
	$(BIN)/python -m tests.soak $(if $(SECONDS),--seconds $(SECONDS)) $(if $(SEED),--seed $(SEED))

# What needs a GPU: the kernels beside those of the CPU. `benchmarks/gpu.py` measures them.
gpu-test: $(VENV)/ready
	$(BIN)/python -m pytest tests/torch/test_gpu.py tests/torch/test_gpu_triton.py

# The tests on the lowest and the newest versions of the dependencies, on every Python at hand; TESTS= chooses some.
test-lowest: $(VENV)/ready
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	$(BIN)/python tests/versions.py $(TESTS)

format: $(VENV)/ready
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(VENV)/ready
	$(BIN)/mkdocs build --strict

# Rebuild the included English model on a machine with a GPU (docs/models/en.md says from what):
# make embedded DATA=UD_English-EWT ENCODER=minilm TEACHER=mpnet TEXT=text.txt
embedded: $(VENV)/ready
	$(BIN)/headway reproduce english --data $(DATA) --language en --encoder $(ENCODER) --teacher $(TEACHER) --text $(TEXT) $(if $(PROCESSES),--processes $(PROCESSES))
	cp experiments/english/models/en.headway src/headway/embedded/en.headway

$(VENV)/installed: pyproject.toml
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

# Only what is imported becomes bytecode, when it is: the other three quarters would take pip half a minute.
$(VENV)/ready: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --editable '.[dev]'
	touch $(VENV)/installed $@

clean:
	rm -rf $(VENV) .cache build dist
