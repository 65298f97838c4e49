# make run   installs linkwise and runs the main job on a bundled robot; all of it is also in
#            report.html (PYTHON=python3.13 takes another Python; VENV=folder another environment)
# make test  installs the tools of the tests too, and runs them; make quick, a minute's worth of
#            them; make full, all; make interop, those of PyTorch and JAX
# make soak  makes random public calls for ten minutes: what breaks, what leaks
# make reliability  puts thousands of faults into files, states and caches, and prints a card
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
# tests are kept compiled from run to run, also where the environment keeps no bytecode
PYTEST = PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -q -n auto --dist worksteal
ROBOT ?= iiwa14

.PHONY: interop docs study closed-chains reaching run test quick full bits record compare grid search mutation gpu lint bench reliability soak identities agreement chains rollouts operational-space derivatives chain-accuracy pictures accuracy costs clean

run: $(VENV)/.installed
	$(BIN)/linkwise demo $(ROBOT) --report report.html

test: $(VENV)/.ready
	$(PYTEST)

quick: $(VENV)/.ready
	$(PYTEST) -m "quick and not full"

# also what `make test` only samples: every method on every robot, number type and target
full: $(VENV)/.ready
	$(PYTEST) -m ""

# bits of every method on five robots against the golden table
bits: $(VENV)/.ready
	$(PYTEST) -m "" tests/engine/test_bits.py

# what about 2,000 functions give, count, and cost, into build/record.json (ten minutes, one core),
# and what changed since; ROWS=iiwa14 takes the rows whose names contain that text
record compare: $(VENV)/.ready
	$(BIN)/python tools/record.py $@ "ROWS=$(ROWS)"

# the product grid: every pair of robots, functions, methods, options and array libraries
grid: $(VENV)/.ready
	$(PYTEST) -m "" tests/grid

# random tests with other examples than the ones of every run
search: $(VENV)/.ready
	HYPOTHESIS_PROFILE=search $(PYTEST)

# docs/mutation.md: small changes of the passes and of the cache key, and which tests notice
mutation: $(VENV)/.ready
	$(BIN)/python tools/mutate.py

# on a machine with a GPU, CuPy and PyTorch
gpu:
	PYTHONPATH=src $(PYTHON) -m pytest -q -m "" --noconftest -p no:cacheprovider tests/gpu

lint: $(VENV)/.ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/.ready
	$(BIN)/linkwise bench --suite

reliability: $(VENV)/.ready
	$(BIN)/python tools/reliability.py --json reliability.json

# ten minutes of random public calls: what breaks, what leaks
soak: $(VENV)/.ready
	$(BIN)/python tools/soak.py

# every identity on 10,400 random trees and states
identities: $(VENV)/.ready
	LINKWISE_CASES=10400 $(PYTEST) tests/physics/test_identities.py

# docs/rollouts.md: simulations beside MuJoCo's, on one core
rollouts: $(VENV)/.ready
	$(BIN)/python tools/rollouts.py --page

# the tables of docs/derivatives.md: derivatives of the dynamics beside Pinocchio's, on one core
derivatives: $(VENV)/.ready
	$(BIN)/python tools/derivatives.py --page

# the table of docs/operational_space.md: control of a frame beside Pinocchio, on one core
operational-space: $(VENV)/.ready
	$(BIN)/python tools/operational_space.py --page

# the tables of docs/reaching.md: inverse kinematics, beside roboticstoolbox where that is installed
reaching: $(VENV)/.ready
	$(BIN)/python tools/reaching.py --page

# the tables of docs/closed_chains.md: closed loops beside Pinocchio's, and their drift
closed-chains: $(VENV)/.ready
	$(BIN)/python tools/closed_chains.py --page

# the tables of docs/studies.md: a study of 10^9 states, killed and resumed, and its overheads
study: $(VENV)/.ready
	$(BIN)/python tools/big_study.py run race costs page

# docs/agreement.md and docs/compile_time.md
agreement: $(VENV)/.ready
	$(BIN)/python tools/agreement.py
	$(BIN)/python tools/compile_curve.py

# docs/long_chains.md: one long chain, and the peers where they can (the lengths at which they fail
# are kept from `tools/long_chains.py peers`, which takes half an hour)
chains: $(VENV)/.ready
	$(BIN)/python tools/long_chains.py

# docs/chain_accuracy.md: errors of forward dynamics of chains of up to ten million links
chain-accuracy: $(VENV)/.ready
	$(BIN)/python tools/chain_accuracy.py

# pictures of docs/scan.md and docs/derivatives.md, and of a falling tether of 100,000 links
pictures: $(VENV)/.ready
	$(BIN)/python tools/scan_pictures.py
	$(BIN)/python tools/tangent_picture.py
	$(BIN)/python examples/07_whip.py 100000 docs/pictures/whip.png docs/pictures/whip.gif

# docs/accuracy.md: errors of every method against 50 digits
accuracy: $(VENV)/.ready
	$(BIN)/python tools/accuracy.py

# src/linkwise/engine/costs.py and docs/choosing.md, on a quiet machine
costs: $(VENV)/.ready
	$(BIN)/python tools/cost_model.py measure --json costs.json
	$(BIN)/python tools/cost_model.py fit --json costs.json

# tests of PyTorch and JAX, in an environment of their own: it takes as much as all other tests'
interop: $(VENV)-interop/.ready
	PYTHONDONTWRITEBYTECODE= $(VENV)-interop/bin/python -m pytest -q -n auto --dist worksteal \
		-k "torch or jax or xla" tests/interop tests/derivatives/test_any_function.py tests/grid

# a new environment with linkwise and what it needs
define environment
@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and \
	"linkwise needs Python 3.11 or later: make PYTHON=python3.12 ...; this is " + sys.version)'
$(PYTHON) -m venv $(@D)
$(@D)/bin/python -m pip install --quiet --disable-pip-version-check --editable .
endef

$(VENV)/.installed: pyproject.toml
	@echo "Setting up $(VENV), once: downloads NumPy, llvmlite, click and platformdirs (75 MB)"
	$(environment)
	touch $@

$(VENV)/.ready: $(VENV)/.installed
	@echo "Adding the tools of the tests to $(VENV), once: downloads pytest, Pinocchio, MuJoCo,"
	@echo "CasADi, SciPy and others (about 100 packages, 700 MB): a minute or two"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[dev]"
	touch $@

$(VENV)-interop/.ready: pyproject.toml
	@echo "Setting up $(VENV)-interop, once: downloads PyTorch, JAX and pytest (more than 300 MB)"
	$(environment)
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check --editable ".[interop]"
	touch $@

clean:
	rm -rf $(VENV) $(VENV)-interop .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src tests tools -name __pycache__ -exec rm -rf {} +

# the documentation as a site: docs/build/index.html; warnings are errors, and no network is needed
docs: $(VENV)/.docs
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/build

$(VENV)/.docs: $(VENV)/.ready
	$(BIN)/python -m pip install -q -e '.[docs]'
	touch $@
