"""Graphs and stores built in Python: the files of the command line, and its errors."""

from __future__ import annotations

import base64
import json
import os
import pickle
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy
import pytest

import kith
from cluster import KITH, TIMEOUT, Cluster

PARTITIONS = 8
SCHEMA = {
    "fields": [
        {"name": "title", "type": "text"},
        {"name": "raw", "type": "bytes"},
        {"name": "score", "type": "f64", "nullable": True},
        {"name": "embed", "type": "vector<f32,3>"},
        {"name": "tags", "type": "list<text>"},
    ]
}


def files(folder: Path) -> dict[str, bytes]:
    """Every file below a folder but locks and marks."""
    found = {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and not path.name.startswith(".")
    }
    assert found
    return found


def by_command(folder: Path, store: str, lines: list[dict[str, Any]], *arguments: str) -> dict[str, Any]:
    """What ``kith store build`` makes of JSON lines, as version 7."""
    rows = folder / f"{store}.jsonl"
    rows.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), encoding="utf-8")
    command = [KITH, "store", "build", store, str(rows), "--out", str(folder / "command"), "--version", "7"]
    command += ["--partitions", str(PARTITIONS), "-o", "json", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT)
    assert done.returncode == 0, done.stderr
    reply: dict[str, Any] = json.loads(done.stdout)
    return reply


def page(id: int) -> dict[str, Any]:
    return {
        "title": f"Pâge {id}",
        "raw": bytes([id % 256, 0, 255]),
        "score": None if id % 3 == 0 else id / 4,
        "embed": numpy.array([0.5, -1, id], dtype=numpy.float32),
        "tags": ["all", str(id % 7)],
    }


def plain(record: dict[str, Any]) -> dict[str, Any]:
    """As JSON lines have it."""
    return record | {"raw": base64.b64encode(record["raw"]).decode(), "embed": record["embed"].tolist()}


def test_records_are_the_files_of_the_command_line(tmp_path: Path) -> None:
    schema = tmp_path / "schema.json"
    schema.write_text(json.dumps(SCHEMA))
    lines = [{"key": id, "value": plain(page(id))} for id in range(5000)]
    report = by_command(tmp_path, "pages", lines, "--key", "id", "--value", "record", "--schema", str(schema))

    rows = ((id, page(id)) for id in reversed(range(5000)))
    built = kith.build_store(
        "pages", tmp_path / "python", rows, key="id", value="record", schema=SCHEMA, partitions=PARTITIONS, version=7
    )
    assert files(tmp_path / "python/7") == files(tmp_path / "command/7")
    assert (built.version, built.records, built.bytes) == (7, report["records"], report["bytes"])
    assert (built.manifest_hash, built.location) == (report["manifest_hash"], str(tmp_path / "python/7"))

    same = kith.build_store(
        "pages", tmp_path / "files", files=tmp_path / "pages.jsonl", key="id", value="record", schema_file=schema,
        partitions=PARTITIONS, version=7,
    )  # fmt: skip
    assert same.manifest_hash == built.manifest_hash
    assert files(tmp_path / "files/7") == files(tmp_path / "command/7")


@pytest.mark.parametrize("value", ["text", "bytes", "json"])
def test_values_are_the_files_of_the_command_line(tmp_path: Path, value: str) -> None:
    values = {
        "text": ("a “text”", "a “text”"),
        "bytes": (b"\x00\xff", base64.b64encode(b"\x00\xff").decode()),
        "json": ({"a": [1, 2.5, None], "b": {"c": "é"}}, {"a": [1, 2.5, None], "b": {"c": "é"}}),
    }
    given, spelled = values[value]
    keys = [f"page:{n}" for n in range(300)] + ["page:7"]
    by_command(
        tmp_path, "words", [{"key": key, "value": spelled} for key in keys], "--value", value, "--duplicates", "first",
        "--compress=5",
    )  # fmt: skip
    built = kith.build_store(
        "words", str(tmp_path / "python"), [(key, given) for key in keys], value=value, duplicates="first",  # type: ignore[arg-type]
        compress=5, partitions=PARTITIONS, version=7,
    )  # fmt: skip
    assert built.duplicates == 1
    assert files(tmp_path / "python/7") == files(tmp_path / "command/7")


