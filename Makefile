# The front door. `make help` lists what there is.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
CARGO ?= cargo

.PHONY: help build dist demo docs test test-full test-spark test-python test-dist test-gremlin check fuzz deny miri bench fmt bless packages clean

help: ## What there is
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

# KITH names a binary that there is; then none is built.
build: ## The release binary, target/release/kith; its line tables in kith.debug beside it. Needs Cargo and a C compiler
	$(if $(KITH),,$(CARGO) build --release --bin kith)
	$(if $(KITH),,scripts/split-debug.sh "$${CARGO_TARGET_DIR:-target}/release/kith")

dist: packages ## The tarball to install from, in target/dist: binary, manual, completions, units, licences, checksums
	scripts/dist.sh

# The demo needs no columnar files, object stores, MySQL, benchmarks or figures, and no speed.
demo: ## A cluster of 2 groups × 3 nodes with a graph in it, a few queries, then it is yours. Needs Cargo and a C compiler
	$(if $(KITH),,$(CARGO) build --profile demo --bin kith --no-default-features)
	KITH=$${KITH:-$${CARGO_TARGET_DIR:-target}/demo/kith} scripts/demo.sh

# Tests of clusters wait for processes half of the time, so more of them run at once than there are cores.
test: packages ## All tests; installs what they need
	RUST_TEST_THREADS=$${RUST_TEST_THREADS:-$$(( ($$(nproc) * 3 + 1) / 2 ))} $(CARGO) test --workspace --no-fail-fast

test-full: packages ## Every reference answer on every graph, in release; minutes
	KITH_TEST_FULL=1 $(CARGO) test --release --workspace --no-fail-fast
	KITH_RUNS=100000 $(CARGO) test --release -p kith-sim --test live

test-spark: packages ## Versions built by Spark against those of `kith store build`; installs PySpark, 450 MB
	scripts/test-spark.sh

test-python: packages ## The Python client: a wheel, installed into a fresh environment, its tests and its notebook
	scripts/test-python.sh

test-dist: packages ## The tarball, unpacked into a root directory of its own and used there
	scripts/test-dist.sh

test-gremlin: packages ## Stock Gremlin drivers against a cluster, and TinkerPop's suite where its runner lies beside the project
	scripts/test-gremlin.sh

docs: packages ## Every block of the README and docs/, run as it is pasted
	scripts/docs.sh

check: ## What CI runs
	.ci/run

fuzz: ## Fuzzes every decoder, a minute each (KITH_FUZZ_SECONDS); FUZZ="frames resp" fuzzes only these
	scripts/fuzz.sh $(FUZZ)

deny: ## Licences, sources, bans and advisories of all dependencies; needs cargo-deny
	scripts/deny.sh

miri: ## The tests of the format crates under Miri; needs a nightly toolchain with it
	scripts/miri.sh

bench: packages ## Paired benchmarks; prints, passes no verdict
	scripts/bench.sh

fmt: ## Formats the code
	$(CARGO) fmt --all

bless: ## Rewrites the golden files: read the diff
	BLESS=1 $(CARGO) test --workspace
	git diff --stat -- '*testdata*'

packages: ## The system packages that building and testing need
	@scripts/packages.sh

clean: ## Removes what was built
	$(CARGO) clean
