"""The same for asyncio."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable

import numpy
import pytest

import kith
from cluster import Cluster
from conftest import DIMENSIONS
from kith.plan import Building


def test_many_questions_share_one_loop(cluster: Cluster, village: str) -> None:
    async def ask() -> None:
        client = await kith.aio.connect(cluster.router, deadline=30)
        single = await asyncio.gather(*(client.get("words", f"w{n}") for n in range(100)))
        assert single == [f"word {n}" for n in range(100)]
        batch = await client.get_many("pages", range(50))
        assert batch.footer.found == 50
        best = await client.compute("pages").dot("embed", numpy.ones(DIMENSIONS), as_="s").top_k("s", 5).execute(range(50))
        assert len(best) == 5
        stream = client.compute("pages").dot("embed", numpy.ones(DIMENSIONS), as_="s").stream(range(50))
        scores = {entry.key: entry.value["s"] async for entry in stream}
        assert stream.footer.found == 50 and all(scores[entry.key] == entry.value["s"] for entry in best)
        counts = await client.aggregate("pages").count_by_value("public", range(50))
        assert sorted(counts) == [(False, 25), (True, 25)]
        assert await client.graph(village).network_size(1005) == 951
        assert await client.shape("words") == ("string", "text")
        with pytest.raises(kith.NotFound):
            await client.get("wrods", "w1")

    asyncio.run(ask())


def test_a_client_outlives_its_loop(cluster: Cluster) -> None:
    client = asyncio.run(kith.aio.connect(ready_file=cluster.ready_file, direct=True))
    for n in range(3):
        assert asyncio.run(client.get("words", f"w{n}")) == f"word {n}"


@pytest.mark.parametrize("name", ["Client", "Compute", "Aggregate", "Graph", "Stream", "connect"])
def test_both_clients_have_the_same_methods(name: str) -> None:
    def functions(module: object) -> dict[str, Callable[..., object]]:
        thing = getattr(module, name)
        methods = {name: thing} if inspect.isfunction(thing) else dict(inspect.getmembers(thing, inspect.isfunction))
        # `async for` and `async with` have names of their own.
        return {name.replace("__a", "__"): method for name, method in methods.items()}

    blocking, awaited = functions(kith), functions(kith.aio)
    signatures = {name: str(inspect.signature(method)) for name, method in blocking.items()}
    assert signatures == {
        name: str(inspect.signature(method)).replace("Async", "") for name, method in awaited.items()
    }
    public = [name for name in blocking if not name.startswith("_")]
    assert public and all(blocking[name].__doc__ for name in public)
    assert not any(inspect.iscoroutinefunction(blocking[name]) for name in public)
    plain = {"stream", "compute", "aggregate", "graph", "pieces", "close", *vars(Building)}
    assert {name for name in public if not inspect.iscoroutinefunction(awaited[name])} <= plain
