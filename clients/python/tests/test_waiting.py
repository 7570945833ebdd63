"""What happens while nobody answers: deadlines, partial answers, other threads, Ctrl-C, cancelled tasks, forks."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

import kith
from cluster import TIMEOUT, Cluster

KEYS = [f"w{n}" for n in range(200)]


@pytest.fixture(scope="module")
def frozen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster without a second copy of anything, one of whose nodes stands still."""
    cluster = Cluster(tmp_path_factory.mktemp("frozen"), "--processes", "--groups", "1", "--nodes", "2")
    stopped = None
    try:
        cluster.store("words", "string", "text", [{"key": key, "value": key} for key in KEYS])
        kith.connect(cluster.router).get_many("words", KEYS)
        stopped = cluster.ready["nodes"][0]["pid"]
        os.kill(stopped, signal.SIGSTOP)
        yield cluster
    finally:
        if stopped:
            os.kill(stopped, signal.SIGCONT)
        cluster.close()


def test_all_or_error_unless_partial(frozen: Cluster) -> None:
    client = kith.connect(frozen.router, deadline=0.4)
    with pytest.raises((kith.DeadlineExceeded, kith.Unreachable)) as late:
        client.get_many("words", KEYS)
    assert late.value.code in ("deadline_exceeded", "partitions_unavailable") and late.value.help
    batch = client.get_many("words", KEYS, partial=True)
    footer = batch.footer
    assert 0 < footer.found < len(KEYS) and footer.found + footer.unanswered == len(KEYS)
    assert not footer.complete and footer.missing_partitions
    for entry in batch:
        assert (entry.state, entry.value) in (("FOUND", entry.key), ("UNANSWERED", None))
    unanswered = next(entry.key for entry in batch if entry.state == "UNANSWERED")
    with pytest.raises(kith.Unreachable):
        client.get("words", unanswered, partial=True)


def test_other_threads_run_while_one_waits(frozen: Cluster) -> None:
    client = kith.connect(frozen.router)
    asking = threading.Event()

    def ask() -> None:
        asking.set()
        client.get_many("words", KEYS, partial=True, deadline=2)

    thread = threading.Thread(target=ask)
    thread.start()
    asking.wait()
    # Each pass hands the interpreter over and gets it back: were it held, the first would last as long as the question.
    passes = 0
    while thread.is_alive() and passes < 20:
        threading.Event().wait(0.01)
        passes += 1
    assert passes == 20
    thread.join()


WAITS_LONG = """
import sys, kith
client = kith.connect(sys.argv[1])
print("asking", flush=True)
client.get_many("words", [f"w{n}" for n in range(200)], partial=True, deadline=60)
"""


def test_ctrl_c_ends_a_wait(frozen: Cluster) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", WAITS_LONG, frozen.router],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert child.stdout is not None and child.stdout.readline() == "asking\n"
        child.send_signal(signal.SIGINT)
        _, errors = child.communicate(timeout=20)
        assert "KeyboardInterrupt" in errors and child.returncode != 0
    finally:
        child.kill()


def test_a_cancelled_task_ends_at_once(frozen: Cluster) -> None:
    async def ask() -> None:
        client = await kith.aio.connect(frozen.router)
        task = asyncio.create_task(client.get_many("words", KEYS, partial=True, deadline=60))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(task, 0.3)
        assert task.cancelled()

    asyncio.run(asyncio.wait_for(ask(), 20))


FORKS = """
import os, sys, kith
client = kith.connect(sys.argv[1])
child = os.fork()
if child == 0:
    try:
        client.get("words", "w1")
    except RuntimeError as error:
        os._exit(7 if "fork" in str(error) else 8)
    os._exit(9)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_fork_is_told_that_it_cannot_ask(cluster: Cluster) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FORKS, cluster.router], capture_output=True, text=True, timeout=TIMEOUT
    )
    assert done.stdout == "7\n", done.stderr
