#!/usr/bin/env bash
# The one list of system packages. Does nothing where they are there already.
#   binutils:   objcopy and objdump, for the tarball
#   gcc:        links the binaries, builds zstd and the allocator
#   make, git:  the front door and the tidy test
#   etcd-server, etcd-client: the metadata store of clusters of many machines, for its tests
#   openssl:    the certificates of those tests
#   redis-tools, python3-redis: redis-cli, redis-benchmark and redis-py, for the tests of the RESP endpoint; the server that
#               benchmarks compare with is in redis-tools too
#   prometheus: promtool, which tests the alerting rules
#   sqlite3:    backups of live graphs, as the documents make them
#   python3:    the Python client, its tests and its notebook
#   mariadb-server-core: a database of live graphs, for its tests; a rival of `make bench` too
#   postgresql, memcached, librocksdb-dev: the other rivals of `make bench` (only with --bench)
#   g++, iproute2: the lines of C++ before RocksDB, and `ss`, which counts bytes received (only with --bench)
#   g++:        libFuzzer (only with --fuzz)
set -euo pipefail

missing=()
need() { command -v "$1" >/dev/null 2>&1 || missing+=("$2"); }
need cc gcc
need make make
need objcopy binutils
need git git
need etcd etcd-server
need etcdctl etcd-client
need openssl openssl
need redis-cli redis-tools
need sqlite3 sqlite3
need promtool prometheus
[[ -x /usr/sbin/mariadbd ]] || missing+=(mariadb-server-core)
if ! /usr/bin/python3 -c 'import redis' 2>/dev/null; then
  missing+=(python3-redis)
fi
python3 -c 'import venv, ensurepip' 2>/dev/null || missing+=(python3 python3-venv)
if [[ "${1:-}" == --bench ]] && ! compgen -G '/usr/lib/postgresql/*/bin/postgres' >/dev/null; then
  missing+=(postgresql)
fi
if [[ "${1:-}" == --bench ]]; then
  need memcached memcached
  need g++ g++
  need ss iproute2
  [[ -f /usr/include/rocksdb/db.h ]] || missing+=(librocksdb-dev)
fi
if [[ "${1:-}" == --fuzz ]]; then
  need c++ g++
fi
if ((${#missing[@]} > 0)); then
  echo "installing ${missing[*]}"
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi
if ! command -v cargo >/dev/null 2>&1; then
  echo "error: cargo is missing; install Rust with rustup (the version is in rust-toolchain.toml)" >&2
  exit 1
fi
