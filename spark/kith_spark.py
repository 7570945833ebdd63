"""Builds a version of a Kith store with Spark: a DataFrame in, a version out that `kith store push` takes.

Spark moves and sorts rows; Kith alone writes its format: each task pipes the rows of one partition into
`kith store build-partition`, and the driver joins what they built with `kith store assemble`. A task that is killed leaves
nothing that counts, one that runs twice (a retry, a speculative copy) leaves the same, so the version is, to the byte, what
`kith store build` makes of the same rows.

`out` and `parts` are folders that the driver and all executors see under the same path, or places in an object store
(`s3://BUCKET/PREFIX`, `gs://`, `az://`): there executors upload what they build, and the driver joins it without room for it on
its disk. Driver and executors then have the keys in their environment (docs/operating/object-stores.md): for executors,
`spark.executorEnv.AWS_ACCESS_KEY_ID` and the like. Every executor has the `kith` binary and the Python package `xxhash`.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import uuid

import xxhash
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

# Lines that a task holds before it writes them to the pipe.
PIPE_LINES = 1_000
# What `kith` writes to beside folders.
SCHEMES = ("s3", "gs", "az", "file")
_MASK = (1 << 64) - 1


class BuildFailed(Exception):
    """What `kith` said when it refused rows or could not write."""


def _mix(x: int) -> int:
    """MurmurHash3's 64-bit finalizer: the hash of an id (docs/formats/partition-function.md)."""
    x ^= x >> 33
    x = x * 0xFF51AFD7ED558CCD & _MASK
    x ^= x >> 33
    x = x * 0xC4CEB9FE1A85EC53 & _MASK
    return x ^ x >> 33


def key_bytes(key, key_type: str) -> bytes:
    """The bytes of a key, as Kith stores it."""
    if key is None:
        raise ValueError("a row has no key")
    if key_type == "id":
        return int(key).to_bytes(8, "little")
    return key.encode() if key_type == "string" else bytes(key)


def partition_of(key: bytes, key_type: str, partitions: int) -> int:
    """Which partition a key is in."""
    if key_type == "id":
        digest = _mix(int.from_bytes(key, "little"))
    else:
        digest = xxhash.xxh3_64_intdigest(key)
    return digest * partitions >> 64


def position_of(key: bytes) -> int:
    """Where a key is inside its partition: the order that Kith writes in."""
    return xxhash.xxh3_64_intdigest(key, seed=1)


def build(
    frame: DataFrame,
    store: str,
    *,
    version: int,
    partitions: int,
    out: str,
    key: str = "string",
    value: str = "text",
    key_column: str = "key",
    value_column: str = "value",
    schema: str | None = None,
    parts: str | None = None,
    kith: str = "kith",
    flags: tuple[str, ...] = (),
) -> dict:
    """Builds version `version` of `store` into `out`, a folder or URL, and returns what `kith store assemble` says of it.

    `partitions` is the cluster's number (`kith cluster status`). `key` and `value` are the store's types; a store of
    records takes all columns beside the key, and needs the file of its `schema`. `parts` (default: hidden in `out`, under a name of
    this build's own) holds what tasks built until the version is whole; then it is removed. After a failure, `parts` that were named stay.
    `flags` go to `kith store build-partition`, as ("--duplicates", "first").
    Raises `ValueError` if `out` or `parts` is no place that Kith writes to, `BuildFailed`, or what Spark raises when a task fails for
    good.
    """
    for place in (out, parts or out):
        _check_place(place)
    frame.sparkSession.sparkContext.addPyFile(__file__)
    is_ours = parts is None
    # Tasks of a build that failed may go on for a while: they write where no other build looks.
    parts = parts or f"{out.rstrip('/')}/.parts-{store}-{version}-{uuid.uuid4().hex[:12]}"
    options = ["--version", str(version), "--partitions", str(partitions), "--key", key, "--value", value]
    if schema is not None:
        options += ["--schema", schema]
    task = [kith, "store", "build-partition", store, "-", "--format", "json", "--out", parts, *options, *flags]
    lines = frame.select(f.col(key_column).alias("key"), _line(frame, key_column, value_column, value).alias("line"))

    def keyed(row):
        stored = key_bytes(row.key, key)
        return (partition_of(stored, key, partitions), position_of(stored), stored), row.line

    def write(partition, rows):
        yield _pipe([*task, "--partition", str(partition)], (line for _, line in rows))

    discard = [kith, "store", "discard-parts", parts, "-o", "json"]
    try:
        sorted_rows = lines.rdd.map(keyed).repartitionAndSortWithinPartitions(partitions, lambda key: key[0])
        sorted_rows.mapPartitionsWithIndex(write).collect()
        if not _is_url(out):
            os.makedirs(out, exist_ok=True)
        reply = _run([kith, "store", "assemble", store, parts, "--out", out, "-o", "json", *options])
    except BaseException:
        if is_ours:
            # The error of the build is the one to report.
            subprocess.run(discard, capture_output=True)
        raise
    _run(discard)
    return reply


def _is_url(place: str) -> bool:
    return "://" in place


def _check_place(place: str) -> None:
    """Refuses what would fail in every task, before the first row is moved."""
    scheme = place.split("://", 1)[0]
    if _is_url(place) and scheme not in SCHEMES:
        known = ", ".join(f"{known}://" for known in SCHEMES)
        hint = "; write s3:// for s3a://" if scheme in ("s3a", "s3n") else ""
        raise ValueError(f"{place!r}: {scheme}:// is not known, {known} and paths are{hint}")


def _line(frame: DataFrame, key_column: str, value_column: str, value: str):
    """The row as a line of JSON, with its key and its value. Binary columns become base64, as Kith reads them."""
    key = f.col(key_column).alias("key")
    if value == "json":
        # The value is JSON already; line breaks in it stand between tokens only.
        start = f.to_json(f.struct(key))
        text = f.regexp_replace(f.col(value_column), "[\r\n]", " ")
        return f.concat(start.substr(f.lit(1), f.length(start) - 1), f.lit(',"value":'), text, f.lit("}"))
    if value == "record":
        column = f.struct(*(f.col(name) for name in frame.columns if name != key_column))
    else:
        column = f.col(value_column)
    return f.to_json(f.struct(key, column.alias("value")), {"ignoreNullFields": "false"})


def _pipe(command: list[str], lines) -> int:
    """Runs a task's command with these lines as its input. What it says when it fails is what the task fails with.

    The last line is a full stop: if this process is killed, the command sees its input end without one, and builds nothing.
    """
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, encoding="utf-8"
    )
    try:
        lines = iter(lines)
        while batch := list(itertools.islice(lines, PIPE_LINES)):
            process.stdin.write("\n".join(batch) + "\n")
        process.stdin.write(".\n")
        process.stdin.close()
    except BrokenPipeError:
        pass  # It ended before its input did: below it says why.
    except BaseException:
        process.kill()
        process.wait()
        raise
    said = process.stderr.read()
    if process.wait() != 0:
        raise BuildFailed(f"{' '.join(command)}: exit code {process.returncode}\n{said.strip()}")
    return 1


def _run(command: list[str]) -> dict:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise BuildFailed(f"{' '.join(command)}: exit code {done.returncode}\n{done.stderr.strip()}")
    return json.loads(done.stdout.splitlines()[-1])
