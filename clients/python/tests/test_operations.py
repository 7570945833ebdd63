"""The methods of graphs follow from the operations that the Rust client knows."""

from __future__ import annotations

import asyncio
import inspect
from decimal import Decimal

import numpy
import pytest

import kith
from cluster import Cluster
from kith import _kith, graphs
from kith.calls import Awaiting, Blocking, request

OPERATIONS = {name: (about, parameters) for name, about, parameters in _kith.operations()}


@pytest.mark.parametrize("op", OPERATIONS)
def test_methods_have_the_required_fields_and_the_defaults_of_their_operations(op: str) -> None:
    _, parameters = OPERATIONS[op]
    fields = {name: (is_required, default) for name, is_required, default in parameters}
    for graph in (kith.Graph, kith.aio.Graph):
        [_, *arguments] = inspect.signature(getattr(graph, op)).parameters.values()
        assert arguments[-1].kind is inspect.Parameter.VAR_KEYWORD
        for argument in arguments[:-1]:
            if (op, argument.name) in [("object_get", "id"), ("object_find", "value")]:
                continue  # The method takes one of two fields, and the other one is for a list.
            is_required, default = fields[argument.name]
            assert is_required == (argument.default is inspect.Parameter.empty), argument
            assert is_required or default is None or argument.default == default, argument


def generated(op: str, part: type) -> type[graphs.GraphMethods]:
    """A graph whose method for an operation is the one that operations without a method of their own get."""
    methods = type("Methods", (graphs.GraphMethods,), {op: request(graphs._method(op, *OPERATIONS[op]))})
    return type("Graph", (part, methods), {})


def test_generated_methods_answer_like_those_with_types(client: kith.Client, village: str) -> None:
    graph = client.graph(village)

    def ask(op: str, *given: object, **named: object) -> object:
        return getattr(generated(op, Blocking)(client, village, {}), op)(*given, **named)

    assert ask("connections", 1005) == graph.connections(1005)
    assert ask("connections", 1005, limit=3, after=graph.connections(1005)[0]) == graph.connections(1005)[1:4]
    assert ask("entities", 1005, kind="school", deadline=30) == graph.entities(1005, "school")
    assert ask("network", id=1005) == graph.network(1005)
    assert ask("network", 1005, return_="size")["net"] == graph.network_size(1005)
    assert ask("distance", 1005, (1005, 1488)) == graph.distance(1005, [1005, 1488])
    path = graph.path(1005, 18028)
    assert ask("path", 1005, 18028) == {"length": 2, "path": path}
    assert ask("common", 1005, 1488, return_="exists") is True
    assert ask("suggest", 1005, k=3) == graph.suggest(1005, k=3) and isinstance(graph.suggest(1005, k=3)[0], tuple)
    assert graph.ask("degree", ids=[1005, 1]) == graph.degree([1005, 1])
    assert graph.ask("edges", id=1005, limit=2) == graph.edges(1005, limit=2)

    method = getattr(generated("path", Blocking), "path")
    assert str(inspect.signature(method)) == "(self, /, id, to, *, max=6, **options)"
    assert method.__doc__.startswith("A shortest path between two members.")


def test_the_same_with_asyncio(cluster: Cluster, village: str) -> None:
    async def ask() -> None:
        client = await kith.aio.connect(cluster.router)
        graph = generated("degree", Awaiting)(client, village, {})
        assert await graph.degree([1005]) == await client.graph(village).ask("degree", ids=[1005])

    asyncio.run(ask())


def test_coroutines_of_a_subclass_stay_coroutines() -> None:
    class Mine(kith.Graph):
        async def wait(self) -> None: ...

    assert inspect.iscoroutinefunction(Mine.wait) and not inspect.iscoroutinefunction(Mine.ask)


