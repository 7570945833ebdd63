"""Records as they arrive: those of a whole read, a footer that is true of them, and nothing left behind by whoever stops reading."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

import numpy
import pytest

import kith
from cluster import TIMEOUT, Cluster, wait_until
from conftest import DIMENSIONS, PAGES, embeddings

WIDE = 16_000
"""Keys of a store whose values are of 1 KB: more than is ever on its way of a stream that nobody reads."""
KEYS = numpy.arange(WIDE + 100, dtype=numpy.uint64)
"""Those, and some that there are not."""
PATIENT = {"deadline": TIMEOUT / 2}
AT_ONCE = TIMEOUT / 4
"""Seconds in which a stream that was left is gone: before its deadline, which would end it as well."""


def wide(key: int) -> str:
    """What was pushed under a key."""
    return f"{key:04}" * 250


def summary(entry: kith.Entry) -> tuple[object, ...]:
    value = entry.value
    return (entry.key, entry.state, value.to_json() if isinstance(value, kith.Record) else repr(value))


@pytest.fixture(scope="module")
def processes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster of processes without a second copy of anything."""
    cluster = Cluster(tmp_path_factory.mktemp("processes"), "--processes", "--groups", "1", "--nodes", "2")
    try:
        cluster.store("wide", "id", "text", [{"key": key, "value": wide(key)} for key in range(WIDE)])
        yield cluster
    finally:
        cluster.close()


@pytest.fixture
def single(processes: Cluster) -> Iterator[Cluster]:
    """That cluster, without any stream under way before and after."""
    yield processes
    wait_until("no stream is left", lambda: processes.streams() == 0, AT_ONCE)


@contextmanager
def frozen(pid: int) -> Iterator[None]:
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def assert_whole(entries: list[kith.Entry], footer: kith.StreamFooter) -> None:
    """All of ``KEYS``, each once, and a footer that says so."""
    assert sorted(entry.key for entry in entries) == KEYS.tolist()
    assert all(entry.value == (wide(entry.key) if entry.key < WIDE else None) for entry in entries)
    assert (footer.found, footer.absent, footer.error, footer.unanswered) == (WIDE, len(KEYS) - WIDE, 0, 0)
    assert (footer.status, footer.complete, footer.failures, footer.missing_partitions) == ("OK", True, [], [])


@pytest.mark.parametrize(
    ("store", "keys"),
    [
        ("pages", [*range(PAGES + 10), 7, 7, 2**63]),
        ("profiles", numpy.arange(60)),
        ("words", [f"w{n}" for n in range(120)] + ["w7"]),
        ("blobs", [bytes([n, 0, 255]) for n in range(25)]),
    ],
)
def test_a_stream_tells_what_a_whole_read_tells(client: kith.Client, store: str, keys: list[int]) -> None:
    whole = client.get_many(store, keys)
    stream = client.stream(store, keys)
    assert sorted(map(summary, stream)) == sorted(map(summary, whole))
    footer, other = stream.footer, whole.footer
    assert footer.status == "OK" and footer.complete and footer.failures == []
    for name in ("found", "absent", "error", "unanswered", "versions", "missing_partitions"):
        assert getattr(footer, name) == getattr(other, name), name
    assert footer.total >= footer.service and footer.total.total_seconds() > 0
    assert list(stream) == []


def test_what_travelled_is_checked_by_whom_it_travelled_to(cluster: Cluster) -> None:
    for client, travels in [
        (kith.connect(cluster.router), True),
        (kith.connect(cluster.router, transport="grpc"), True),
        (kith.connect(ready_file=cluster.ready_file, direct=True), False),
    ]:
        stream = client.stream("pages", range(PAGES))
        assert len(list(stream)) == PAGES
        assert (stream.footer.crc32c is not None) == travels


def test_records_of_pieces_are_views_too(client: kith.Client) -> None:
    seen = []
    for piece in client.stream("pages", range(PAGES)).pieces():
        assert isinstance(piece, kith.Batch) and piece.footer.found == len(piece)
        rows, there = piece.numpy("embed")
        assert rows.shape == (len(piece), DIMENSIONS) and there.all()
        assert numpy.array_equal(rows, embeddings()[[entry.key for entry in piece]])
        record = piece[0].value
        assert numpy.shares_memory(record.numpy("embed"), numpy.frombuffer(record.raw, dtype=numpy.uint8))
        seen += [entry.key for entry in piece]
    assert sorted(seen) == list(range(PAGES))
    # Also where none is found, rows are rows.
    for piece in client.stream("pages", [10**6, 10**7]).pieces():
        rows, there = piece.numpy("embed")
        assert rows.shape == (len(piece), DIMENSIONS) and not there.any()


