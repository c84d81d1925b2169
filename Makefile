# Every target does its own set-up: the virtual environment, the locked dependencies, the control plane.
# A second run finds all of it done and starts in seconds.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
READY_BENCH := $(VENV)/.ready-bench
READY_MUTANTS := $(VENV)/.ready-mutants
READY_S3 := $(VENV)/s3/.ready
READY_DOCS := $(VENV)/docs/.ready
# How make runs the tests: tests/running deals them out, and has built what isn't built yet. WORKERS=… are the processes that run them.
DEALT = -p tests.running.plugin --numprocesses=$(or $(WORKERS),6)
RUN = $(BIN)/pytest $(DEALT) $(if $(PROFILE),-p tests.running.profile --profile=$@) $(if $(STRESS),--stress) $(if $(ORDER),--shuffle=$(or $(SEED),drawn))
ORDERED = $(if $(filter-out random,$(ORDER)),echo "ORDER=$(ORDER): the only choice is ORDER=random (SEED=… for one that comes again)"; exit 2)

# Hundreds of short programs run here, which shouldn't compile themselves each time.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help venv s3-server sandbox render sops registry fixtures demo test test-core test-changed test-operators prove images builds screenshots leaks mutants chaos etcd-chaos postgres-chaos kafka-chaos factory realworld render-conformance import-conformance patch-conformance sops-conformance bench-render soak bench-daemon bench-fairness abuse bench-page scale oracle law-deletions bench bench-quick check docs format lock licenses manifests dist release clean

help: ## Show the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

venv: $(READY) ## Make the virtual environment with the locked dependencies

$(READY): requirements-dev.lock pyproject.toml setup.py
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "$(PYTHON) is too old: Python 3.11 or newer is needed (make PYTHON=python3.12 …)"; exit 1; }
	@echo "==> making $(VENV) with the locked dependencies (about half a minute, once)"
	@$(PYTHON) -m venv --clear $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements-dev.lock
	@PYTHONWARNINGS=ignore $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	@touch $@

s3-server: $(READY_S3) ## Install the S3 server that tests talk to, apart from all else

$(READY_S3): $(READY) requirements-s3.lock
	@echo "==> building the environment of the S3 server (half a minute, once)"
	@$(BIN)/python -m venv --clear --without-pip $(@D)
	@$(BIN)/python -m pip --python $(@D)/bin/python install --quiet --disable-pip-version-check --require-hashes -r requirements-s3.lock
	@touch $@

sandbox: $(READY) ## Build the sandbox's control plane (some six minutes the first time)
	@folder=$$($(BIN)/kubectl-reconcile sandbox build) && echo "==> the control plane's programs are in $$folder"

render: $(READY) ## Build the program that renders overlays and charts (some minutes the first time)
	@program=$$($(BIN)/python -m kubectl_reconcile.source.render) && echo "==> the program that renders overlays and charts is $$program"

sops: $(READY) ## Build the program that decrypts files of SOPS (some minutes the first time)
	@program=$$($(BIN)/python -m kubectl_reconcile.source.sops) && echo "==> the program that decrypts files of SOPS is $$program"

demo: $(if $(CLUSTER),$(READY),sandbox) ## See it work: git push to running pods (CLUSTER=current: in the cluster of KUBECONFIG; ETCD=1: a real database; KEEP=1 leaves it running)
	@$(if $(filter-out current,$(CLUSTER)),echo "CLUSTER=$(CLUSTER): the only choice is CLUSTER=current: the cluster of KUBECONFIG"; exit 2)
	@$(if $(and $(CLUSTER),$(ETCD)),echo "ETCD=1 needs the sandbox: leave CLUSTER out"; exit 2)
	@$(BIN)/python examples/$(if $(CLUSTER),current_demo,$(if $(ETCD),etcd_demo,demo)).py $(if $(KEEP),--keep)

test: $(READY) ## Run all tests, on a real API server and a real Git server, which are built meanwhile (PROFILE=1: where the time goes; STRESS=1: beside busy processes; ORDER=random SEED=…)
	@$(ORDERED)
	@$(RUN) --builds="sandbox,render,sops,registry s3-server" --ignore=tests/operators/real

test-operators prove: WORKERS := $(or $(WORKERS),4)

