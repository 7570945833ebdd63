#!/usr/bin/env bash
# Builds the wheel of the Python client and installs it, with what its tests need, into a fresh virtual environment,
# target/python/venv. Tools come from pip, into the target directory.
#   KITH_AS_TESTED: not empty after `cargo test --workspace`, of which the build is then reused.
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

if [[ ! -x "$place/tools/bin/pip" ]]; then
  "$python" -m venv "$place/tools"
fi
"$place/tools/bin/pip" install --quiet --disable-pip-version-check 'maturin>=1.9.4,<2'

if [[ -n "${KITH_AS_TESTED:-}" ]]; then
  export CARGO="$PWD/scripts/cargo-as-tested.sh"
fi
rm -rf "$place/venv" "$place/wheels"
CARGO_TARGET_DIR="$target" "$place/tools/bin/maturin" build --manifest-path clients/python/Cargo.toml \
  --out "$place/wheels" --compatibility linux --locked
"$python" -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet --disable-pip-version-check "$place"/wheels/kith-*.whl \
  --requirement clients/python/tests/requirements.txt
