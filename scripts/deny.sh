#!/usr/bin/env bash
# What `deny.toml` allows of dependencies: `scripts/deny.sh` asks all of it, `scripts/deny.sh --if-installed` what needs no network, and
# nothing where cargo-deny is missing. Installing it takes minutes, so nothing here does.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! command -v cargo-deny >/dev/null 2>&1; then
  help="cargo install cargo-deny --locked"
  if [[ "${1:-}" == --if-installed ]]; then
    echo "skipped: cargo-deny is not installed ($help)"
    exit 0
  fi
  echo "error: cargo-deny is not installed; install it with: $help" >&2
  exit 1
fi
if [[ "${1:-}" == --if-installed ]]; then
  cargo deny --locked check bans licenses sources
else
  cargo deny --locked check
fi