test-operators: $(READY) ## Run the operators' tests on real databases in pods that run as processes (their programs are built the first time: minutes; DUE=1: what .ci/run runs of them; PROFILE=1, STRESS=1, ORDER=random as for test)
	@$(ORDERED)
	@$(RUN) --builds="sandbox,images s3-server" $(if $(DUE),-p tests.operators.proving.due) tests/operators/real

prove: sandbox images s3-server ## Run all the operators' tests, and write what they passed with into tests/operators/PROVEN.json (OPERATOR="etcd kafka"; PROFILE=1 as for test-operators)
	@$(BIN)/python -m tests.operators.proving --pytest="$(DEALT)$(if $(PROFILE), -p tests.running.profile --profile=test-operators)" $(OPERATOR)

images: $(READY) ## Build the programs of databases, and fetch those that Maven has (minutes the first time)
	@$(BIN)/kubectl-reconcile sandbox build --image all

registry: $(READY) ## Build the registries that tests pull from (some minutes the first time)
	@program=$$($(BIN)/python -m tests.registry_server) && echo "==> the registries of tests are $$program"

fixtures: registry ## Record again what the real cosign signs and the real sops encrypts (COSIGN=, SOPS=path of the program; age-keygen and gpg on PATH)
	@$(BIN)/python -m tests.oci_fixtures $(or $(COSIGN),cosign)
	@$(BIN)/python -m tests.sops_fixtures --sops=$(or $(SOPS),sops)

sops-conformance: sops ## Compare what hundreds of files say byte by byte with the real sops (SOPS=path of its program)
	@$(BIN)/python -m tests.sops_fixtures --compare --sops=$(or $(SOPS),sops)

builds: sandbox render sops registry images ## Build all programs that tests need (minutes the first time)

screenshots: $(READY) ## Take pictures of the page on the cluster of KUBECONFIG, in build/screenshots (make demo KEEP=1 runs one; SYNC=default/shop)
	@$(BIN)/python -m tests.web.screenshots build/screenshots $(SYNC)

test-core: $(READY) ## Run the tests of the pure core, on all cores: no cluster, a minute
	@$(BIN)/pytest --numprocesses=logical --dist=worksteal tests/core

test-changed: $(READY) ## Run the tests that what you changed concerns, the nearest first, for two minutes (BASE=main is what it is compared with)
	@$(BIN)/python -m tests.changed $(if $(BASE),--base="$(BASE)")

mutants: $(READY_MUTANTS) ## Change core in N places (400), one at a time, and count what its tests notice (ONLY=ssa/merge SEED=2)
	@$(BIN)/python -m tests.mutants $(or $(N),400) $(if $(ONLY),--only="$(ONLY)") $(if $(SEED),--seed=$(SEED)) $(if $(TESTS),--tests="$(TESTS)")

$(READY_MUTANTS): $(READY) requirements-mutants.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-mutants.lock
	@touch $@

oracle: sandbox ## Put N random cases (2000) to the API server and to the merge; SEED=… repeats a run
	@PYTHONPATH=tests $(BIN)/python -m oracle --cases $(or $(N),2000) $(if $(SEED),--seed $(SEED))

law-deletions: sandbox ## Delete in N random worlds (500) on a real control plane: what is gone is what was named and approved (SEED=… repeats a run)
	@$(BIN)/python -m tests.laws $(or $(N),500) $(if $(SEED),--seed=$(SEED))

chaos: sandbox ## Kill syncs of 300 objects at N random moments, and look for what leaked (N=50)
	@$(BIN)/python -m tests.chaos $(or $(N),50) $(SEED)

etcd-chaos: sandbox ## Let N faults (100) befall a real etcd that is written to, and look for writes that are lost (SEED=… repeats a run)
	@$(BIN)/python -m tests.chaos.etcd $(or $(N),100) $(if $(SEED),--seed $(SEED)) $(ARGS)

postgres-chaos: sandbox ## Let N faults (50) befall a real PostgreSQL that is written to, and look for rows that are lost (SEED=… repeats a run)
	@$(BIN)/python -m tests.chaos.postgres $(or $(N),50) $(if $(SEED),--seed $(SEED)) $(ARGS)

