"""A real `kith dev`, for tests: started as a process, ended with them."""

from __future__ import annotations

import json
import os
import subprocess
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

KITH = os.environ.get("KITH_BIN", "kith")
TIMEOUT = 90.0
"""Seconds that any wait may take; far above what any of them takes."""


def wait_until(what: str, holds: Callable[[], bool], timeout: float = TIMEOUT) -> None:
    """Waits, not for ever, until something holds."""
    until = time.monotonic() + timeout
    while not holds():
        assert time.monotonic() < until, f"waited too long until {what}"
        time.sleep(0.02)


class Target:
    """A cluster as commands find it."""

    folder: Path
    """Of files that commands read."""
    flags: list[str]
    """The flags that every command gets besides."""

    def kith(self, *arguments: str) -> str:
        """What a command prints; it must succeed."""
        command = [KITH, *arguments, *self.flags]
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT)
        assert done.returncode == 0, f"{command}: {done.stderr}"
        return done.stdout

    def store(self, name: str, key: str, value: str, rows: list[dict[str, Any]], schema: Any = None) -> None:
        """A store with these rows; their field `key` is the key, and `value` the value, or else all others."""
        file = self.folder / f"{name}.jsonl"
        file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        arguments = []
        if schema is not None:
            described = self.folder / f"{name}.schema.json"
            described.write_text(json.dumps(schema))
            arguments = ["--schema", str(described)]
        whole = ["--key-field", "key"] if value in ("json", "record") else []
        self.kith("store", "create", name, "--key", key, "--value", value, *whole)
        self.kith("store", "push", name, str(file), *arguments)


class Cluster(Target):
    """A `kith dev`. It ends when its standard input does: with this process at the latest."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.folder = folder
        self.ready_file = folder / "ready.json"
        self.flags = ["--ready-file", str(self.ready_file)]
        self._log = open(folder / "dev.log", "wb")
        ports = ["--port", "0", "--http-port", "0", "--resp-port", "0", "--gremlin-port", "0"]
        command = [KITH, "dev", *ports, "--end-with-stdin", "--ready-file", str(self.ready_file), *arguments]
        environment = {**os.environ, "TMPDIR": str(folder)}
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=self._log, env=environment)
        until = time.monotonic() + TIMEOUT
        while not self.ready_file.exists():
            if self._process.poll() is not None or until < time.monotonic():
                self.close()
                raise RuntimeError(f"kith dev did not start:\n{(folder / 'dev.log').read_text()}")
            time.sleep(0.02)
        self.ready: dict[str, Any] = json.loads(self.ready_file.read_text())
        self.router: str = self.ready["router"]

    def streams(self) -> int:
        """How many streams the router has under way."""
        with urllib.request.urlopen(f"http://{self.ready['http']}/metrics", timeout=TIMEOUT) as metrics:
            lines = metrics.read().decode().splitlines()
        found = [line.split(" ")[1] for line in lines if line.startswith("kith_router_streams ")]
        return int(float(found[0])) if found else 0

    def close(self) -> None:
        """Ends it, and waits until it has ended."""
        if self._process.stdin:
            self._process.stdin.close()
        try:
            self._process.wait(TIMEOUT)
        finally:
            self._process.kill()
            self._log.close()
