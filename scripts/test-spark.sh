#!/usr/bin/env bash
# Builds versions with Spark and compares them with `kith store build`. Installs PySpark (450 MB) into target/spark-venv,
# and Java where there is none; so it is no part of `make test`.
set -euo pipefail
cd "$(dirname "$0")/.."
target="${CARGO_TARGET_DIR:-target}"
venv="${KITH_SPARK_VENV:-$target/spark-venv}"

if ! command -v java >/dev/null 2>&1; then
  echo "installing Java 17"
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends openjdk-17-jre-headless >/dev/null
fi
if [[ ! -x "$venv/bin/python" ]]; then
  python3 -m venv "$venv"
fi
"$venv/bin/python" -m pip install --quiet --requirement spark/requirements.txt

${CARGO:-cargo} build --bin kith
${CARGO:-cargo} build -p kith-files --example s3_server
KITH="$(realpath "$target/debug/kith")" KITH_S3_SERVER="$(realpath "$target/debug/examples/s3_server")" PYTHONPATH=spark PYSPARK_PYTHON="$(realpath -s "$venv/bin/python")" \
  SPARK_LOCAL_IP=127.0.0.1 "$venv/bin/python" spark/test_kith_spark.py