def test_few_keys_and_none_have_a_footer(client: kith.Client) -> None:
    stream = client.stream("words", [])
    assert list(stream) == [] and stream.footer.status == "OK" and stream.footer.found == 0
    stream = client.stream("words", ["w1"])
    assert [summary(entry) for entry in stream] == [("w1", "FOUND", "'word 1'")]
    assert stream.footer.found == 1


def test_the_footer_comes_last(single: Cluster) -> None:
    stream = kith.connect(single.router, **PATIENT).stream("wide", KEYS)
    entries = iter(stream)
    first = next(entries)
    with pytest.raises(RuntimeError, match="last"):
        stream.footer
    assert_whole([first, *entries], stream.footer)


def test_what_makes_no_sense_is_told(client: kith.Client) -> None:
    for store, keys, options, code in [
        ("wrods", ["w1"], {}, "unknown_store"),
        ("words", [7], {}, "wrong_key_type"),
        ("words", ["w1"], {"policy": "nearest"}, "unknown_policy"),
        ("profiles", range(100_001), {}, "out_of_range"),
    ]:
        for partial in (False, True):
            with pytest.raises(kith.KithError) as error:
                list(client.stream(store, keys, partial=partial, **options))
            assert error.value.code == code and error.value.help
    for keys, options in [("w1", {}), ([None], {}), (["w1"], {"dealine": 1})]:
        with pytest.raises(TypeError):
            client.stream("words", keys, **options)


def test_whoever_leaves_ends_the_read(single: Cluster) -> None:
    client = kith.connect(single.router, **PATIENT)

    def breaks() -> object:
        stream = client.stream("wide", KEYS)
        for entry in stream:
            assert entry.key is not None and single.streams() == 1
            break
        return stream

    def raises() -> object:
        stream = client.stream("wide", KEYS)
        with pytest.raises(ZeroDivisionError) as error:
            for _ in stream.pieces():
                assert single.streams() == 1
                raise ZeroDivisionError
        return stream, error

    def closes() -> object:
        stream = client.stream("wide", KEYS)
        entries = iter(stream)
        next(entries)
        assert single.streams() == 1
        stream.close()
        with pytest.raises(RuntimeError, match="without its footer"):
            list(entries)
        return stream, entries

    def leaves_with() -> object:
        with client.stream("wide", KEYS) as stream:
            entries = iter(stream)
            next(entries)
            assert single.streams() == 1
        return stream, entries

    def lets_go() -> None:
        entries = iter(client.stream("wide", KEYS))
        next(entries)
        assert single.streams() == 1

    def never_reads() -> None:
        stream = client.stream("wide", KEYS)
        wait_until("it has begun", lambda: single.streams() == 1)
        del stream

    def is_garbage() -> None:
        ring: list[object] = [client.stream("wide", KEYS)]
        ring.append(ring)
        wait_until("it has begun", lambda: single.streams() == 1)
        del ring
        gc.collect()

    for leave in (breaks, raises, closes, leaves_with, lets_go, never_reads, is_garbage):
        held = leave()
        # What is held still makes no difference.
        wait_until(f"{leave.__name__}: nothing is left of it", lambda: single.streams() == 0, AT_ONCE)
        del held


def test_a_stream_that_was_left_never_looks_whole(single: Cluster) -> None:
    stream = kith.connect(single.router, **PATIENT).stream("wide", KEYS)
    for _ in stream:
        break
    for ask in (lambda: list(stream), lambda: list(stream.pieces()), lambda: stream.footer):
        with pytest.raises(RuntimeError):
            ask()


def test_what_nobody_takes_is_not_read(single: Cluster) -> None:
    client = kith.connect(single.router, deadline=4)
    pieces = client.stream("wide", KEYS, partial=True).pieces()
    found = next(pieces).footer.found
    # While it stands still, others are answered, and it gets nothing but what was under way.
    other = kith.connect(single.router, **PATIENT).stream("wide", KEYS)
    assert_whole(list(other), other.footer)
    with frozen(single.ready["routers"][0]["pid"]):
        for piece in pieces:
            found += piece.footer.found
    assert found < WIDE // 2, f"{found} of {WIDE} KB were read ahead"