def test_what_cannot_be_a_query_is_refused_at_once(client: kith.Client, village: str) -> None:
    graph = client.graph(village)
    endless: list[object] = []
    endless.append(endless)
    for op, arguments, wrong, message in [
        ("distanse", {}, TypeError, "no operation"),
        ("distance", {"to": [1]}, TypeError, "id is missing"),
        ("distance", {"id": 1, "to": [1], "form": 2}, TypeError, "no argument \"form\"; arguments: id, to, edge_type"),
        ("distance", {"id": "1", "to": [1]}, TypeError, "^id: "),
        ("distance", {"id": 2**64, "to": [1]}, TypeError, "^id: "),
        ("distance", {"id": 1, "to": [-1]}, TypeError, "^to: "),
        ("distance", {"id": 1, "to": "12"}, TypeError, "^to: "),
        ("distance", {"id": 1, "to": [1], "limit": 3}, TypeError, "limit and after need"),
        ("distance", {"id": 1, "to": [1], "direction": "up"}, ValueError, "direction must be out, in or both"),
        ("common", {"id": 1, "to": 2, "return_": "all"}, ValueError, "return must be ids, size or exists, not \"all\""),
        ("degree", {"ids": [1], "filter": ("since", 1)}, TypeError, "^filter: "),
        ("degree", {"ids": [1], "filter": {"column": "since", "hi": 1}}, TypeError, "^filter: "),
        ("connections", {"id": 1, "after": (1, 2)}, TypeError, "after is the last id"),
        ("edges", {"id": 1, "after": "AQ"}, ValueError, "cursor"),
        ("object_get", {}, TypeError, "`id` or `ids`"),
        ("object_find", {"type": "a", "field": "b", "value": endless}, TypeError, "Circular"),
        ("object_find", {"type": "a", "field": "b", "value": Decimal("0.1")}, TypeError, "Decimal"),
        ("object_find", {"type": "a", "field": "b", "value": [Decimal("0.1")]}, TypeError, "Decimal"),
        ("object_find", {"type": "a", "field": "b", "value": 2**64}, TypeError, "64 bits"),
        ("reciprocal", {"id": 1, "after": 2}, TypeError, "no after"),
        ("assoc_range", {"id1": 1, "type": "a", "after": (Decimal(1), 2)}, TypeError, "^after: "),
        ("assoc_range", {"id1": 1, "type": "a", "pos": 1, "after": (1, 2)}, TypeError, "not both"),
    ]:
        with pytest.raises(wrong, match=message):
            graph.ask(op, **arguments)


def test_methods_take_only_options_besides_their_fields(client: kith.Client, village: str) -> None:
    graph = client.graph(village)
    for ask, name in [
        (lambda: graph.connections(1005, limit=5), "limit"),
        (lambda: graph.connections(1005, direction="in"), "direction"),
        (lambda: graph.object_find("p", "f", "Ada", values=["Eve"]), "values"),
        (lambda: graph.common(1005, 1488, **{"return": "size"}), "return"),
        (lambda: graph.reciprocal(1005, after=1), "after"),
    ]:
        with pytest.raises(TypeError, match=f'there is no option "{name}"; options: deadline, '):
            ask()


@pytest.mark.parametrize("default", [{"direction": "in"}, {"limit": 5}, {"id": 1005}, {"form": 2}])
def test_defaults_of_a_client_are_options(cluster: Cluster, village: str, default: dict[str, object]) -> None:
    graph = kith.connect(cluster.router, **default).graph(village)
    for ask in [lambda: graph.connections(1005), lambda: graph.ask("connections", id=1005)]:
        with pytest.raises(TypeError, match=f'there is no option "{next(iter(default))}"; options: deadline, '):
            ask()


def test_an_option_of_a_call_replaces_the_default(cluster: Cluster, village: str) -> None:
    graph = kith.connect(cluster.router, group=77).graph(village)
    assert graph.ask("connections", id=1005, group=None) == graph.connections(1005, group=None)
    with pytest.raises(kith.KithError, match="no replica group 77"):
        graph.ask("connections", id=1005)


def test_numbers_of_other_types_are_taken(client: kith.Client, village: str) -> None:
    graph = client.graph(village)
    for after in [(7, 1), (numpy.uint64(7), numpy.uint64(1)), [numpy.int32(7), 1]]:
        with pytest.raises(kith.KithError) as refused:
            graph.assoc_range(numpy.uint64(1005), "likes", after=after)
        assert refused.value.code == "loaded_graph"
    for value in [numpy.uint64(7), [numpy.uint64(7)]]:
        with pytest.raises(kith.KithError) as refused:
            graph.object_find("person", "age", value)
        assert refused.value.code == "loaded_graph"
    for bounds in [("since", Decimal(1), None), {"column": "since", "low": numpy.float32(0.5)}]:
        with pytest.raises(kith.KithError):  # From the cluster: there is no such column.
            graph.degree([1005], filter=bounds)
