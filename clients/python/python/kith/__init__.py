"""The client of Kith: values by key, scores that nodes compute from records, queries of graphs, and live graphs.

    import kith

    client = kith.connect("127.0.0.1:7000")
    client.get("profiles", 7)
    for entry in client.get_many("pages", range(5000), deadline=0.1, partial=True):
        ...
    for entry in client.stream("pages", range(5000)):
        ...
    best = client.compute("pages").dot("embed", query, as_="score").top_k("score", 20).execute(ids)

``kith.build_graph`` and ``kith.build_store`` build graphs and stores into a folder or a bucket. ``kith.aio`` is the client for
asyncio. Both clients are bindings of the Rust client, and so have its routing, hedging, retries and deadlines.
"""

import atexit

from kith import _kith, aio
from kith._kith import Batch, Entry, Record
from kith.answers import Counts, Footer, StreamFailure, StreamFooter
from kith.building import BuiltComponent, BuiltGraph, BuiltStore, Dropped, ReadFile, build_graph, build_store
from kith.client import Client, Compute, Aggregate, Graph, connect
from kith.errors import DeadlineExceeded, Denied, KithError, NotFound, Overloaded, Refused, Unreachable
from kith.options import Options, WriteOptions
from kith.stream import Stream

__all__ = [
    "Aggregate",
    "Batch",
    "BuiltComponent",
    "BuiltGraph",
    "BuiltStore",
    "Client",
    "Compute",
    "Counts",
    "DeadlineExceeded",
    "Denied",
    "Dropped",
    "Entry",
    "Footer",
    "Graph",
    "KithError",
    "NotFound",
    "Options",
    "Overloaded",
    "ReadFile",
    "Record",
    "Refused",
    "Stream",
    "StreamFailure",
    "StreamFooter",
    "Unreachable",
    "WriteOptions",
    "aio",
    "build_graph",
    "build_store",
    "connect",
]

# Daemon threads that still wait at exit must not return to an interpreter that is gone.
atexit.register(_kith.leave)