def test_a_slow_reader_gets_all(cluster: Cluster, single: Cluster) -> None:
    others = kith.connect(cluster.router)
    for direct in (False, True):
        stream = kith.connect(ready_file=single.ready_file, direct=direct, **PATIENT).stream("wide", KEYS)
        entries = []
        for number, piece in enumerate(stream.pieces()):
            if number < 5:
                assert others.get_many("pages", range(PAGES)).footer.found == PAGES
            entries += list(piece)
        assert_whole(entries, stream.footer)


def test_a_dead_node_costs_its_keys_or_is_an_error(single: Cluster) -> None:
    victim = single.ready["nodes"][0]
    keys = [*range(WIDE, WIDE + 100), *range(0, WIDE, 8)]
    with frozen(victim["pid"]):
        client = kith.connect(single.router, deadline=1)
        stream = client.stream("wide", keys, partial=True)
        entries = list(stream)
        footer = stream.footer
        assert sorted(entry.key for entry in entries) == sorted(keys)
        assert {entry.state for entry in entries} == {"FOUND", "ABSENT", "UNANSWERED"}
        for state, count in [("FOUND", footer.found), ("ABSENT", footer.absent), ("UNANSWERED", footer.unanswered)]:
            assert sum(entry.state == state for entry in entries) == count
        assert (footer.status, footer.complete, footer.error) == ("PARTIAL", False, 0)
        assert sum(failure.keys for failure in footer.failures) == footer.unanswered
        for failure in footer.failures:
            assert failure.class_ in ("deadline_exceeded", "node_unreachable") and failure.nodes == [victim["node"]], failure
            assert set(failure.partitions) <= set(footer.missing_partitions)
        with pytest.raises((kith.DeadlineExceeded, kith.Unreachable)) as error:
            list(client.stream("wide", keys))
        assert error.value.code in ("deadline_exceeded", "partitions_unavailable")
        # Nothing at all has no footer.
        lost = [entry.key for entry in entries if entry.state == "UNANSWERED"]
        stream = client.stream("wide", lost, partial=True)
        with pytest.raises(kith.KithError):
            list(stream)
        with pytest.raises(RuntimeError):
            stream.footer


def test_other_threads_run_while_one_waits(single: Cluster) -> None:
    client = kith.connect(single.router, deadline=2)
    with frozen(single.ready["nodes"][0]["pid"]):
        stream = client.stream("wide", KEYS, partial=True)
        thread = threading.Thread(target=lambda: list(stream))
        thread.start()
        passes = 0
        while thread.is_alive() and passes < 20:
            threading.Event().wait(0.01)
            passes += 1
        assert passes == 20
        thread.join()


BEGINS = """
import sys, threading, kith
client = kith.connect(sys.argv[1], deadline=40)
stream = client.stream("wide", range(16_000), partial=True)
entries = iter(stream)
next(entries)
"""


def child(single: Cluster, script: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", BEGINS + script, single.router]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize(
    ("script", "code"),
    [
        ("", 0),
        (
            # The process goes on for a second after the interpreter has ended, and so do its daemons.
            "import ctypes, time\nlibc = ctypes.CDLL(None)\nlibc.on_exit(libc.sleep, None)\n"
            "for _ in range(30):\n"
            "    threading.Thread(target=lambda: list(client.stream('wide', range(100))), daemon=True).start()\n"
            "    time.sleep(0.005)\n"
            "sys.exit(1)",
            1,
        ),
        (
            "import asyncio\nasync def ask():\n"
            "    async for entry in (await kith.aio.connect(sys.argv[1])).stream('wide', range(16_000)): return\n"
            "asyncio.run(ask())",
            0,
        ),
    ],
    ids=["held", "daemon", "asyncio"],
)
def test_an_interpreter_ends_with_a_stream_under_way(single: Cluster, script: str, code: int) -> None:
    # A node that does not answer: the stream is waited for.
    with frozen(single.ready["nodes"][0]["pid"]):
        ended = child(single, script)
        try:
            out, errors = ended.communicate(timeout=AT_ONCE)
            assert (ended.returncode, out, errors) == (code, "", "")
        finally:
            ended.kill()
        wait_until("nothing is left of it", lambda: single.streams() == 0, AT_ONCE)


