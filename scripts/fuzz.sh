#!/usr/bin/env bash
# Fuzzes decoders, a minute each, one after another: `scripts/fuzz.sh [TARGET…]`; without names all of them. docs/testing.md says
# what they check and what to do with what they find.
#
#   KITH_FUZZ_SECONDS  for each target (60)
#   KITH_FUZZ_CORPUS   where inputs that reach new code are kept from run to run (fuzz/corpus)
set -euo pipefail
cd "$(dirname "$0")/.."

cargo=${CARGO:-cargo}
seconds=${KITH_FUZZ_SECONDS:-60}
corpus=$(realpath -m "${KITH_FUZZ_CORPUS:-fuzz/corpus}")
target_dir=$(realpath -m "${CARGO_TARGET_DIR:-fuzz/target}")
host=$(rustc -vV | sed -n 's/^host: //p')
scripts/packages.sh --fuzz

targets=("$@")
if ((${#targets[@]} == 0)); then
  mapfile -t targets < <(ls fuzz/seeds)
fi
for target in "${targets[@]}"; do
  if [[ ! -d fuzz/seeds/$target ]]; then
    echo "error: $target is no target; the targets are: $(ls fuzz/seeds | paste -sd ' ')" >&2
    exit 2
  fi
done

# What cargo-fuzz passes to a nightly compiler, without the address sanitizer: a stable compiler knows these. With --target they are
# not for build scripts, which have no libFuzzer to be linked with.
coverage="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters"
coverage+=" -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares"
RUSTFLAGS="$coverage" CARGO_TARGET_DIR=$target_dir \
  "$cargo" build --locked --release --manifest-path fuzz/Cargo.toml --target "$host"
fuzzer="$target_dir/$host/release/kith-fuzz"

failed=()
for target in "${targets[@]}"; do
  found="$corpus/$target"
  artifacts="$target_dir/found/$target"
  mkdir -p "$found" "$artifacts"
  log="$artifacts/log"
  # Bus errors are the engine's: it maps files. Leaks are not looked for without the address sanitizer.
  if KITH_FUZZ_TARGET=$target nice "$fuzzer" "$found" "fuzz/seeds/$target" -artifact_prefix="$artifacts/" \
    -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -max_len=16384 -handle_bus=0 -print_final_stats=1 >"$log" 2>&1; then
    runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
    edges=$(sed -n 's/.* cov: \([0-9]*\) .*/\1/p' "$log" | tail -1)
    printf '%-12s %10s inputs, %6s edges\n' "$target" "$runs" "$edges"
  else
    failed+=("$target")
    printf '%-12s FAILED\n' "$target"
    grep -aE "panicked at|^assertion|^ *(left|right):|ERROR: libFuzzer|exceeds what|Test unit written" -A1 "$log" | head -20
  fi
done
if ((${#failed[@]} > 0)); then
  echo "error: ${#failed[@]} of ${#targets[@]} targets failed: ${failed[*]}; logs and inputs are in $target_dir/found" >&2
  exit 1
fi