def test_a_built_store_is_pushed_and_read(cluster: Cluster, tmp_path: Path) -> None:
    partitions = json.loads(cluster.kith("cluster", "status", "-o", "json"))["partitions"]
    kith.build_store("built", tmp_path, {n: f"value {n}" for n in range(50)}, key="id", partitions=partitions)
    later = kith.build_store("built", tmp_path, {n: f"later {n}" for n in range(50)}, key="id", partitions=partitions)
    cluster.kith("store", "create", "built", "--key", "id")
    cluster.kith("store", "push", "built", str(tmp_path))
    client = kith.connect(cluster.router)
    assert client.get("built", 7) == "later 7"
    assert client.get_many("built", [7]).footer.versions == [later.version]


def test_times_have_a_unit_and_fields_that_rows_lack_are_refused(cluster: Cluster, tmp_path: Path) -> None:
    fields = [{"name": "at", "type": "timestamp"}, {"name": "n", "type": "i64", "nullable": True}]
    partitions = json.loads(cluster.kith("cluster", "status", "-o", "json"))["partitions"]

    def build(rows: dict[int, Any], schema: list[dict[str, Any]] = fields, **more: Any) -> None:
        kith.build_store(
            "timed", tmp_path, rows, key="id", value="record", schema={"fields": schema}, partitions=partitions, **more
        )

    build({1: {"at": 1_700_000_000, "n": 1}, 2: {"at": "2026-11-29", "n": None}}, times=["at:time-s"])
    cluster.kith("store", "create", "timed", "--key", "id", "--value", "record")
    cluster.kith("store", "push", "timed", str(tmp_path))
    client = kith.connect(cluster.router)
    assert [client.get("timed", id)["at"] for id in (1, 2)] == [1_700_000_000_000, 1_795_910_400_000]
    with pytest.raises(kith.Refused, match="lacks field"):
        build({1: {"at": 1}})
    with pytest.raises(ValueError, match="FIELD:UNIT"):
        build({1: {"at": 1, "n": 1}}, times=["at:seconds"])
    # The push of a built version that lacks a field names it.
    build({1: {"at": 5}}, fields[:1])
    with pytest.raises(AssertionError, match='lacks fields.*"n"'):
        cluster.kith("store", "push", "timed", str(tmp_path))
    cluster.kith("store", "push", "timed", str(tmp_path), "--fill-missing")
    assert client.get("timed", 1)["at"] == 5


def test_graphs_are_the_files_of_the_command_line(cluster: Cluster, tmp_path: Path) -> None:
    edges = [(n, n * 7 % 400, 1_700_000_000_000 + n, n / 8) for n in range(400)]
    entities = {"school": [(1, 70, 2017), (2, 70, 2019)], "company": [(9, 3, 2020)]}
    (tmp_path / "edges.csv").write_text("".join(f"{a},{b},{since},{weight}\n" for a, b, since, weight in edges))
    lines = [f"{m},{kind},{e},{year}\n" for kind, rows in entities.items() for m, e, year in rows]
    (tmp_path / "entities.csv").write_text("member,kind,entity,year\n" + "".join(lines))
    (tmp_path / "members.csv").write_text("id\n500\n501\n")
    columns = ["since=3:time", "weight=4:f64"]
    cluster.kith(
        "load", "graph", str(tmp_path / "edges.csv"), "--graph", "people", "--edge-type", "follows", "--directed",
        "--columns", ",".join(columns), "--entities", str(tmp_path / "entities.csv"), "--entity-columns", "year",
        "--members", str(tmp_path / "members.csv"),
    )  # fmt: skip
    [served] = cluster.folder.glob("**/objects/people")
    version = max(int(path.name) for path in (served / "follows").iterdir() if path.name.isdecimal())
    partitions = json.loads(cluster.kith("cluster", "status", "-o", "json"))["partitions"]

    built = kith.build_graph(
        "people", tmp_path / "rows", edges=iter(edges), edge_type="follows", directed=True, columns=columns,
        entities=entities, entity_columns=["year"], members=numpy.array([501, 500]), partitions=partitions, version=version,
    )  # fmt: skip
    assert files(tmp_path / "rows/people") == files(served)
    assert [component.name for component in built.components] == ["follows", "company", "school", "members"]
    assert (built.components[0].role, built.components[0].self_loops) == ("directed", 2)
    same = kith.build_graph(
        "people", tmp_path / "files", edges=tmp_path / "edges.csv", edge_type="follows", directed=True, columns=columns,
        entities=[tmp_path / "entities.csv"], entity_columns=["year"], members=str(tmp_path / "members.csv"),
        partitions=partitions, version=version,
    )  # fmt: skip
    assert same.components == built.components
    assert files(tmp_path / "files/people") == files(served)


