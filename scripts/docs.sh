#!/usr/bin/env bash
# Runs every code block of the README and docs/ as it is pasted (scripts/docs.py), with the `kith` of KITH_BIN or, without one, of this
# tree, and the Python client of KITH_PYTHON or, without one, as `make test-python` builds it.
set -euo pipefail
cd "$(dirname "$0")/.."
target="$(realpath -m "${CARGO_TARGET_DIR:-target}")"

if [[ -z "${KITH_BIN:-}" ]]; then
  ${CARGO:-cargo} build --bin kith
  export KITH_BIN="$target/debug/kith"
fi
if [[ -z "${KITH_PYTHON:-}" ]]; then
  scripts/python-client.sh
  export KITH_PYTHON="$target/python/venv/bin/python"
fi
python3 scripts/docs.py "$@"
