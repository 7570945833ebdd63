"""The synchronous client. Its methods are those of the client for asyncio, derived by ``kith.calls.Blocking``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Unpack

from kith import _kith
from kith.calls import Blocking
from kith.cluster import addresses
from kith.graphs import GraphMethods
from kith.methods import AggregateMethods, ClientMethods, ComputeMethods
from kith.options import Options
from kith.security import Path, files
from kith.stream import Stream


def connect(
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
    """Connects to a cluster.

    ``router`` is the address of a router (``"host:port"``), or several addresses, as a list or separated by commas. The client
    connects to the first one that answers. Without ``router``, the addresses are those of ``KITH_ROUTER``, or else those of the
    ready file of ``kith dev``. With ``direct``, the client sends its requests to the nodes itself, which saves a hop.

    With ``tls_ca``, the certificates of the authorities that signed the cluster's certificates, connections use TLS.
    ``tls_cert`` and ``tls_key``, or ``token_file``, prove who the caller is. Certificates and keys are PEM files; a token file
    contains only the token. The default of each is the file that ``KITH_TLS_CA``, ``KITH_TLS_CERT``, ``KITH_TLS_KEY`` or
    ``KITH_TOKEN_FILE`` names. Files that change are read again.

    All other options are defaults for the requests of this client. Raises ``kith.KithError`` if no address answers, or if the
    cluster refuses the caller.
    """
    found = addresses(router, ready_file, direct)
    secured = files(tls_ca, tls_cert, tls_key, token_file)
    return Client(_kith.connect(found, direct, transport, secured).wait(), defaults)


class Compute(Blocking, ComputeMethods[Stream]):
    """A plan: ``client.compute("pages").project("title").dot("embed", query, as_="score").top_k("score", 20).execute(keys)``"""

    _stream = Stream


class Aggregate(Blocking, AggregateMethods):
    """Counts the records of a store. Each item of a list counts by itself; nulls are not counted."""


class Graph(Blocking, GraphMethods):
    """Queries of a graph (docs/queries.md); of a live graph, also reads and writes of objects and associations (docs/live-graph.md)."""


class Client(Blocking, ClientMethods[Stream, Compute, Aggregate, Graph]):
    """Connections to one cluster. Threads may share a client; other threads run while one of them waits for an answer."""

    _stream, _compute, _aggregate, _graph = Stream, Compute, Aggregate, Graph