def test_ctrl_c_ends_a_wait(single: Cluster) -> None:
    with frozen(single.ready["nodes"][0]["pid"]):
        asking = child(single, "print('asking', flush=True)\nfor entry in entries: pass")
        try:
            assert asking.stdout is not None and asking.stdout.readline() == "asking\n"
            asking.send_signal(signal.SIGINT)
            _, errors = asking.communicate(timeout=AT_ONCE)
            assert "KeyboardInterrupt" in errors and asking.returncode != 0
        finally:
            asking.kill()
        wait_until("nothing is left of it", lambda: single.streams() == 0, AT_ONCE)


def test_asyncio_gets_the_same(cluster: Cluster, single: Cluster) -> None:
    async def ask() -> None:
        for direct in (False, True):
            client = await kith.aio.connect(ready_file=single.ready_file, direct=direct, **PATIENT)
            stream = client.stream("wide", KEYS)
            assert_whole([entry async for entry in stream], stream.footer)
            async with client.stream("wide", KEYS) as stream:
                assert_whole([entry async for piece in stream.pieces() for entry in piece], stream.footer)
        client = await kith.aio.connect(cluster.router)
        whole = sorted(map(summary, await client.get_many("pages", range(PAGES + 5))))

        async def one() -> None:
            assert sorted([summary(entry) async for entry in client.stream("pages", range(PAGES + 5))]) == whole

        await asyncio.gather(*(one() for _ in range(20)))
        with pytest.raises(kith.NotFound):
            [entry async for entry in client.stream("wrods", ["w1"])]

    asyncio.run(ask())


def test_whoever_leaves_an_asyncio_stream_ends_the_read(single: Cluster) -> None:
    async def gone(what: str) -> None:
        await asyncio.to_thread(wait_until, f"{what}: nothing is left of it", lambda: single.streams() == 0, AT_ONCE)

    async def begun(client: kith.aio.Client) -> tuple[kith.aio.Stream, AsyncIterator[kith.Entry]]:
        stream = client.stream("wide", KEYS)
        entries = aiter(stream)
        await anext(entries)
        assert single.streams() == 1
        return stream, entries

    async def ask() -> None:
        client = await kith.aio.connect(single.router, **PATIENT)
        stream = client.stream("wide", KEYS)
        async for _ in stream:
            assert single.streams() == 1
            break
        await gone("break")
        with pytest.raises(RuntimeError):
            [entry async for entry in stream]

        async with client.stream("wide", KEYS) as stream:
            entries = aiter(stream)
            await anext(entries)
        await gone("with")

        stream, entries = await begun(client)
        del entries
        await gone("del")
        stream, entries = await begun(client)
        stream.close()
        await gone("close")
        with pytest.raises(RuntimeError):
            [entry async for entry in entries]

        # One of the nodes does not answer: the stream is waited for.
        with frozen(single.ready["nodes"][0]["pid"]):
            stream = client.stream("wide", KEYS)

            async def count() -> None:
                async for _ in stream:
                    pass

            task = asyncio.create_task(count())
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(task, 0.5)
            await gone("cancelled")
            with pytest.raises(RuntimeError):
                await anext(aiter(stream))

            stream, entries = await begun(client)
            with pytest.raises(TimeoutError):
                while True:
                    await asyncio.wait_for(anext(entries), 0.5)
            await gone("a wait was cancelled")
            with pytest.raises(RuntimeError):
                await anext(entries)

    asyncio.run(asyncio.wait_for(ask(), 2 * TIMEOUT))


def test_threads_may_share_a_stream(client: kith.Client) -> None:
    for _ in range(10):
        stream, came, errors = client.stream("pages", numpy.arange(PAGES)), [], []

        def take() -> None:
            try:
                came.extend([entry.key for piece in stream.pieces() for entry in piece])
            except BaseException as error:  # noqa: BLE001
                errors.append(error)

        threads = [threading.Thread(target=take) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not errors and sorted(came) == list(range(PAGES)) and stream.footer.found == PAGES


def test_a_fork_is_told_that_it_cannot_ask(cluster: Cluster) -> None:
    script = (
        "import os, sys, kith\n"
        "client = kith.connect(sys.argv[1])\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    try: client.stream('words', ['w1'])\n"
        "    except RuntimeError as error: os._exit(7 if 'fork' in str(error) else 8)\n"
        "    os._exit(9)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
    )
    command = [sys.executable, "-c", script, cluster.router]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT)
    assert done.stdout == "7\n", done.stderr
