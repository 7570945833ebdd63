#!/usr/bin/env bash
# Runs the tests and the notebook of the Python client, installed by scripts/python-client.sh, against the `kith` of KITH_BIN or,
# without one, of this tree.
set -euo pipefail
cd "$(dirname "$0")/.."
target="$(realpath -m "${CARGO_TARGET_DIR:-target}")"

if [[ -z "${KITH_BIN:-}" ]]; then
  ${CARGO:-cargo} build --bin kith
  KITH_BIN="$target/debug/kith"
fi
if [[ ! -x "$KITH_BIN" ]]; then
  echo "error: there is no binary at KITH_BIN, $KITH_BIN; without KITH_BIN, one is built" >&2
  exit 1
fi
KITH_BIN="$(realpath "$KITH_BIN")"
scripts/python-client.sh

# From another folder, so that what is tested is what was installed.
tests="$(realpath clients/python/tests)"
cd "$target/python"
KITH_BIN="$KITH_BIN" PYTHONDONTWRITEBYTECODE=1 "$target/python/venv/bin/python" -m pytest -p no:cacheprovider \
  --rootdir "$tests" --durations 5 -q "$tests" "$@"