kafka-chaos: sandbox ## Let N faults (30) befall a real Kafka that is written to and read from, and look for records that are lost (SEED=… repeats a run)
	@$(BIN)/python -m tests.chaos.kafka $(or $(N),30) $(if $(SEED),--seed $(SEED)) $(ARGS)

bench: sandbox $(READY_BENCH) ## Us against kubectl and a bare client, in one run (one to two hours; ARGS="--workload large")
	@$(BIN)/python -m benchmarks $(ARGS)

bench-quick: sandbox $(READY_BENCH) ## The same with small numbers, in under three minutes
	@$(BIN)/python -m benchmarks --quick $(ARGS)

$(READY_BENCH): $(READY) requirements-bench.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-bench.lock
	@touch $@

factory: sandbox ## Let N things go wrong around a chocolate factory, and look for bars that are lost (N=500)
	@$(BIN)/python -m tests.chaos.factory $(or $(N),500) $(if $(SEED),--seed $(SEED))

realworld: sandbox ## Follow public repositories of raw manifests: CHECKOUTS=folder that holds them (NAMES="metallb longhorn")
	@$(BIN)/python -m tests.realworld $(or $(CHECKOUTS),checkouts) $(NAMES)

render-conformance: sandbox render registry ## Hold what is rendered against kubectl and helm, charts also from a registry: CHECKOUTS=folder of checkouts (NAMES="metrics-server kserve")
	@$(BIN)/python -m tests.realworld.conformance $(or $(CHECKOUTS),checkouts) $(NAMES)

import-conformance: sandbox ## Translate what public repositories of Argo CD's and Flux's users apply: CHECKOUTS=folder of checkouts (NAMES="a b")
	@$(BIN)/python -m tests.realworld.imports $(or $(CHECKOUTS),checkouts) $(NAMES)

patch-conformance: sandbox render ## Hold N (200) drawn patches of drawn objects against kubectl kustomize: over manifests, overlays and charts
	@$(BIN)/python -m tests.realworld.patches $(or $(N),200)

bench-render: sandbox render ## Measure rendering beside kustomize's library and kubectl (ARGS="--cluster 3 100 1000")
	@$(BIN)/python -m benchmarks.render $(ARGS)

leaks: sandbox render registry s3-server ## Run the tests with garbage collected after each, and fail those that leave a socket, file or process open (TESTS=tests/cluster)
	@PYTHONTRACEMALLOC=15 $(BIN)/pytest -p tests.leaks -W error::ResourceWarning $(DEALT) --ignore=tests/operators/real $(TESTS)

soak: sandbox ## Keep a daemon busy for MINUTES (15): edits, pushes, restarts; memory flat, every drift put back
	@$(BIN)/python -m tests.soak $(or $(MINUTES),15) $(SEED)

bench-daemon: sandbox ## Measure a daemon with N members (10000): memory, idle, drift, pushes, restart
	@$(BIN)/python -m benchmarks.daemon $(or $(N),10000)

bench-page: $(READY) ## Measure the page with N Syncs (10000) in headless Chromium, and 100 open pages (a minute)
	@$(BIN)/python -m benchmarks.page $(or $(N),10000)

bench-fairness: sandbox ## Measure how the first sync of N objects (20000) delays the drift of another Sync
	@$(BIN)/python -m benchmarks.fairness $(or $(N),20000)

abuse: sandbox render ## Abuse everything from one namespace for MINUTES (10), beside three quiet teams: nobody waits for it, nothing is lost
	@$(BIN)/python -m benchmarks.abuse $(or $(MINUTES),10)

scale: sandbox ## How a daemon's cost grows with Syncs, objects and repositories (half an hour; ARGS="--large 1000x4x1")
	@$(BIN)/python -m benchmarks.scale $(ARGS)

check: $(READY) ## Lint, types, layers, words, spelling, the Dockerfile, links of the documentation
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/python -m tests.words
	@$(BIN)/python -m kubectl_reconcile.cli.reference docs --check
	@$(BIN)/python -m kubectl_reconcile.cli.deploy_files deploy --check
	@$(BIN)/python -m tests.pages
	@$(BIN)/codespell
	@$(BIN)/hadolint --failure-threshold=info Dockerfile
	@$(BIN)/python -m tests.sizes

