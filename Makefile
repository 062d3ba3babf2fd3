# Every target installs what it needs first, into .venv; nothing outside this folder is touched
# (except that root on Debian or Ubuntu gets python3-venv, and for `make test` chromium and nginx, when they are missing).
#
#   make demo                 show a server and a client at work, with every frame
#   make check                the quick part: lint, types, layers, unit tests
#   make test                 everything
#   make bench                the measurements
#   make conformance          the official conformance suite, set on our server and on our client
#                             (make conformance-server, make conformance-client: one of the two)
#   make format               rewrite the sources in the house style

PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)

PY := .venv/bin/python
READY := .venv/.ready
SELF := -e '.[cli,dev]'
# What the measurements compare with lives apart: none of it may be imported by mistake.
PEERS_READY := .venv-peers/.ready
PEER := mcp>=2.3,<2.4
# So does what tests/interop talks to. Not in .venv-peers: with some of its packages beside it, `import mcp` costs more.
INTEROP_READY := .venv-interop/.ready
INTEROP := '$(PEER)' 'fastmcp>=4.2,<4.3' mcp-server-fetch mcp-server-git mcp-server-time
NODE := tests/interop/node
NODE_READY := $(NODE)/node_modules/.ready
# And the official conformance suite, with the Node that it needs.
SUITE := tests/conformance/node
SUITE_READY := $(SUITE)/node_modules/.ready
# What only `make test` runs. The marks are explained in pyproject.toml.
HEAVY := slow or conformance or interop or bench
# Two workers beat `auto` on small machines: each costs a second to start.
PYTEST := $(PY) -m pytest -n 2 --dist worksteal

export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PYRIGHT_PYTHON_IGNORE_WARNINGS := 1

.PHONY: help demo check test bench conformance conformance-server conformance-client format lint install peers chromium nginx constraints clean
.DEFAULT_GOAL := help

help:
	@sed -n 's/^#   //p' Makefile

demo: $(READY)
	@$(PY) examples/demo.py

lint: $(READY)
	@.venv/bin/ruff check --quiet .
	@.venv/bin/ruff format --quiet --check . || { echo "Not in the house style; run: make format"; exit 1; }
	@$(PY) -m pyright
	@.venv/bin/lint-imports --no-logo

check: lint
	$(PYTEST) -q -m "not ($(HEAVY))"

# Measurements come first and alone, so that nothing else runs beside them; 5 is pytest's word for "none found".
test: lint peers chromium nginx
	$(PY) -m pytest -q -m bench || test $$? -eq 5
	$(PYTEST) -m "not bench"

# Say more with ARGS, as in: make bench ARGS='--quick --only call'
bench: $(READY) $(PEERS_READY)
	@$(PY) -m benchmarks $(ARGS)

conformance conformance-server conformance-client: $(READY) $(SUITE_READY)
	@$(PY) -m tests.conformance $(patsubst conformance-%,%,$(filter-out conformance,$@))

format: $(READY)
	@.venv/bin/ruff check --quiet --fix --exit-zero .
	@.venv/bin/ruff format .

install: $(READY)

# What others wrote, for the measurements, tests/interop and tests/conformance; side by side, since each waits for a
# registry. Without npm the tests that need its packages are skipped, with the reason; where CI=true that is a failure.
peers: $(READY)
	@$(MAKE) --no-print-directory -s -j4 $(PEERS_READY) $(INTEROP_READY) \
		$$(command -v npm >/dev/null && echo $(NODE_READY) $(SUITE_READY))

# $(call debian,PACKAGE): install it without asking, where that can be done; never fails.
SBIN := /usr/sbin
define debian
{ test "$$(id -u)" != 0 || ! command -v apt-get >/dev/null; } \
		|| { echo "Installing $(1) ..." && apt-get -qq update \
			&& DEBIAN_FRONTEND=noninteractive apt-get -qq install -y $(1) >/dev/null; } \
		|| echo "$(1) could not be installed; the tests that need it are skipped."
endef

