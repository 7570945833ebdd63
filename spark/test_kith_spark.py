"""A version built by Spark equals what `kith store build` makes of the same rows, to the byte of its manifest and packs.

Tasks fail, are killed and run twice on the way. Run by scripts/test-spark.sh, which says where `kith` is.
"""

import filecmp
import json
import os
import subprocess
import sys
import tempfile
import textwrap
import unittest
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

import kith_spark

KITH = os.environ["KITH"]
MASTER = os.environ.get("KITH_SPARK_MASTER", "local-cluster[2,1,1024]")
PARTITIONS = 7
ROWS = 20_000

# Stands for `kith` in tasks. The first attempt at a partition is killed half-way, at another it is cut off from its input
# as by the death of its task, another runs twice. What Spark tries again is left alone.
FAULTY = """\
    #!/usr/bin/env bash
    set -euo pipefail
    [[ "$*" == *build-partition* ]] || exec {kith} "$@"
    partition="${{@: -1}}"
    mkdir "{marks}/$partition" 2>/dev/null || exec {kith} "$@"
    case $((partition % 4)) in
      0) mkfifo "{marks}/pipe-$partition"
         exec 3<>"{marks}/pipe-$partition"
         head -c 4000 >&3
         {kith} "$@" <&3 & kith=$!
         until compgen -G "{parts}/.partition-*" >/dev/null; do sleep 0.05; done
         kill -9 "$kith"; exit 137 ;;
      1) head -c 4000 | head -n -1 | {kith} "$@" && echo "a cut input was taken" >"{marks}/wrong" ; exit 1 ;;
      2) cat >"{marks}/input-$partition"
         {kith} "$@" <"{marks}/input-$partition"
         exec {kith} "$@" <"{marks}/input-$partition" ;;
      *) exec {kith} "$@" ;;
    esac
"""


class Build(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        builder = SparkSession.builder.master(MASTER).appName("kith").config("spark.ui.enabled", "false")
        builder = builder.config("spark.task.maxFailures", "4").config("spark.sql.shuffle.partitions", "4")
        builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
        cls.spark = builder.getOrCreate()
        cls.spark.sparkContext.setLogLevel("OFF")

    @classmethod
    def tearDownClass(cls):
        cls.spark.stop()

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def assert_same(self, frame, *, kith=KITH, rows=None, **told):
        """Builds `frame` with Spark and, as JSON lines or from `rows`, with `kith store build`."""
        told = {"version": 3, "partitions": PARTITIONS, **told}
        reply = kith_spark.build(frame, "people", out=str(self.folder / "spark"), kith=kith, **told)
        if rows is None:
            rows = self.folder / "rows"
            frame.write.json(str(rows), ignoreNullFields=False)
        flags = ["--version", "3", "--partitions", str(PARTITIONS), "--out", str(self.folder / "local")]
        for name in ("key", "value", "schema"):
            flags += [f"--{name}", told[name]] if name in told else []
        command = [KITH, "store", "build", "people", str(rows), *flags, "-o", "json"]
        built = subprocess.run(command, capture_output=True, text=True)
        self.assertEqual(built.returncode, 0, built.stderr)
        local = json.loads(built.stdout.splitlines()[-1])
        self.assertEqual(reply["manifest_hash"], local["manifest_hash"])
        self.assertEqual((reply["records"], reply["bytes"]), (local["records"], local["bytes"]))
        names = sorted(os.listdir(self.folder / "local" / "3"))
        self.assertEqual(names, sorted(os.listdir(self.folder / "spark" / "3")))
        same = filecmp.cmpfiles(self.folder / "local" / "3", self.folder / "spark" / "3", names, shallow=False)
        self.assertEqual((sorted(same[0]), same[1], same[2]), (names, [], []))
        left = [name for name in os.listdir(self.folder / "spark") if name not in ("3", ".lock")]
        self.assertEqual((left, (self.folder / "parts").exists()), ([], False), "what tasks built is gone")
        return reply

    def people(self):
        key = f.concat(f.lit("member:"), f.col("id").cast("string"))
        value = f.concat(f.lit('né "'), f.sha2(f.col("id").cast("string"), 256), f.lit('"\n'))
        return self.spark.range(ROWS).select(key.alias("key"), value.alias("value"))

    def test_text(self):
        self.assertEqual(self.assert_same(self.people())["records"], ROWS)

    def test_tasks_that_are_killed_cut_off_or_run_twice_change_nothing(self):
        marks = self.folder / "marks"
        marks.mkdir()
        parts = self.folder / "parts"
        faulty = self.folder / "kith"
        faulty.write_text(textwrap.dedent(FAULTY).format(kith=KITH, marks=marks, parts=parts))
        faulty.chmod(0o755)
        self.assert_same(self.people(), kith=str(faulty), parts=str(parts))
        self.assertFalse((marks / "wrong").exists(), "rows that were cut off are refused")
        tried = {name for name in os.listdir(marks) if name.isdigit()}
        self.assertEqual(tried, {str(partition) for partition in range(PARTITIONS)})

    def test_few_rows_leave_partitions_empty(self):
        self.assert_same(self.people().where(f.col("key").isin("member:1", "member:2")))

    def test_ids_and_bytes(self):
        frame = self.spark.range(5_000).select(
            (f.col("id") * 7_919).alias("key"), f.encode(f.sha2(f.col("id").cast("string"), 256), "UTF-8").alias("value")
        )
        self.assert_same(frame, key="id", value="bytes")

    def test_json(self):
        frame = self.people().select("key", f.concat(f.lit('{"a": [1,\n 2.50], "b": "'), "key", f.lit('"}')).alias("value"))
        rows = self.folder / "rows.json"
        lines = [f'{{"key":"{row.key}","value":{row.value}}}'.replace("\n", " ") for row in frame.collect()]
        rows.write_text("\n".join(lines))
        self.assert_same(frame, value="json", rows=rows)

    def test_records(self):
        schema = self.folder / "schema.json"
        fields = [{"name": "name", "type": "text"}, {"name": "rank", "type": "i64", "nullable": True}]
        schema.write_text(json.dumps({"fields": fields}))
        rank = f.when(f.col("id") % 2 == 0, f.col("id"))
        frame = self.spark.range(3_000).select(
            f.col("id").alias("member"), f.sha2(f.col("id").cast("string"), 256).alias("name"), rank.alias("rank")
        )
        rows = self.folder / "rows"
        pairs = frame.select(f.col("member").alias("key"), f.struct("name", "rank").alias("value"))
        pairs.write.json(str(rows), ignoreNullFields=False)
        self.assert_same(frame, key="id", value="record", key_column="member", schema=str(schema), rows=rows)

    def test_a_key_that_comes_twice_fails_with_its_name(self):
        one = self.people().where(f.col("key") == "member:1")
        twice = one.union(one)
        with self.assertRaisesRegex(Exception, "duplicate_key"):
            kith_spark.build(twice, "people", version=3, partitions=PARTITIONS, out=str(self.folder), kith=KITH)
        self.assertFalse((self.folder / "3").exists())


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v"])
