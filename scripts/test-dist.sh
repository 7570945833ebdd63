#!/usr/bin/env bash
# Makes the tarball and looks at it as somebody who installs it: unpacked into a folder that becomes the root directory, beside
# the C library and nothing else, it loads a graph and answers the README's first questions; its manual pages, completions,
# units, licences and checksums are there and well formed.
#   KITH_DIST_PROFILE, KITH_BIN: as of scripts/dist.sh. The size of the binary is checked if it is built here as `release` or `dist`.
set -euo pipefail
cd "$(dirname "$0")/.."

profile=${KITH_DIST_PROFILE:-release}
target=${CARGO_TARGET_DIR:-target}
fail() { echo "error: $*" >&2; exit 1; }

scripts/dist.sh
tarball=$(ls "$target"/dist/kith-*-x86_64-linux.tar.gz)
(cd "$target/dist" && sha256sum --quiet -c SHA256SUMS)

root=$(mktemp -d)
cluster=
finish() {
  exec 9>&- || true
  [[ -z $cluster ]] || wait "$cluster" 2>/dev/null || true
  rm -rf "$root"
}
trap finish EXIT
tar -xzf "$tarball" -C "$root" --strip-components=1
(cd "$root" && sha256sum --quiet -c SHA256SUMS)
bytes=$(stat -c %s "$root/bin/kith")
if [[ $profile != dev && -z ${KITH_BIN:-} ]] && ((60000000 < bytes)); then
  fail "the binary has $bytes bytes, and must have at most 60,000,000"
fi

# All that the binary is linked with; the loader among it.
ldd "$root/bin/kith" | grep -o '/[^ ]*' | while read -r library; do
  mkdir -p "$root$(dirname "$library")"
  cp -L "$library" "$root$library"
done
mkdir -p "$root/tmp"
# Another root directory, where the system lets us; `at` is where the folder is then.
at=
if [[ $(id -u) == 0 ]] && chroot "$root" /bin/kith --version >/dev/null 2>&1; then
  enter=(env -i "$(command -v chroot)" "$root")
elif unshare --user --map-root-user chroot "$root" /bin/kith --version >/dev/null 2>&1; then
  enter=(env -i "$(command -v unshare)" --user --map-root-user "$(command -v chroot)" "$root")
else
  echo "neither chroot nor unshare is allowed here: the root directory stays, and the environment is empty"
  enter=(env -i -C "$root")
  at=$root
fi
kith() { "${enter[@]}" "$at/bin/kith" "$@"; }

kith --version | grep -qx 'kith [0-9][0-9.]*' || fail "kith --version"
# The cluster ends when its input does, however this script ends.
mkfifo "$root/input"
"${enter[@]}" "$at/bin/kith" dev --groups 2 --nodes 3 --data "$at/data" --ready-file "$at/ready.json" --end-with-stdin <"$root/input" \
  >"$root/dev.log" 2>&1 &
cluster=$!
exec 9>"$root/input"
for _ in $(seq 1 600); do
  [[ -f $root/ready.json ]] && break
  kill -0 "$cluster" 2>/dev/null || fail "kith dev ended: $(cat "$root/dev.log")"
  sleep 0.1
done
ask() { kith "$@" --graph village --ready-file "$at/ready.json"; }
ask load graph testdata/kith-village/edges.csv.gz --entities testdata/kith-village/entities.csv.gz >/dev/null
ask graph network-size 9043 --profile | grep -q request || fail "graph network-size"
ask graph network-size 9043 --profile --fan-out max --cache bypass >/dev/null
[[ $(ask graph path 9043 10000 -o json) == *'"path":[9043,'*',10000]'* ]] || fail "graph path"
[[ $(ask graph suggest 9043 -k 5 -o json) == *'"suggestions":[['* ]] || fail "graph suggest"
ask explain network-size 9043 --fan-out groups=2 >/dev/null
exec 9>&-
wait "$cluster" || fail "kith dev failed: $(cat "$root/dev.log")"
cluster=

pages=("$root"/share/man/man1/*.1)
[[ -f $root/share/man/man1/kith-store-push.1 ]] || fail "no page kith-store-push(1)"
if command -v mandoc >/dev/null; then
  mandoc -T lint -W error "${pages[@]}"
elif command -v man >/dev/null && command -v groff >/dev/null; then
  for page in "${pages[@]}"; do
    # In a narrow page, a long list of flags leaves a line that cannot be filled, which is no fault of the page.
    problems=$(MANWIDTH=200 man --warnings=mac,syntax -l "$page" 2>&1 >/dev/null)
    [[ -z $problems ]] || fail "$page: $problems"
  done
else
  echo "skipped: neither mandoc nor man is here; the pages are only looked for"
fi

completed=$(bash -c 'source "$1"; COMP_WORDS=(kith store pu) COMP_CWORD=2; _kith kith pu store; echo "${COMPREPLY[*]}"' \
  bash "$root/share/bash-completion/completions/kith")
[[ $completed == push ]] || fail "bash completes \`kith store pu\` to \"$completed\""
for script in share/zsh/site-functions/_kith share/fish/vendor_completions.d/kith.fish; do
  grep -q network-size "$root/$script" || fail "$script"
done

if command -v systemd-analyze >/dev/null; then
  units=$(mktemp -d -p "$root")
  for unit in "$root"/lib/systemd/system/*.service; do
    # The place where INSTALL.md puts the binary is not there yet.
    sed "s|/usr/local/bin/kith|$root/bin/kith|" "$unit" >"$units/$(basename "${unit/@/@0}")"
  done
  # What it only warns of, as a key that it does not know, is a mistake of ours all the same.
  problems=$(systemd-analyze verify --man=no "$units"/*.service 2>&1) || fail "units: $problems"
  [[ $problems != *"$units"* ]] || fail "units: $problems"
else
  echo "skipped: systemd-analyze is not here; the units are only looked for"
  ls "$root"/lib/systemd/system/kith-{node@,router@,database@,dev}.service >/dev/null
fi
grep -q '^tokio 1' "$root/LICENCES-OF-DEPENDENCIES.txt" || fail "LICENCES-OF-DEPENDENCIES.txt"
# The line tables are in their own tarball, and are those of this binary.
tar -xzf "${tarball%.tar.gz}-debug.tar.gz" -C "$root" --strip-components=1
objdump -h "$root/bin/kith.debug" | grep -q '\.debug_line' || fail "kith.debug has no line tables"
identity() { readelf -n "$1" 2>/dev/null | grep 'Build ID'; }
[[ $(identity "$root/bin/kith") == "$(identity "$root/bin/kith.debug")" ]] || fail "kith.debug is of another binary"
echo "the tarball is whole: $tarball, a binary of $((bytes / 1000000)) MB"
