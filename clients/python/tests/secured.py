"""A cluster of processes over TLS that agree through etcd, with certificates made for one test."""

from __future__ import annotations

import json
import socket
import subprocess
import time
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import trustme

from cluster import KITH, TIMEOUT, Target, wait_until

STARTS_MAX = 5
"""Somebody else may take a port between its choice and its use."""


@dataclass(frozen=True)
class Papers:
    """A certificate and its key, as PEM files."""

    cert: Path
    key: Path


class Authority:
    """Signs certificates."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self._signs = trustme.CA(organization_name=name)
        self.pem = folder / f"{name}-ca.pem"
        self._signs.cert_pem.write_to_path(str(self.pem))

    def papers(self, name: str, not_after: datetime | None = None) -> Papers:
        """A certificate for this machine, and for whoever is called ``name``."""
        made = self._signs.issue_cert("127.0.0.1", f"{name}.test", common_name=name, not_after=not_after)
        papers = Papers(self._folder / f"{name}.pem", self._folder / f"{name}.key")
        made.cert_chain_pems[0].write_to_path(str(papers.cert))
        made.private_key_pem.write_to_path(str(papers.key))
        papers.key.chmod(0o600)
        return papers


ACCESS = """
[[subject]]
name = "cluster"
certificate = ["dns:kith.test"]
cluster = true

[[subject]]
name = "ops"
certificate = ["dns:ops.test"]
admin = ["*"]

[[subject]]
name = "reader"
token-sha256 = ["{reader}"]
read = ["pages", "town"]
"""


class Secured(Target):
    """Two groups of one node, and a router: all ask who calls, ``ops`` may do everything, the token ``reader`` may read ``pages`` and ``town``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.authority = Authority(folder, "own")
        self.ops = self.authority.papers("ops")
        self._children: list[subprocess.Popen[bytes]] = []
        self._log = open(folder / "cluster.log", "wb")
        try:
            self._etcd = self._start_etcd()
            config = self._configure()
            subprocess.run([KITH, "cluster", "create", "--config", config], check=True, capture_output=True, timeout=TIMEOUT)
            for role in (["node", "--node", "0"], ["node", "--node", "1"], ["router", "--id", "0"]):
                self._spawn([KITH, *role, "--config", config])
            router = self._registered("routers/")
            self.router: str = router["addr"]
            self.gremlin: str = router["gremlin"]
            for node in ("nodes/000000", "nodes/000001"):
                self._registered(node)
        except BaseException:
            self.close()
            raise
        self.flags = ["--router", self.router, "--tls-ca", str(self.authority.pem)]
        self.flags += ["--tls-cert", str(self.ops.cert), "--tls-key", str(self.ops.key)]

    def token(self, name: str) -> Path:
        """A file with this token."""
        file = self.folder / f"{name}.token"
        file.touch(mode=0o600)
        file.write_text(name + "\n")
        return file

    def _configure(self) -> str:
        own = self.authority.papers("kith")
        access = self.folder / "access.toml"
        access.write_text(ACCESS.format(reader=sha256(b"reader").hexdigest()))
        values = {
            "metadata": f"etcd://{self._etcd}",
            "cluster": "secured",
            "groups": 2,
            "nodes": 1,
            "partitions": 24,
            "object-store": str(self.folder / "objects"),
            "tls-cert": str(own.cert),
            "tls-key": str(own.key),
            "tls-client-ca": str(self.authority.pem),
            "access": str(access),
        }
        lines = [f"{name} = {json.dumps(value)}" for name, value in values.items()]
        for section, name, number in (("node", "node", 0), ("node", "node", 1), ("router", "id", 0)):
            data = json.dumps(str(self.folder / f"{section}-{number}"))
            lines += [f"[[{section}]]", f"{name} = {number}", f"data = {data}", "end-with-stdin = true"]
        # This belongs to the router, whose table is the last one.
        lines += ['gremlin = "127.0.0.1:0"']
        config = self.folder / "kith.toml"
        config.write_text("\n".join(lines) + "\n")
        return str(config)

    def _start_etcd(self) -> str:
        for attempt in range(STARTS_MAX):
            host, peer = (f"127.0.0.1:{_free_port()}" for _ in range(2))
            urls = [f"--{kind}-client-urls=http://{host}" for kind in ("listen", "advertise")]
            urls += [f"--listen-peer-urls=http://{peer}", f"--initial-advertise-peer-urls=http://{peer}"]
            data = f"--data-dir={self.folder / f'etcd-{attempt}'}"
            etcd = self._spawn(["etcd", data, *urls, f"--initial-cluster=default=http://{peer}"])
            until = time.monotonic() + TIMEOUT
            while etcd.poll() is None and time.monotonic() < until:
                if subprocess.run(["etcdctl", f"--endpoints={host}", "endpoint", "health"], capture_output=True).returncode == 0:
                    return host
                time.sleep(0.05)
        raise RuntimeError(f"etcd did not start:\n{(self.folder / 'cluster.log').read_text()}")

    def _spawn(self, command: list[str]) -> subprocess.Popen[bytes]:
        child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=self._log)
        self._children.append(child)
        return child

    def _registered(self, key: str) -> dict[str, Any]:
        """The document of a process, once it has registered."""
        command = ["etcdctl", f"--endpoints={self._etcd}", "get", "--prefix", f"/kith/secured/{key}", "--print-value-only"]
        found: list[str] = []

        def has_registered() -> bool:
            dead = [child.args for child in self._children if child.poll() is not None]
            assert not dead, f"{dead}\n{(self.folder / 'cluster.log').read_text()}"
            found[:] = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split("\n")
            return found[0] != ""

        wait_until(f"{key} has registered", has_registered)
        document: dict[str, Any] = json.loads(found[0])
        return document

    def close(self) -> None:
        """Ends all of it, and waits until it has ended."""
        for child in reversed(self._children):
            if child.stdin:
                child.stdin.close()
            if child.args[0] == "etcd":  # type: ignore[index]
                child.kill()
            try:
                child.wait(TIMEOUT)
            finally:
                child.kill()
        self._log.close()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as held:
        port: int = held.getsockname()[1]
        return port
