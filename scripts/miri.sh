#!/usr/bin/env bash
# Runs the tests of the crates that read and write formats under Miri, which finds undefined behaviour, on a nightly toolchain. The
# engine is not among them: it maps files, which Miri cannot.
#
#   KITH_MIRI_TOOLCHAIN  the toolchain (nightly)
set -euo pipefail
cd "$(dirname "$0")/.."

toolchain=${KITH_MIRI_TOOLCHAIN:-nightly}
if ! cargo "+$toolchain" miri --version >/dev/null 2>&1; then
  echo "error: the toolchain $toolchain has no Miri; install it with: rustup toolchain install $toolchain --component miri,rust-src" >&2
  exit 1
fi
# Property tests run a handful of cases: Miri takes a hundred times as long.
PROPTEST_CASES=${PROPTEST_CASES:-8} MIRIFLAGS="-Zmiri-disable-isolation" \
  cargo "+$toolchain" miri test -p kith-types -p kith-schema -p kith-wire --lib
