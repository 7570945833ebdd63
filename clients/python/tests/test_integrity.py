"""Values that are changed on their way: the client notices, and never returns them."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest

import kith
from cluster import Cluster

VALUE = b"word 7"
KEYS = [f"w{n}" for n in range(100)]


class Flipper:
    """Stands in front of a router, and flips a bit in the values that it sends."""

    def __init__(self, server: str) -> None:
        host, port = server.rsplit(":", 1)
        self._server = (host, int(port))
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.addr = "127.0.0.1:%d" % self._listener.getsockname()[1]
        self.left = 0
        self.flipped = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.create_connection(self._server)
            threading.Thread(target=self._copy, args=(client, server, False), daemon=True).start()
            threading.Thread(target=self._copy, args=(server, client, True), daemon=True).start()

    def _copy(self, source: socket.socket, sink: socket.socket, flips: bool) -> None:
        try:
            while data := source.recv(65536):
                at = data.find(VALUE) if flips and 0 < self.left else -1
                if 0 <= at:
                    self.left -= 1
                    self.flipped += 1
                    data = data[:at] + b"W" + data[at + 1 :]
                sink.sendall(data)
        except OSError:
            pass
        finally:
            for end in (source, sink):
                try:
                    end.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass

    def close(self) -> None:
        self._listener.close()


@pytest.fixture
def flipper(cluster: Cluster) -> Iterator[Flipper]:
    flipper = Flipper(cluster.router)
    yield flipper
    flipper.close()


@pytest.mark.parametrize("transport", ["framed-tcp", "grpc"])
def test_a_value_that_changed_on_its_way_is_read_again(flipper: Flipper, transport: str) -> None:
    client = kith.connect(flipper.addr, transport=transport)  # type: ignore[arg-type]
    expected = [f"word {n}" for n in range(100)]
    assert client.get_many("words", KEYS).values() == expected
    flipper.left = 1
    assert client.get_many("words", KEYS).values() == expected
    assert flipper.flipped == 1
    flipper.left = 1 << 30
    with pytest.raises(kith.KithError) as raised:
        client.get_many("words", KEYS)
    assert raised.value.code == "damaged"
    flipper.left = 0
    assert client.get("words", "w7") == "word 7"
