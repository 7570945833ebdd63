#!/usr/bin/env bash
# A cluster of 2 groups × 3 nodes with kith-village in it, a few queries with their fan-out.
# On a terminal it goes on serving until Ctrl-C; otherwise it ends after its queries.
set -euo pipefail
cd "$(dirname "$0")/.."

kith=${KITH:-target/demo/kith}
ready=.kith/ready.json
work=$(mktemp -d)
export KITH_ROUTER=

# The cluster ends when its input does: with this script, however that ends.
mkfifo "$work/input"
"$kith" dev --groups 2 --nodes 3 --data "$work/data" --ready-file "$ready" --end-with-stdin <"$work/input" &
cluster=$!
exec 9>"$work/input"
finish() {
  exec 9>&-
  wait "$cluster" 2>/dev/null || true
  rm -rf "$work"
}
trap finish EXIT
trap 'exit 130' INT TERM

for _ in $(seq 1 600); do
  [[ -f $ready ]] && break
  kill -0 "$cluster" 2>/dev/null || exit 1
  sleep 0.1
done
unset KITH_ROUTER

run() {
  printf '\n$ kith %s\n' "$*"
  "$kith" "$@" --ready-file "$ready"
}

run load graph testdata/kith-village/edges.csv.gz --graph village --entities testdata/kith-village/entities.csv.gz
run graph network-size 9043 --graph village --profile
run graph network-size 9043 --graph village --profile --fan-out max --cache bypass
run graph distance 9043 1007 1005 10000 8323 --graph village
run graph common 4005 5386 --graph village --kind school
run graph has-common 4005 5386 --graph village --profile
run graph suggest 9043 --graph village -k 5

cat <<'TEXT'

That was a graph of 5,000 members on six nodes. What to try next:

  kith graph path 9043 1005 --graph village                   a shortest path
  kith explain network-size 9043 --graph village --fan-out max   who would be asked
  kith cluster status                                          the nodes
  kith load graph YOUR.csv --graph mine                        your own edge list: src,dst
  make build                                                   the fast and complete program, target/release/kith

TEXT

if [[ -t 0 && -t 1 ]]; then
  echo "\`kith\` is $kith; from this directory it finds the cluster, which serves until Ctrl-C."
  wait "$cluster"
else
  echo "This cluster ends now; \`$kith dev --detach\` starts one that stays."
fi
