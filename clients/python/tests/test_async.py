"""The same for asyncio."""

from __future__ import annotations

import asyncio
import inspect

import numpy
import pytest

import kith
from cluster import Cluster
from conftest import DIMENSIONS


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
    def signatures(module: object) -> dict[str, str]:
        thing = getattr(module, name)
        methods = [thing] if inspect.isfunction(thing) else [*vars(thing).values()]
        functions = [method for method in methods if inspect.isfunction(method)]
        # `async for` and `async with` have names of their own.
        signatures = {function.__name__.replace("__a", "__"): inspect.signature(function) for function in functions}
        return {name: str(signature).replace("Async", "") for name, signature in signatures.items()}

    assert signatures(kith) == signatures(kith.aio)
