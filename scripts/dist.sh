#!/usr/bin/env bash
# Makes the tarball that is installed from: target/dist/kith-VERSION-x86_64-linux.tar.gz, with its checksum beside it, and the
# line tables of its binary in a second one, kith-VERSION-x86_64-linux-debug.tar.gz.
#   KITH_DIST_PROFILE: the profile of Cargo that the binary is built with: `release` unless it says otherwise, `dist` for one
#   that is optimised across crates, `dev` for a quick one that only shows that the tarball is whole
#   KITH_BIN: a binary that is there already, to be packed in place of one that is built now
set -euo pipefail
cd "$(dirname "$0")/.."

profile=${KITH_DIST_PROFILE:-release}
target=${CARGO_TARGET_DIR:-target}
[[ $(uname -sm) == "Linux x86_64" ]] || { echo "error: the tarball is for Linux on x86-64; build on such a machine" >&2; exit 1; }
for tool in objcopy objdump python3; do
  command -v "$tool" >/dev/null || { echo "error: $tool is missing; scripts/packages.sh installs it" >&2; exit 1; }
done

built=${KITH_BIN:-}
if [[ -z $built ]]; then
  cargo build --locked --profile "$profile" --bin kith
  built=$target/$([[ $profile == dev ]] && echo debug || echo "$profile")/kith
fi
version=$("$built" --version | cut -d' ' -f2)
name=kith-$version-x86_64-linux
out=$target/dist
folder=$out/$name
rm -rf "$folder" "$folder".tar.gz "$folder"-debug.tar.gz
mkdir -p "$folder"/{bin,scripts,testdata,share/man/man1,share/bash-completion/completions,share/zsh/site-functions} \
  "$folder"/{share/fish/vendor_completions.d,lib/systemd/system,lib/sysusers.d}

cp "$built" "$folder/bin/kith"
scripts/split-debug.sh "$folder/bin/kith"
kith=$folder/bin/kith
"$kith" man "$folder/share/man/man1"
"$kith" completions bash >"$folder/share/bash-completion/completions/kith"
"$kith" completions zsh >"$folder/share/zsh/site-functions/_kith"
"$kith" completions fish >"$folder/share/fish/vendor_completions.d/kith.fish"
cp packaging/systemd/*.service "$folder/lib/systemd/system/"
cp packaging/sysusers.d/kith.conf "$folder/lib/sysusers.d/"
# What the README's examples ask, and what it points to.
cp -r testdata/kith-village testdata/profiles "$folder/testdata/"
cp scripts/demo.sh "$folder/scripts/"
cp -r docs README.md CHANGELOG.md LICENSE "$folder/"
scripts/licences.py kith x86_64-unknown-linux-gnu >"$folder/LICENCES-OF-DEPENDENCIES.txt"
glibc=$(objdump -T "$kith" | grep -o 'GLIBC_[0-9.]*' | sort -Vu | tail -1)
sed "s/@GLIBC@/${glibc#GLIBC_}/; s/@VERSION@/$version/" packaging/INSTALL.md >"$folder/INSTALL.md"

# The same tree gives the same bytes: names in order, one time, nobody's ids.
time=$(git log -1 --format=%ct 2>/dev/null || echo 0)
pack() {
  tar -C "$out" --sort=name --mtime="@$time" --owner=0 --group=0 --numeric-owner --mode=u+rw,go+r-w -cf - "${@:2}" \
    | gzip -n >"$out/$1"
}
pack "$name-debug.tar.gz" "$name/bin/kith.debug"
mv "$folder/bin/kith.debug" "$out/$name.debug"
(cd "$folder" && find . -type f ! -name SHA256SUMS -printf '%P\n' | LC_ALL=C sort | xargs -d '\n' sha256sum >SHA256SUMS)
pack "$name.tar.gz" "$name"
rm -rf "$folder" "$out/$name.debug"
(cd "$out" && sha256sum "$name.tar.gz" "$name-debug.tar.gz" >SHA256SUMS)
echo "$out/$name.tar.gz: $(stat -c %s "$out/$name.tar.gz" | numfmt --to=iec), ${KITH_BIN:-profile $profile}"
