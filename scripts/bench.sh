#!/usr/bin/env bash
# The standard benchmarks, paired, in about 15 minutes on two cores. Prints what it saw and passes no verdict, but
# fails if a query fails or an answer is wrong. docs/benchmarks.md says how to read it and keeps the last results.
#
#   KITH_DATA             the test data; without it only the part on the bundled graph runs
#   KITH_BENCH_QUERIES    members a line against PostgreSQL (600)
#   KITH_BENCH_PAIRS      pairs of each kind: beside swaps, verification and a fetch (20), of large reads and computations (150)
#   KITH_BENCH_BLOCKS     blocks of large reads and computations whose CPU time is read (15)
#   KITH_BENCH_KEYS       rows of the engine against RocksDB (1,000,000)
#   KITH_BENCH_MEMORY_MIB memory of a node whose data is ten times as large (160)
#   KITH_BENCH_ROWS       rows of 1 KiB against MariaDB (1,000,000: some 6 GiB of temporary files)
#   KITH_BENCH_ROUNDS     turns of each rate there (3), and against Redis (5)
#   KITH_BENCH_SECONDS    seconds for each setting at each rate (18)
#   KITH_BENCH_RESP_ROWS, KITH_BENCH_RESP_REQUESTS  keys (100,000) and single reads (200,000) against Redis
set -euo pipefail
cd "$(dirname "$0")/.."

cargo=${CARGO:-cargo}
target=${CARGO_TARGET_DIR:-target}
data=${KITH_DATA:-$PWD/../shared/data}
scripts/packages.sh --bench

section() { printf '\n== %s\n' "$*"; }

section "machine"
grep -m1 'model name' /proc/cpuinfo | sed 's/.*: //'
echo "$(nproc) cores, load $(cut -d' ' -f1-3 /proc/loadavg), $($cargo --version)"

"$cargo" build --release --bin kith
kith="$target/release/kith"

if [[ -d $data/social ]]; then
  export KITH_DATA=$data
  section "build of kith-metro, 7.0 M edges, for 24 and 1,536 partitions"
  "$kith" bench build --edges "$data/social/kith-metro/edges.csv.gz" --rounds 3
  section "second degree: Kith and PostgreSQL; warm network cache"
  "$cargo" bench -q -p kith --bench system second_degree
  section "fan-out: one slow node; rising load"
  "$cargo" bench -q -p kith --bench system fan_out
else
  echo "skipped: $data/social is absent; set KITH_DATA to the test data"
fi

section "reads beside swaps, verification and a fetch"
"$cargo" bench -q -p kith --bench system calm

section "large reads beside a slow node"
"$cargo" bench -q -p kith --bench system tail

section "5,000 keys streamed, and waited for"
"$cargo" bench -q -p kith --bench system streams

section "5,000 keys of 1 KiB: Kith, a bare gather and send, memcached; CPU a key"
"$cargo" bench -q -p kith --bench system large_reads

section "read compute: on nodes and at the client"
"$cargo" bench -q -p kith --bench system read_compute

section "a store ten times as large as memory"
"$cargo" bench -q -p kith --bench system memory

section "keys and values: Kith and MariaDB with MyISAM, built and read"
"$cargo" bench -q -p kith --bench system rival

section "Redis clients: Kith and a Redis server"
"$cargo" bench -q -p kith --bench system resp

section "the live graph: MariaDB, a get, the same graph loaded; beside reads; a killed leader"
"$cargo" bench -q -p kith --bench system live

section "Gremlin: Kith's own query; Gremlin Server and JanusGraph"
"$cargo" bench -q -p kith --bench system gremlin

rivals() { "$cargo" run -q --release --manifest-path benches/rivals/Cargo.toml --target-dir "$target" --bin "$1"; }

section "the engine alone: Kith and RocksDB's PlainTable"
rivals engine

section "decoding of records: Kith and Avro"
rivals records

section "the 40/40/20 mix on kith-village, policies in turn"
work=$(mktemp -d)
mkfifo "$work/stdin"
"$kith" dev --port 0 --http-port 0 --resp-port 0 --gremlin-port 0 --end-with-stdin --processes --groups 2 --nodes 3 --data "$work/data" --ready-file "$work/ready.json" \
  <"$work/stdin" 2>"$work/log" &
dev=$!
# The cluster ends when its standard input does, however this script ends.
exec 9>"$work/stdin"
trap 'exec 9>&-; wait "$dev" || true; rm -rf "$work"' EXIT
for _ in $(seq 300); do [[ -f $work/ready.json ]] && break; sleep 0.1; done
village=testdata/kith-village
"$kith" load graph "$village/edges.csv.gz" --entities "$village/entities.csv.gz" --graph village --ready-file "$work/ready.json"
"$kith" bench graph -g village --ready-file "$work/ready.json" --rates 100,300 --seconds 6 \
  --policies one-group,n-groups,set-cover,round-robin --fan-out max

section "what this client and one node sustain (nothing is written)"
"$kith" bench calibrate -g village --ready-file "$work/ready.json" --step-seconds 0.7 ||
  echo "(a limit that is not to be trusted fails no benchmark)"
