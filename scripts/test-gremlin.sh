#!/usr/bin/env bash
# Asks a cluster by stock Gremlin drivers: the pages of clients/gremlin, and TinkerPop's own scenarios, whose runner is looked for in
# KITH_GREMLIN_SUITE or beside the project. A driver whose language is not installed is left out with a message.
# The cluster runs the `kith` of KITH_BIN or, without one, of this tree.
#   usage: test-gremlin.sh [pages|suite]
set -euo pipefail
cd "$(dirname "$0")/.."
target="$(realpath -m "${CARGO_TARGET_DIR:-target}")"
what=${1:-all}
suite=${KITH_GREMLIN_SUITE:-../shared/gremlin-suite}

if [[ -z "${KITH_BIN:-}" ]]; then
  ${CARGO:-cargo} build --bin kith
  KITH_BIN="$target/debug/kith"
fi
kith="$(realpath "$KITH_BIN")"
work=$(mktemp -d)
# The toy graphs are written edge by edge, which waits for the disk thousands of times. This is no test of the disk.
data=$(mktemp -d -p /dev/shm 2>/dev/null || mktemp -d)
built="$target/gremlin"

# The cluster ends when its input does: with this script, however that ends.
mkfifo "$work/input"
"$kith" dev --groups 2 --nodes 1 --port 0 --http-port 0 --resp-port 0 --gremlin-port 0 --data "$data" \
  --ready-file "$work/ready.json" --end-with-stdin <"$work/input" >"$work/log" 2>&1 &
cluster=$!
exec 9>"$work/input"
finish() {
  exec 9>&-
  wait "$cluster" 2>/dev/null || true
  rm -rf "$work" "$data"
}
trap finish EXIT
trap 'exit 130' INT TERM
for _ in $(seq 1 600); do
  [[ -f "$work/ready.json" ]] && break
  kill -0 "$cluster" 2>/dev/null || { cat "$work/log" >&2; exit 1; }
  sleep 0.1
done
address=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["gremlin"])' "$work/ready.json")
host=${address%:*} port=${address##*:}

echo 'open = true' >"$work/open.toml"
open_graph() { "$kith" schema apply "$work/open.toml" --graph "$1" --ready-file "$work/ready.json" >/dev/null; }

jars() { # FOLDER: the libraries that its pom.xml names
  mkdir -p "$built/$1"
  [[ "$built/$1/.whole" -nt "clients/gremlin/$1/pom.xml" ]] && return
  mvn -q -B -f "clients/gremlin/$1/pom.xml" dependency:copy-dependencies -DoutputDirectory="$built/$1" >&2
  touch "$built/$1/.whole"
}

page_javascript() {
  mkdir -p "$built/javascript"
  cp clients/gremlin/javascript/* "$built/javascript/"
  (cd "$built/javascript" && npm install --silent --no-audit --no-fund >&2 && node page.mjs "ws://$address/gremlin" page)
}

page_java() {
  jars java
  java -cp "$built/java/*" clients/gremlin/java/Page.java "$host" "$port" page
}

page_console() {
  jars console
  sed 's/alias g GRAPH/alias g page/' clients/gremlin/console/page.groovy >"$work/page.groovy"
  cat >"$work/remote.yaml" <<YAML
hosts: [$host]
port: $port
serializer: { className: org.apache.tinkerpop.gremlin.util.ser.GraphBinaryMessageSerializerV1, config: { serializeResultToString: true }}
YAML
  (cd "$work" && java -Djava.util.prefs.userRoot="$work" -cp "$built/console/*" \
    org.apache.tinkerpop.gremlin.console.Console -C <page.groovy >console.txt 2>&1) || true
  # The results of the traversals: what is printed after the first of them was sent.
  sed -n '/^gremlin> :> /,$p' "$work/console.txt" | grep '^==>' >"$work/found.txt" || true
  diff "$work/found.txt" clients/gremlin/console/expected.txt || { cat "$work/console.txt" >&2; return 1; }
  grep -q 'not supported' "$work/console.txt" || { cat "$work/console.txt" >&2; return 1; }
  echo "gremlin-console: the page was answered as expected"
}

pages() {
  open_graph page
  if command -v node >/dev/null && command -v npm >/dev/null; then
    page_javascript
  else
    echo "skipped: gremlin-javascript needs Node.js and npm"
  fi
  if command -v java >/dev/null && command -v mvn >/dev/null; then
    page_java
    page_console
  else
    echo "skipped: the Java driver and the console need Java and Maven"
  fi
}

scenarios() {
  if [[ ! -x "$suite/run.sh" ]]; then
    echo "skipped: there is no runner of TinkerPop's suite in $suite (KITH_GREMLIN_SUITE)"
    return
  fi
  for graph in gmodern gclassic gcrew ggrateful gsink ggraph; do open_graph "$graph"; done
  # Its exit code is 1 if any scenario failed; the shares decide.
  "$suite/run.sh" "$host" "$port" --load "${SUITE_OPTIONS[@]}" >"$work/suite.jsonl" || [[ $? == 1 ]]
  [[ -n "${KITH_GREMLIN_RESULTS:-}" ]] && cp "$work/suite.jsonl" "$KITH_GREMLIN_RESULTS"
  python3 scripts/gremlin-shares.py "$work/suite.jsonl"
}

read -r -a SUITE_OPTIONS <<<"${KITH_GREMLIN_SUITE_OPTIONS:-}"
case $what in
all) pages && scenarios ;;
pages) pages ;;
suite) scenarios ;;
*) echo "usage: test-gremlin.sh [pages|suite]" >&2; exit 2 ;;
esac