def test_files_are_read_by_the_names_of_their_columns(tmp_path: Path) -> None:
    given: dict[str, Any] = {"partitions": 4, "version": 1, "directed": True}
    edges = tmp_path / "edges.csv"
    edges.write_text("followee,since,FOLLOWER\n2,1700000000,1\n")
    with pytest.warns(UserWarning, match="1700000000 is 1970-01-20 .* since:time-s"):
        doubtful = kith.build_graph("g", tmp_path / "ms", edges=edges, columns=["since:time"], **given)
    [file] = doubtful.files
    assert (file.path, file.role, file.rows) == (str(edges), "edges", 1)
    assert file.columns == {"src": "FOLLOWER", "dst": "followee", "since": "since"}
    read = kith.build_graph("g", tmp_path / "s", edges=edges, columns=["since:time-s"], **given)
    rows = [(1, 2, 1_700_000_000)]
    with pytest.warns(UserWarning, match="time-s"):
        kith.build_graph("g", tmp_path / "rows-ms", edges=rows, columns=["since:time"], **given)
    same = kith.build_graph("g", tmp_path / "rows", edges=rows, columns=["since:time-s"], **given)
    assert (same.components, same.files) == (read.components, [])
    edges.write_text("weight,a,b\n5,1,2\n")
    with pytest.raises(kith.Refused, match="src"):
        kith.build_graph("g", tmp_path / "unknown", edges=edges, **given)


def test_an_array_is_rows_of_edges(tmp_path: Path) -> None:
    edges = numpy.random.default_rng(3).integers(0, 5000, (100_000, 2), dtype=numpy.uint64)
    given: dict[str, Any] = {"partitions": 4, "version": 1}
    one = kith.build_graph("g", tmp_path / "one", edges=edges, **given)
    other = kith.build_graph("g", tmp_path / "other", edges=[(int(a), int(b)) for a, b in edges], threads=1, **given)
    assert one.components == other.components
    assert files(tmp_path / "one") == files(tmp_path / "other")