# For tests/browser. Where it is missing they are skipped, with the reason; where CI=true that is a failure.
chromium:
	@command -v chromium >/dev/null || $(call debian,chromium)

# For what is tested behind a proxy, likewise. Debian would start a server of its own with it; it is told not to.
nginx:
	@command -v nginx >/dev/null || test -x $(SBIN)/nginx || { \
		if test "$$(id -u)" = 0 && ! test -e $(SBIN)/policy-rc.d; then \
			trap 'rm -f $(SBIN)/policy-rc.d' EXIT INT TERM; \
			printf '#!/bin/sh\nexit 101\n' > $(SBIN)/policy-rc.d && chmod 755 $(SBIN)/policy-rc.d; \
		fi; \
		$(call debian,nginx-light); }

# `pip install .` into .venv would have every target look at a copy. So an environment whose modelwire is not this
# checkout is installed anew; what an editable installation leaves is a .pth file with the path of the sources.
ifneq ($(wildcard $(READY)),)
ifeq ($(shell grep -lsxF '$(CURDIR)/src' .venv/lib/python*/site-packages/*.pth),)
.PHONY: $(READY)
endif
endif

$(READY): pyproject.toml constraints.txt src/modelwire/version.py
	@test -n "$(PYTHON)" || { echo "modelwire needs Python 3.11 or later; none was found (or name one: make PYTHON=/path/to/python)."; exit 1; }
	@$(PY) -m pip --version >/dev/null 2>&1 || $(MAKE) --no-print-directory .venv-made
	@echo "Installing into .venv ..."
	@$(PY) -m pip install -qq -c constraints.txt hatchling
	@$(PY) -m pip install -qq --no-build-isolation -c constraints.txt $(SELF)
	@touch $@

$(PEERS_READY): benchmarks/constraints-peers.txt | $(READY)
	@echo "Installing into .venv-peers ..."
	@$(PY) -m venv --clear .venv-peers
	@.venv-peers/bin/python -m pip install -qq -c $< '$(PEER)'
	@touch $@

$(INTEROP_READY): tests/interop/constraints.txt | $(READY)
	@echo "Installing into .venv-interop ..."
	@$(PY) -m venv --clear .venv-interop
	@.venv-interop/bin/python -m pip install -qq -c $< $(INTEROP)
	@touch $@

$(NODE_READY) $(SUITE_READY): %/node_modules/.ready: %/package.json %/.npmrc
	@command -v npm >/dev/null || { echo "$* needs npm, which is not here."; exit 1; }
	@echo "Installing into $*/node_modules ..."
	@rm -rf $*/node_modules && cd $* && npm install --silent
	@touch $@

.PHONY: .venv-made
.venv-made:
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null \
		|| { test "$$(id -u)" = 0 && command -v apt-get >/dev/null && echo "Installing python3-venv ..." \
			&& apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install -y python3-venv >/dev/null; } \
		|| { echo "$(PYTHON) cannot make a virtual environment. Install its venv module and run make again:"; \
			echo "    sudo apt-get install python3-venv"; exit 1; }
	@$(PYTHON) -m venv --clear .venv

# $(call freeze,FILE,WHAT): take the newest versions that WHAT allows into FILE, and keep the comment at its head.
define freeze
@rm -rf .venv-fresh && $(PYTHON) -m venv .venv-fresh
@.venv-fresh/bin/python -m pip install -qq $(2)
@{ sed -n 's/^#/#/p' $(1); \
	.venv-fresh/bin/python -m pip freeze --exclude-editable --exclude pip --exclude setuptools; } > constraints.new
@mv constraints.new $(1) && rm -rf .venv-fresh
endef

constraints:
	$(call freeze,constraints.txt,$(SELF))
	$(call freeze,benchmarks/constraints-peers.txt,'$(PEER)')
	$(call freeze,tests/interop/constraints.txt,$(INTEROP))

clean:
	rm -rf .venv .venv-fresh .venv-peers .venv-interop $(NODE)/node_modules $(SUITE)/node_modules dist build .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find src tests examples benchmarks -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true
