#!/usr/bin/env bash
# Moves what debuggers need (line tables, names of functions) out of a binary into a file beside it, BINARY.debug, and leaves a
# link there: backtraces, gdb and perf find the file as long as it lies in the same folder. Does nothing to a binary that has
# been split.
#   usage: split-debug.sh BINARY
set -euo pipefail
binary=$1
if ! objdump -h "$binary" | grep -q ' \.debug_line\b'; then
  exit 0
fi
# Cargo keeps a second name of the same file: the new one takes the place of this name alone.
split=$(mktemp -d "$(dirname "$binary")/split.XXXXXX")
trap 'rm -rf "$split"' EXIT
name=$(basename "$binary")
objcopy --only-keep-debug --compress-debug-sections=zlib "$binary" "$split/$name.debug"
source=$(realpath "$binary")
(cd "$split" && objcopy --strip-all --add-gnu-debuglink="$name.debug" "$source" "$name")
chmod 644 "$split/$name.debug"
mv -f "$split/$name.debug" "$binary.debug"
mv -f "$split/$name" "$binary"