docs: $(READY_DOCS) ## Build the site of the documentation into build/site, without network
	@NO_MKDOCS_2_WARNING=1 $(VENV)/docs/bin/python -m mkdocs build --quiet --clean
	@! grep -rlE '<(script|img|iframe)[^>]* src="?(https?:)?//|<link[^>]* rel="?stylesheet"?[^>]* href="?(https?:)?//' build/site --include='*.html' || { echo "these pages load something from another host"; exit 1; }
	@echo "==> open build/site/index.html; for its search: $(PYTHON) -m http.server -d build/site"

$(READY_DOCS): $(READY) requirements-docs.lock
	@$(BIN)/python -m venv --clear --without-pip $(@D)
	@$(BIN)/python -m pip --python $(@D)/bin/python install --quiet --disable-pip-version-check --require-hashes -r requirements-docs.lock
	@touch $@

format: $(READY) ## Format the code
	@$(BIN)/ruff check --fix-only --quiet .
	@$(BIN)/ruff format .

manifests: $(READY) ## Regenerate deploy/install.yaml, docs and the rules of health, after a change of CRDs, rights, flags, names or rules
	@$(BIN)/python -m kubectl_reconcile.cli.deploy_files deploy
	@$(BIN)/python -m kubectl_reconcile.views.schemas > kubectl_reconcile/core/planning/plan.schema.json
	@$(BIN)/python -m kubectl_reconcile.cli.reference docs
	@$(BIN)/python -m kubectl_reconcile.cli.health_kinds kubectl_reconcile/core/health/kinds/kinds.json
	@$(BIN)/python -m kubectl_reconcile.cli.health_page docs/health.md

dist: $(READY) ## Build wheel, sdist, self-contained programs, SBOM and krew's manifest (PLATFORM=all RELEASE_URL=https://…; SOPS=1: also the wheel with the program that decrypts)
	@$(BIN)/python -m releasing.dist $(if $(SOPS),--sops) $(addprefix --platform=,$(PLATFORM)) $(if $(RELEASE_URL),--release-url=$(RELEASE_URL)) $(if $(HOMEPAGE),--homepage=$(HOMEPAGE))

release: $(READY) ## Make VERSION=x.y.z here and publish nothing: changelog, commit, tag and dist, tried (RELEASE_URL=https://…)
	@$(BIN)/python -m releasing $(addprefix --platform=,$(PLATFORM)) --release-url="$(RELEASE_URL)" --homepage="$(HOMEPAGE)" -- "$(VERSION)"

lock: $(READY) ## Pin the newest dependencies that pyproject.toml allows
	@$(BIN)/uv pip compile --quiet --upgrade --universal --generate-hashes --no-header --python-version 3.11 pyproject.toml -o requirements.lock
	@$(BIN)/uv pip compile --quiet --upgrade --universal --generate-hashes --no-header --python-version 3.11 pyproject.toml --extra s3 --extra keyless -o requirements-image.lock
	@$(BIN)/uv pip compile --quiet --upgrade --universal --generate-hashes --no-header --python-version 3.11 pyproject.toml --extra s3 --extra keyless --group dev -o requirements-dev.lock
	@$(BIN)/uv pip compile --quiet --upgrade --universal --generate-hashes --no-header --python-version 3.11 --group build -o requirements-build.lock
	@$(BIN)/uv pip compile --quiet --upgrade --universal --generate-hashes --no-header --python-version 3.11 --group s3 -o requirements-s3.lock
	@$(BIN)/uv pip compile --quiet --upgrade --universal --generate-hashes --no-header --python-version 3.11 --group docs -o requirements-docs.lock
	@$(BIN)/uv pip compile --quiet --upgrade --universal --generate-hashes --no-header --python-version 3.11 --group bench -o requirements-bench.lock
	@$(BIN)/uv pip compile --quiet --upgrade --universal --generate-hashes --no-header --python-version 3.11 --group mutants --constraints requirements-dev.lock -o requirements-mutants.lock

licenses: $(READY) ## Write down the licenses of what a release ships, for its bill of materials, after make lock or a change of go.mod
	@$(BIN)/python -m releasing.licenses

clean: ## Remove what make made here (the control plane's build stays in your cache)
	@rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis *.egg-info
