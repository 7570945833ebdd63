#!/usr/bin/env bash
# Stands in for Cargo when maturin builds the wheel after `cargo test --workspace`. maturin asks for one package, whose
# dependencies would be built once more, with fewer features. This builds it with the features of the tests instead, which
# saves minutes of CI.
set -euo pipefail
if [[ "${1:-}" == rustc ]]; then
  shift
  set -- build --workspace --tests "$@"
fi
exec cargo "$@"
