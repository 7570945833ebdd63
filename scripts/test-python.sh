#!/usr/bin/env bash
# Builds the wheel of the Python client, installs it into a fresh virtual environment, and runs its tests and its notebook
# there, against the `kith` of KITH_BIN or, without one, of this tree. Tools come from pip, into the target directory.
set -euo pipefail
cd "$(dirname "$0")/.."
python="${PYTHON:-python3}"
if ! "$python" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
  echo "error: the Python client needs Python 3.11 or later with venv; name one with PYTHON=python3.12" >&2
  exit 1
fi
target="${CARGO_TARGET_DIR:-target}"
mkdir -p "$target/python"
target="$(realpath "$target")"
place="$target/python"

if [[ -z "${KITH_BIN:-}" ]]; then
  ${CARGO:-cargo} build --bin kith
  KITH_BIN="$target/debug/kith"
fi
if [[ ! -x "$KITH_BIN" ]]; then
  echo "error: there is no binary at KITH_BIN, $KITH_BIN; without KITH_BIN, one is built" >&2
  exit 1
fi
KITH_BIN="$(realpath "$KITH_BIN")"
if [[ ! -x "$place/tools/bin/pip" ]]; then
  "$python" -m venv "$place/tools"
fi
"$place/tools/bin/pip" install --quiet --disable-pip-version-check 'maturin>=1.9.4,<2'

rm -rf "$place/venv" "$place/wheels"
CARGO_TARGET_DIR="$target" "$place/tools/bin/maturin" build --manifest-path clients/python/Cargo.toml \
  --out "$place/wheels" --compatibility linux --locked
"$python" -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet --disable-pip-version-check "$place"/wheels/kith-*.whl \
  --requirement clients/python/tests/requirements.txt

# From another folder, so that what is tested is what was installed.
tests="$(realpath clients/python/tests)"
cd "$place"
KITH_BIN="$KITH_BIN" PYTHONDONTWRITEBYTECODE=1 "$place/venv/bin/python" -m pytest -p no:cacheprovider \
  --rootdir "$tests" --durations 5 -q "$tests" "$@"
