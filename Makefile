# Two commands matter: `make lab` opens the lessons, `make test` proves them. Both need only Python 3.11 and make.
PYTHON ?= python3
# cpu: take PyTorch's CPU wheels, where a plain torch would bring gigabytes of CUDA (Linux without a GPU)
TORCH ?=
# further arguments for JupyterLab, such as LAB_FLAGS="--no-browser --port=9000"
LAB_FLAGS ?=
NOTEBOOKS ?= notebooks/*.ipynb
# notebooks and tests that run at a time
JOBS ?= 2

VENV := .venv
BIN := $(VENV)/bin
# What is never imported need not be compiled: that halves the time of an installation.
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile
CPU_WHEELS := https://download.pytorch.org/whl/cpu
# What is no lesson is not shown in JupyterLab's list of files.
HIDDEN := $(foreach name,__pycache__ *.egg-info conftest.py,--ContentsManager.hide_globs='$(name)')
# JupyterLab refuses to run as root unless told so.
AS_ROOT := $(if $(filter 0,$(shell id -u)),--allow-root)

# JupyterLab would ask whether it may fetch news. (`jupyter labextension disable` writes the same, and takes longer.)
LAB_CONFIG := $(VENV)/etc/jupyter/labconfig
NO_NEWS := {"disabledExtensions": {"@jupyterlab/apputils-extension:announcements": true}}

# Small tensors run slower on several threads, and the same numbers come out everywhere on one.
export OMP_NUM_THREADS := 1
# Empty counts as unset: where it is set, every kernel compiles all of torch anew.
export PYTHONDONTWRITEBYTECODE :=

# What lessons train is kept (transformer_edu/kept.py): a test run trains anew, and once for its two looks at a lesson.
TESTS := rm -rf $(VENV)/kept && TRANSFORMER_EDU_KEPT="$(CURDIR)/$(VENV)/kept" $(BIN)/python -m pytest -n $(JOBS)

.PHONY: help lab test test-gpu lint notebooks checkpoint address clean

help:  ## say what there is
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 18
	@echo
	@echo 'Settings go behind the command: TORCH=cpu (no CUDA wheels), PYTHON=python3.11 (sets up with that one),'
	@echo 'NOTEBOOKS=notebooks/01_masks.ipynb (for make notebooks), JOBS=4 (tests at a time),'
	@echo 'LAB_FLAGS="--no-browser --port=9000" (for make lab).'

lab: $(VENV)/lab  ## open the lessons in JupyterLab
	$(BIN)/jupyter lab --LabApp.default_url=/lab/tree/notebooks/00_welcome.ipynb $(HIDDEN) $(AS_ROOT) $(LAB_FLAGS)

test: $(VENV)/test  ## run unit tests, doctests and every notebook, with its outputs compared (about five minutes)
	$(TESTS)

test-gpu: $(VENV)/test  ## run the notebooks on a GPU against the same stored outputs (fails where there is none)
	@$(BIN)/python -c "import sys, torch; torch.cuda.is_available() or sys.exit('test-gpu: PyTorch sees no GPU here, so nothing was tested.')"
	export TRANSFORMER_EDU_DEVICE=cuda; $(TESTS) notebooks

lint: $(VENV)/test  ## check the style of code and notebooks
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

notebooks: $(VENV)/test  ## run every notebook and store its outputs
	$(BIN)/python tests/notebook_tools.py record $(NOTEBOOKS)

checkpoint: $(VENV)/lab  ## train the small model that the course ships with anew (a quarter of a minute)
	@$(BIN)/python -c "from transformer_edu import trained; trained.rebuild(); print(trained.summary())"
	@echo "Lessons 00 and 10 show this model: run them again, and read what they say."

address: $(VENV)/test  ## move the course to another repository: make address URL=https://github.com/OWNER/REPO
	$(BIN)/python tests/notebook_tools.py address "$(URL)"

clean:  ## remove the environment
	rm -rf $(VENV)

# Today's pip (--upgrade-deps) is twice as fast as the one that Python 3.11 brings. The course is built with the
# setuptools that torch brings (--no-build-isolation), which warns of every installation in place.
$(VENV)/lab: requirements.txt pyproject.toml
	$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("Python 3.11 or newer is needed: make lab PYTHON=python3.11")'
	@echo "Setting up the environment in $(VENV): this takes a few minutes, once."
	$(PYTHON) -m venv --upgrade-deps $(VENV)
	$(if $(filter cpu,$(TORCH)),$(PIP) --no-deps --extra-index-url $(CPU_WHEELS) $(shell grep ^torch== requirements.txt))
	$(PIP) -r requirements.txt
	PYTHONWARNINGS=ignore $(PIP) --no-deps --no-build-isolation -e .
	mkdir -p $(LAB_CONFIG) && echo '$(NO_NEWS)' > $(LAB_CONFIG)/page_config.json
	touch $@

$(VENV)/test: $(VENV)/lab tests/requirements.txt
	$(PIP) -r tests/requirements.txt
	touch $@
