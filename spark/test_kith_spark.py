"""A version built by Spark equals what `kith store build` makes of the same rows, to the byte of its manifest and packs: in a
folder, and in a bucket of a real S3 server.

Tasks fail, are killed and run twice on the way. Run by scripts/test-spark.sh, which says where `kith` and the server are.
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
S3_SERVER = os.environ["KITH_S3_SERVER"]
MASTER = os.environ.get("KITH_SPARK_MASTER", "local-cluster[2,1,1024]")
PARTITIONS = 7
ROWS = 20_000

# Stands for `kith` in tasks. The first attempt at a partition is killed half-way, at another it is cut off from its input
# as by the death of its task, another runs twice, and of the last the task is lost when all is done. What Spark tries again is left
# alone.
FAULTY = """\
    #!/usr/bin/env bash
    set -euo pipefail
    [[ "$*" == *build-partition* ]] || exec {kith} "$@"
    partition="${{@: -1}}"
    mkdir "{marks}/$partition" 2>/dev/null || exec {kith} "$@"
    export TMPDIR="{marks}/tmp-$partition"
    mkdir "$TMPDIR"
    case $((partition % 4)) in
      0) mkfifo "{marks}/pipe-$partition"
         exec 3<>"{marks}/pipe-$partition"
         head -c 4000 >&3
         {kith} "$@" <&3 & kith=$!
         until compgen -G "{begun}/.partition-*" >/dev/null; do sleep 0.05; done
         kill -9 "$kith"; exit 137 ;;
      1) head -c 4000 | head -n -1 | {kith} "$@" && echo "a cut input was taken" >"{marks}/wrong" ; exit 1 ;;
      2) cat >"{marks}/input-$partition"
         {kith} "$@" <"{marks}/input-$partition"
         exec {kith} "$@" <"{marks}/input-$partition" ;;
      *) {kith} "$@" && exit 137 ;;
    esac
"""


class Build(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        # Before the driver starts: executors have its environment.
        cls.server = subprocess.Popen([S3_SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        ready = json.loads(cls.server.stdout.readline())
        cls.bucket = Path(ready["bucket"])
        os.environ.update(ready["env"])
        builder = SparkSession.builder.master(MASTER).appName("kith").config("spark.ui.enabled", "false")
        builder = builder.config("spark.task.maxFailures", "4").config("spark.sql.shuffle.partitions", "4")
        builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
        cls.spark = builder.getOrCreate()
        cls.spark.sparkContext.setLogLevel("OFF")

    @classmethod
    def tearDownClass(cls):
        cls.spark.stop()
        cls.server.communicate()

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def assert_same(self, frame, *, kith=KITH, rows=None, out=None, **options):
        """Builds `frame` with Spark and, as JSON lines or from `rows`, with `kith store build`. `out`: a place in the bucket."""
        options = {"version": 3, "partitions": PARTITIONS, **options}
        built_to = self.folder / "spark" if out is None else self.bucket / out
        place = str(built_to) if out is None else f"s3://bucket/{out}"
        reply = kith_spark.build(frame, "people", out=place, kith=kith, **options)
        self.assertEqual(reply["folder"], f"{place}/3")
        if rows is None:
            rows = self.folder / "rows"
            frame.write.json(str(rows), ignoreNullFields=False)
        flags = ["--version", "3", "--partitions", str(PARTITIONS), "--out", str(self.folder / "local")]
        for name in ("key", "value", "schema"):
            flags += [f"--{name}", options[name]] if name in options else []
        command = [KITH, "store", "build", "people", str(rows), *flags, "-o", "json"]
        built = subprocess.run(command, capture_output=True, text=True)
        self.assertEqual(built.returncode, 0, built.stderr)
        local = json.loads(built.stdout.splitlines()[-1])
        self.assertEqual(reply["manifest_hash"], local["manifest_hash"])
        self.assertEqual((reply["records"], reply["bytes"]), (local["records"], local["bytes"]))
        names = sorted(os.listdir(self.folder / "local" / "3"))
        # In a bucket, which build has the number.
        self.assertEqual(names, sorted(set(os.listdir(built_to / "3")) - {".build"}))
        same = filecmp.cmpfiles(self.folder / "local" / "3", built_to / "3", names, shallow=False)
        self.assertEqual((sorted(same[0]), same[1], same[2]), (names, [], []))
        # Empty folders are nothing in a bucket.
        others = [name for name in os.listdir(built_to) if name not in ("3", ".lock")]
        left = [name for name in others if out is None or any(path.is_file() for path in (built_to / name).rglob("*"))]
        self.assertEqual((left, (self.folder / "parts").exists()), ([], False), "what tasks built is gone")
        return reply

    def people(self):
        key = f.concat(f.lit("member:"), f.col("id").cast("string"))
        value = f.concat(f.lit('né "'), f.sha2(f.col("id").cast("string"), 256), f.lit('"\n'))
        return self.spark.range(ROWS).select(key.alias("key"), value.alias("value"))

    def test_text(self):
        self.assertEqual(self.assert_same(self.people())["records"], ROWS)

    def test_tasks_that_are_killed_cut_off_or_run_twice_change_nothing(self):
        parts = str(self.folder / "parts")
        self.assert_same_under_faults(parts, parts=parts)

    def test_an_object_store_under_the_same_faults(self):
        here = set(os.listdir("."))
        self.assert_same_under_faults("$TMPDIR/.tmp*", out="spark/people")
        self.assertEqual(set(os.listdir(".")) - here, set(), "nothing is written to a folder that is called so")

    def assert_same_under_faults(self, begun, **options):
        marks = self.folder / "marks"
        marks.mkdir()
        faulty = self.folder / "kith"
        faulty.write_text(textwrap.dedent(FAULTY).format(kith=KITH, marks=marks, begun=begun))
        faulty.chmod(0o755)
        self.assert_same(self.people(), kith=str(faulty), **options)
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
        # Other tasks of the build may have gone on for a while.
        left = [name for name in os.listdir(self.folder) if not name.startswith(".parts-people-3-")]
        self.assertEqual(left, [], "no version, nor anything else that could be taken for one")

    def test_places_that_kith_does_not_write_to_are_refused_before_any_task(self):
        for place in ("s3a://bucket/people", "hdfs://host/people"):
            with self.assertRaisesRegex(ValueError, f"{place.split(':')[0]}:// is not known"):
                kith_spark.build(self.people(), "people", version=3, partitions=PARTITIONS, out=place, kith=KITH)
        with self.assertRaisesRegex(ValueError, "write s3://"):
            kith_spark.build(self.people(), "people", version=3, partitions=PARTITIONS, out="s3n://b/x", kith=KITH)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v"])
