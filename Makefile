# make audit: set up, then audit the Boston mortgage applications of 1990.   make test: set up, then check and test.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# Of two processes that compute, threads would wait for each other. Commands that tests start find bytecode of the first.
PYTEST := OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE= $(BIN)/pytest --numprocesses 2 --no-loadscope-reorder --durations 20

.PHONY: audit test test-slow test-long check docs docs-check lock sbom format clean help

help:
	@echo "make audit      set up and run the audit of the bundled Boston data"
	@echo "make test       set up and run ruff, mypy, import-linter and the tests, but for the slow ones"
	@echo "make test-slow  set up and run the slow tests: full sizes, and real data where EVENHAND_TEST_DATA names their folder"
	@echo "make test-long  set up and run the longest tests, which CI leaves out"
	@echo "make docs       write the reference pages (tables, settings, spec keys, commands), the glossary and the schema of report.json"
	@echo "make lock       write the locks of all libraries with their hashes (UPGRADE=--upgrade for newer versions)"
	@echo "make sbom       write sbom.cdx.json, the list of what an image runs on (IMAGE=NAME: with its packages of Debian)"
	@echo "make format     format the code"
	@echo "make site       build the documentation into site/, which a browser opens without a server (make docs does it, too)"
	@echo "make docs-check build the site, check its links, words and reading ease, and run the code of its pages (some minutes)"
	@echo "make clean      remove the virtual environment and the caches (not data/lake)"

LOCKS := requirements.lock requirements-dask.lock requirements-dev.lock
INSTALL := $(BIN)/pip install --quiet --disable-pip-version-check
CHECKED := $(INSTALL) --require-hashes --no-deps
# cuda: torch with the libraries of CUDA, whose versions no lock here holds
TORCH ?= cpu

$(STAMP): $(LOCKS) requirements-torch.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info[:2] >= (3, 11) else "Python 3.11 or later is needed: make PYTHON=python3.11 ...")'
	@echo "setting up $(VENV): three to six minutes, once"
	@$(PYTHON) -m venv $(VENV)
	@$(CHECKED) $(addprefix --requirement ,$(LOCKS))
	@# a wheel in a folder of pip's (find-links) comes first: pip ranks it below those whose index tells their hash
	@$(CHECKED) --no-index --requirement requirements-torch.lock 2>/dev/null || $(CHECKED) --requirement requirements-torch.lock
	@if [ "$(TORCH)" = cuda ] || ! $(BIN)/python -c 'import torch' 2>/dev/null; then \
	  echo "this is the CUDA build of torch: its libraries are installed, too, without hashes;" \
	    "an index with PyTorch's build for processors (PIP_EXTRA_INDEX_URL) spares them"; \
	  $(INSTALL) torch==2.13.0; \
	fi
	@$(INSTALL) --no-deps --no-build-isolation --editable .
	@$(BIN)/python -m flows.supervision.prepare
	@touch $@

# An audit that ran is a success here whatever it found; 2, 4, 5 and 6 are failures to run one.
audit: $(STAMP)
	@$(BIN)/evenhand audit; code=$$?; case $$code in 0|1|3) exit 0;; *) exit $$code;; esac

check: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# The checks run beside the tests, and tell what they found after them.
test: $(STAMP)
	@found=$$(mktemp); trap 'rm -f "$$found"' EXIT; \
	$(MAKE) --no-print-directory check > "$$found" 2>&1 & checks=$$!; \
	$(PYTEST) -m "not slow and not long"; tests=$$?; \
	wait $$checks; checked=$$?; cat "$$found"; exit $$((tests || checked))

test-slow: $(STAMP)
	$(PYTEST) -m "slow and not long"

# what CI has no time for: many minutes each, or a bench on a whole file
test-long: $(STAMP)
	$(PYTEST) -m long

docs: $(STAMP)
	$(BIN)/python -m flows.operations.dictionary > docs/tables.md
	$(BIN)/python -m flows.operations.environment_variables > docs/settings.md
	$(BIN)/python -m flows.operations.spec_keys > docs/audit-spec.md
	$(BIN)/python -m flows.cli.reference > docs/commands.md
	$(BIN)/python -m schemas.report > schemas/report.schema.json
	$(BIN)/python -m schemas.sentences > docs/glossary.md
	$(BIN)/python deployments/documentation.py write
	@$(MAKE) --no-print-directory site

# what builds the site has an environment of its own
DOCS := .venv-docs
SITE_STAMP := $(DOCS)/.installed
$(SITE_STAMP): requirements-docs.lock
	@$(PYTHON) -m venv $(DOCS)
	@$(DOCS)/bin/pip install --quiet --disable-pip-version-check --require-hashes --no-deps --requirement requirements-docs.lock
	@touch $@

site: $(STAMP) $(SITE_STAMP) mkdocs.yml $(shell find docs -type f)
	@$(BIN)/python deployments/documentation.py stage $(DOCS)/pages
	@cd $(DOCS)/pages && ../bin/zensical build --clean --strict
	@rm -rf site && mv $(DOCS)/pages/site site

docs-check: $(STAMP) site
	$(BIN)/python deployments/documentation.py check site
	$(BIN)/python -W ignore deployments/documentation.py run

lock: $(STAMP)
	$(BIN)/python deployments/locks.py $(UPGRADE)

# IMAGE=evenhand:0.2.0: with the packages of Debian in that image
DPKG := dpkg-query --show --showformat '$${Package} $${Version} $${Architecture}\n'
sbom: $(STAMP)
	@$(if $(IMAGE),docker run --rm --entrypoint sh $(IMAGE) -c "$(subst $$,\$$,$(DPKG))" > sbom.packages,true)
	$(BIN)/python deployments/sbom.py sbom.cdx.json $(if $(IMAGE),sbom.packages)
	@rm -f sbom.packages

format: $(STAMP)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf $(VENV) $(DOCS) site .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