def test_what_is_wrong_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    def store(rows: Any, **given: Any) -> kith.BuiltStore:
        return kith.build_store("s", tmp_path / "s", rows, key="id", partitions=4, version=1, **given)

    def graph(**given: Any) -> kith.BuiltGraph:
        return kith.build_graph("g", tmp_path / "g", partitions=4, version=1, **given)

    for rows, code in [
        ([(1, "a"), ("x", "b"), (-1, "c"), (2**64, "d"), (True, "e"), (2, b"f"), (3, None)], "bad_rows"),
        ([(1, "a"), (1, "b")], "duplicate_key"),
    ]:
        with pytest.raises(kith.Refused) as refused:
            store(rows)
        assert refused.value.code == code and refused.value.help and isinstance(refused.value, ValueError)
        if code == "bad_rows":
            assert refused.value.wrong == [
                'rows row 2: key "x" is no id: it is not a number',
                "rows row 3: key is a number below 0, keys of this store are ids",
                "rows row 4: key is a number of more than 64 bits, keys of this store are ids",
                "rows row 5: key is false or true, keys of this store are ids",
                "rows row 6: value is bytes, values of this store are text",
                "rows row 7: value is null, values of this store are text",
            ]
            again = pickle.loads(pickle.dumps(refused.value))
            assert (again.code, again.wrong) == (code, refused.value.wrong)
    allowed = store([(1, "a"), ("x", "b")], max_errors=1)
    assert [(one.reason, one.count) for one in allowed.dropped] == [("key is no id", 1)]
    with pytest.raises(kith.KithError) as exists:
        store([(1, "a")])
    assert exists.value.code == "build_failed" and not isinstance(exists.value, kith.Refused)

    refusals: list[tuple[dict[str, Any], str, str]] = [
        ({"edges": [(1, 2), (1, -2)]}, "bad_lines", "connection row 2: dst is negative"),
        ({"edges": [(1, "2")]}, "bad_lines", "connection row 1: dst is not a whole number"),
        ({"edges": [(1, 2, 3)]}, "bad_lines", "expected 2 columns, got 3"),
        ({"edges": [(1, 2, -3)], "columns": ["year"]}, "bad_lines", "year is not of kind u64"),
        ({"edges": [(5, 5)]}, "no_edges", "no edge"),
        ({"edges": []}, "no_edges", "no edge"),
        ({"edges": [(1, 2)], "members": [None]}, "bad_lines", "members row 1: id is not a whole number"),
        ({"edges": [(1, 2)], "edge_type": "members"}, "name_taken", "members"),
        ({}, "nothing_to_load", "nothing to load"),
        ({"edges": tmp_path / "missing.csv"}, "bad_input", "missing.csv"),
    ]
    for given, code, words in refusals:
        with pytest.raises(kith.Refused, match=words) as caught:
            graph(**given)
        assert caught.value.code == code, given
    left = [path for path in (tmp_path / "g").rglob("*") if path.is_file() and not path.name.startswith(".")]
    assert left == []
    for wrong in [{"edges": [(1, 2)], "members": "m.csv"}, {"edges": [7]}, {"entities": [(1, 2)]}, {"edges": [(1, 2)], "src": 2}]:
        with pytest.raises(TypeError):
            graph(**wrong)
    for given in [{"duplicates": "never"}, {"compress": 20}, {"memory": 1}, {"partitions": 0}]:
        with pytest.raises(ValueError):
            kith.build_store("t", tmp_path / "t", [("a", "b")], **({"partitions": 4} | given))
    with pytest.raises(TypeError, match="key_field is about files"):
        kith.build_store("t", tmp_path / "t", [("a", "b")], key_field="id", partitions=4)
    with pytest.raises(kith.Refused, match="schema"):
        kith.build_store("t", tmp_path / "t", [("a", {})], value="record", partitions=4)


def test_an_exception_of_the_rows_ends_the_build(tmp_path: Path) -> None:
    def rows() -> Iterator[tuple[int, str]]:
        yield from ((n, "x") for n in range(10_000))
        raise RuntimeError("the source is gone")

    with pytest.raises(RuntimeError, match="the source is gone"):
        kith.build_store("s", tmp_path, rows(), key="id", partitions=4, version=1)
    assert [path for path in tmp_path.rglob("*") if path.is_file() and path.name != ".lock"] == []
    kith.build_store("s", tmp_path, [(1, "x")], key="id", partitions=4, version=1)


def test_other_threads_run_while_files_are_built(tmp_path: Path) -> None:
    rows = tmp_path / "edges.csv"
    rows.write_text("".join(f"{n},{n * 7 % 300_000}\n" for n in range(300_000)))
    ticks, done = [0], threading.Event()

    def tick() -> None:
        while not done.is_set():
            ticks[0] += 1
            time.sleep(0.001)

    ticking = threading.Thread(target=tick)
    ticking.start()
    try:
        before = ticks[0]
        kith.build_graph("g", tmp_path / "out", edges=rows, partitions=4)
        assert before + 10 < ticks[0]
    finally:
        done.set()
        ticking.join()


def test_an_interrupt_ends_a_build(tmp_path: Path) -> None:
    # Jobs in the background of a shell ignore interrupts, and Python then leaves it at that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # A pipe that nobody closes: without the interrupt the build would read for ever.
    pipe = tmp_path / "edges.csv"
    os.mkfifo(pipe)
    stopped = threading.Event()

    def write() -> None:
        lines = os.open(pipe, os.O_WRONLY)
        try:
            for _ in range(1_000):
                os.write(lines, b"1,2\n" * 1_000)
            os.kill(os.getpid(), signal.SIGINT)
            while not stopped.is_set():
                os.write(lines, b"1,2\n" * 1_000)
        except BrokenPipeError:
            pass
        finally:
            os.close(lines)

    writing = threading.Thread(target=write)
    writing.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            kith.build_graph("g", tmp_path / "out", edges=pipe, partitions=4, version=1)
    finally:
        stopped.set()
        writing.join(TIMEOUT)
    assert not (tmp_path / "out/g/connection/1").exists()
