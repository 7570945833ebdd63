"""One cluster for all tests that change nothing, with a store of each kind in it."""

from __future__ import annotations

import base64
import os
from collections.abc import Iterator
from pathlib import Path

import numpy
import pytest

import kith
from cluster import Cluster

ROOT = Path(__file__).resolve().parents[3]
VILLAGE = Path(os.environ.get("KITH_TESTDATA", ROOT / "testdata")) / "kith-village"

PAGES = 300
DIMENSIONS = 16
SCHEMA = {
    "fields": [
        {"name": "title", "type": "text"},
        {"name": "score", "type": "f64", "nullable": True},
        {"name": "embed", "type": f"vector<f32,{DIMENSIONS}>"},
        {"name": "half", "type": "vector<f16,3>"},
        {"name": "small", "type": "vector<i8,3>"},
        {"name": "tags", "type": "list<text>"},
        {"name": "counts", "type": "map<text,i64>"},
        {"name": "id", "type": "u64"},
        {"name": "when", "type": "timestamp"},
        {"name": "public", "type": "bool"},
    ]
}


def embeddings() -> numpy.ndarray:
    """The vectors of all pages, a row each."""
    return numpy.random.default_rng(7).standard_normal((PAGES, DIMENSIONS)).astype(numpy.float32)


def page(key: int) -> dict[str, object]:
    """What was pushed under a key."""
    return {
        "title": f"page {key}",
        "score": None if key % 10 == 0 else key / 2,
        "embed": [float(number) for number in embeddings()[key]],
        "half": [0.5, -1.0, float(key)],
        "small": [-128, 127, key % 100],
        "tags": ["all", "even" if key % 2 == 0 else "odd"],
        "counts": {"clicks": key, "views": 2**60 + key},
        "id": 2**64 - 1 - key,
        "when": 1_700_000_000_000 + key,
        "public": key % 2 == 0,
    }


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    cluster = Cluster(tmp_path_factory.mktemp("cluster"), "--groups", "2", "--nodes", "2")
    try:
        cluster.store("words", "string", "text", [{"key": f"w{n}", "value": f"word {n}"} for n in range(100)])
        cluster.store("profiles", "id", "json", [{"key": n, "name": f"n{n}", "tags": [n]} for n in range(50)])
        blobs = [(bytes([n, 0, 255]), bytes(range(n))) for n in range(20)]
        encoded = [{"key": base64.b64encode(k).decode(), "value": base64.b64encode(v).decode()} for k, v in blobs]
        cluster.store("blobs", "bytes", "bytes", encoded)
        cluster.store("pages", "id", "record", [{"key": n, **page(n)} for n in range(PAGES)], SCHEMA)
        yield cluster
    finally:
        cluster.close()


@pytest.fixture(scope="session")
def village(cluster: Cluster) -> str:
    """A graph, by its name."""
    edges, entities = VILLAGE / "edges.csv.gz", VILLAGE / "entities.csv.gz"
    cluster.kith("load", "graph", str(edges), "--entities", str(entities), "--graph", "village")
    return "village"


@pytest.fixture(params=["router", "grpc", "direct"])
def client(request: pytest.FixtureRequest, cluster: Cluster) -> kith.Client:
    """Each way in."""
    if request.param == "direct":
        return kith.connect(ready_file=cluster.ready_file, direct=True)
    return kith.connect(cluster.router, transport="grpc" if request.param == "grpc" else "framed")
