"""The client for asyncio, with the same methods as ``kith.Client``. If a task is cancelled, the nodes stop working for it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Literal, Self, Unpack

from kith import _kith
from kith.calls import Awaiting
from kith.cluster import addresses
from kith.graphs import GraphMethods
from kith.methods import AggregateMethods, ClientMethods, ComputeMethods
from kith.options import Options
from kith.security import Path, files
from kith.stream import Reading


async def connect(
    router: str | Sequence[str] | None = None,
    *,
    ready_file: Path | None = None,
    direct: bool = False,
    transport: Literal["framed", "framed-tcp", "grpc"] = "framed",
    tls_ca: Path | None = None,
    tls_cert: Path | None = None,
    tls_key: Path | None = None,
    token_file: Path | None = None,
    **defaults: Unpack[Options],
) -> Client:
    """Connects to a cluster, like ``kith.connect``."""
    found = addresses(router, ready_file, direct)
    secured = files(tls_ca, tls_cert, tls_key, token_file)
    return Client(await _kith.connect(found, direct, transport, secured).begin(), defaults)


class Stream(Reading):
    """A stream of entries: ``async for entry in client.stream("pages", ids): ...``, and then ``stream.footer``.

    If the read fails, the loop raises ``kith.KithError`` after the entries that arrived before. With ``partial=True``, it raises
    only if no key was answered. If a task is cancelled while it waits for an entry, the read ends.
    """

    def __aiter__(self) -> AsyncIterator[_kith.Entry]:
        return _Entries(self._core)

    def pieces(self) -> AsyncIterator[_kith.Batch]:
        """Iterates over batches as the nodes sent them, each with the entries of some keys. ``Batch.numpy`` returns a vector field."""
        return _Pieces(self._core)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()


class _Pieces:
    """The batches of a stream. An async generator would be closed only when its event loop gets to it; this ends the read at once."""

    def __init__(self, core: _kith.Stream) -> None:
        self._core = core

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> _kith.Batch:
        try:
            piece: _kith.Batch | None = await self._core.next().begin()
        except BaseException:
            # A batch that arrived while the task was cancelled is lost, so no batch may follow it.
            self._core.close()
            raise
        if piece is None:
            raise StopAsyncIteration
        return piece

    def __del__(self) -> None:
        self._core.close()


class _Entries:
    def __init__(self, core: _kith.Stream) -> None:
        self._pieces = _Pieces(core)
        self._piece: Iterator[_kith.Entry] = iter(())

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> _kith.Entry:
        while (entry := next(self._piece, None)) is None:
            self._piece = iter(await anext(self._pieces))
        return entry


class Compute(Awaiting, ComputeMethods[Stream]):
    """A plan: ``await client.compute("pages").project("title").dot("embed", query, as_="score").top_k("score", 20).execute(keys)``"""

    _stream = Stream


class Aggregate(Awaiting, AggregateMethods):
    """Counts the records of a store. Each item of a list counts by itself; nulls are not counted."""


class Graph(Awaiting, GraphMethods):
    """Queries of a graph (docs/queries.md); of a live graph, also reads and writes of objects and associations (docs/live-graph.md)."""


class Client(Awaiting, ClientMethods[Stream, Compute, Aggregate, Graph]):
    """Connections to one cluster. Tasks of several event loops may share a client."""

    _stream, _compute, _aggregate, _graph = Stream, Compute, Aggregate, Graph
