# make demo   measure one real classifier, attack and certify another: how wrong can their confidences be?
# make test   everything that must hold: style, types, tests, executed documentation
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
ifndef TOGETHER
.NOTPARALLEL:
endif
MAKEFLAGS += --no-print-directory
SHELL := /bin/bash
# Compiled modules are kept, or else every process of the tests would compile them again.
unexport PYTHONDONTWRITEBYTECODE

VENV := .venv
BENCH := .venv-bench
PY := $(VENV)/bin/python
# With uv if it can be had, otherwise with pip.
INSTALL := scripts/install.py -c constraints.txt
# Override with `make PYTHON=/path/to/python`.
PYTHON ?= $(firstword $(foreach p,python3.11 python3.12 python3.13,$(shell $(p) -c 'print("$(p)")' 2>/dev/null)))

.PHONY: help setup demo test lint types browser examples unit ray docs mutations bench experiments clean

help: ## show this list
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## (.*)/  make \1\t\2/' | expand -t 22

define make_venv
	@if [ -z "$(PYTHON)" ] || ! "$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
	  echo "certcal needs Python 3.11 or newer: install python3.11, or run 'make PYTHON=/path/to/python3.11'." >&2; exit 1; fi
	@[ -x $(1)/bin/python ] && $(1)/bin/python -c 'import pip' 2>/dev/null || "$(PYTHON)" -m venv --clear $(1) || { \
	  echo "Python's venv module does not work here: install your system's python3-venv package and try again." >&2; exit 1; }
endef

# Two stamps: the demo needs little; development needs everything. The second includes the first.
$(VENV)/.demo: pyproject.toml constraints.txt
	$(call make_venv,$(VENV))
	@echo "Installing certcal into $(VENV) (once) …"
	@$(PY) $(INSTALL) -e '.[sklearn,torch]'
	@touch $@

$(VENV)/.dev: pyproject.toml constraints.txt
	$(call make_venv,$(VENV))
	@echo "Installing certcal and its development tools into $(VENV) (once, a few minutes) …"
	@$(PY) $(INSTALL) -e '.[dev,sklearn,report,torch,onnx,ray,interop]'
	@touch $(VENV)/.demo $@

setup: $(VENV)/.dev ## create .venv with everything that development needs

demo: $(VENV)/.demo ## measure, attack and certify real classifiers, trained on the spot; writes demo.html
	@$(VENV)/bin/certcal demo -o demo.html --force

# Two at a time: beside the docstrings' examples, which compile many kernels, the browser is found and types are checked.
test: $(VENV)/.dev $(VENV)/.kernels lint ## style, types, tests, documentation
	@$(MAKE) TOGETHER=1 -j2 unit types docs ray

lint: $(VENV)/.dev ## ruff: rules and formatting
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .

# With room for what is short-lived, pyright's collector of garbage runs less often.
types: $(VENV)/.dev ## pyright, strict
	NODE_OPTIONS="$$NODE_OPTIONS --max-semi-space-size=128" $(VENV)/bin/pyright

# numba's cache sees a change in a kernel's own file, not in one that it imports: after any change all are compiled anew.
$(VENV)/.kernels: $(wildcard src/certcal/_kernels/*.py) $(VENV)/.dev
	@find src -name '*.nb[ic]' -delete
	@touch $@

# Pages are tested in a real browser. Where there is none, Debian's is installed if that can be done without asking.
browser: $(VENV)/.dev ## find Chromium for the tests of pages, or install it (Debian)
	@$(PY) -m tests.browser.chromium >/dev/null 2>&1 || [ -n "$$CERTCAL_BROWSER" ] || ! command -v apt-get >/dev/null || { \
	  echo "Installing Chromium, in which pages are tested (once) …" >&2; \
	  as_root=; [ "$$(id -u)" = 0 ] || as_root="sudo -n"; \
	  $$as_root apt-get update -qq && $$as_root apt-get install -y -qq --no-install-recommends chromium; \
	} >/dev/null || true
	@$(PY) -m tests.browser.chromium >/dev/null

# Processes share the cores: a thread that waits in a loop would take the time of one that works. OpenBLAS knows no other
# way to wait, and its products are small here.
examples unit ray: export OMP_WAIT_POLICY := passive
examples unit ray: export OPENBLAS_NUM_THREADS := 1

# One process first: two that start together would each compile the same kernels and the same modules.
examples: $(VENV)/.dev $(VENV)/.kernels ## pytest: docstring examples
	$(VENV)/bin/pytest src

# Assertions that explain themselves take a fifth of a minute to compile: only what failed is run again with them.
unit: $(VENV)/.dev $(VENV)/.kernels examples browser ## pytest: docstring examples, tests but those of Ray, documentation pages
	$(VENV)/bin/pytest -n 2 --dist worksteal --assert=plain --durations=10 --ignore-glob='*/test_ray*.py' tests \
	  || { $(VENV)/bin/pytest --lf --lfnf=none --ignore-glob='*/test_ray*.py' tests; exit 1; }

# Beside the others and in one process: these tests share a cluster, and wait more than they compute.
ray: $(VENV)/.dev $(VENV)/.kernels ## pytest: tests on a Ray cluster
	$(VENV)/bin/pytest tests/engines/test_ray.py tests/engines/test_ray_own.py

docs: $(VENV)/.dev ## build the documentation into site/, strictly
	NO_MKDOCS_2_WARNING=true $(VENV)/bin/mkdocs build --strict --quiet

# Not a part of `make test`: it runs the tests of each guarantee once more, in a copy, with that guarantee weakened.
mutations: $(VENV)/.dev $(VENV)/.kernels ## weaken each guarantee in a copy and expect its tests to fail (minutes)
	@$(PY) scripts/mutations.py

$(BENCH)/.ready: pyproject.toml constraints.txt bench/requirements.txt
	$(call make_venv,$(BENCH))
	@echo "Installing certcal and its peers into $(BENCH) (once, a few minutes) …"
	@$(BENCH)/bin/python $(INSTALL) -e '.[trees,torch,onnx]' -r bench/requirements.txt
	@touch $@

bench: $(BENCH)/.ready ## speed and memory against peers, as ratios measured in one run
	@missed=0; for part in run ties worst_case sampling certifying verification bounds intervals adversaries calibrators recalibration study; do \
	  echo "== bench/$$part.py"; $(BENCH)/bin/python bench/$$part.py || missed=1; done; exit $$missed

experiments: ## list the experiments
	@shopt -s nullglob; files=(experiments/[!_]*.py); \
	if [ $${#files[@]} -eq 0 ]; then echo "There are no experiments yet; each will be one file, experiments/NAME.py."; fi; \
	for f in "$${files[@]}"; do echo "$(PY) $$f    $$(sed -nE '1s/^"""//p' "$$f" | sed 's/"""$$//')"; done

clean: ## remove environments, caches and built pages
	rm -rf $(VENV) $(BENCH) site demo.html build dist .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
