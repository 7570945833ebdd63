"""Questions of a graph: what the command line answers, as Python values."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import kith
from cluster import Cluster


def test_answers_are_those_of_the_command_line(client: kith.Client, cluster: Cluster, village: str) -> None:
    graph = client.graph(village)

    def by_command(*question: str) -> dict[str, object]:
        return json.loads(cluster.kith("graph", *question, "--graph", village, "-o", "json"))

    assert graph.connections(1005) == by_command("connections", "1005")["ids"]
    assert graph.entities(1005, "school") == by_command("entities", "1005", "--kind", "school")["entities"]
    assert graph.members("school", 16) == by_command("members", "16", "--kind", "school")["ids"]
    assert graph.network_size(1005) == by_command("network-size", "1005")["net"]
    network = graph.network(1005)
    assert network == by_command("network", "1005") and len(network["first"]) == network["degree"]
    assert graph.degree([1005, 1, 1005]) == [network["degree"], None, network["degree"]]
    assert graph.degree([]) == []
    with pytest.raises(kith.KithError, match="has no column"):
        graph.degree([1005], filter=("since", 1, 2))
    assert graph.distance(1005, [1005, 1488, 1016]) == [0, 1, 3]
    path = graph.path(1005, 18028)
    assert (path[0], path[-1], len(path)) == (1005, 18028, 3)
    assert graph.common(1005, 1488) == by_command("common", "1005", "1488")["ids"]
    assert graph.has_common(1005, 1488, kind="school") is True
    assert [list(pair) for pair in graph.suggest(1005, k=3)] == by_command("suggest", "1005", "-k", "3")["suggestions"]


def test_edges_come_with_their_columns_page_by_page(client: kith.Client, cluster: Cluster, tmp_path: Path) -> None:
    lines = [f"7,{id},{2015 + id % 3},{id / 4 - 10},{5 - id}" for id in range(20, 50)]
    (tmp_path / "dated.csv").write_text("\n".join(["src,dst,since,weight,balance", *lines]))
    columns = "since:u64,weight:f64,balance:i64"
    cluster.kith("load", "graph", str(tmp_path / "dated.csv"), "--graph", "dated", "--directed", "--columns", columns)
    graph = client.graph("dated")
    edges = [{"id": id, "since": 2015 + id % 3, "weight": id / 4 - 10, "balance": 5 - id} for id in range(20, 50)]
    assert graph.edges(7) == {"edges": edges, "after": None}

    newest, after = [], None
    while not newest or after:
        page = graph.edges(7, ["since"], order_by="since", descending=True, limit=7, after=after)
        newest += page["edges"]
        after = page["after"]
    expected = sorted(edges, key=lambda edge: (-edge["since"], edge["id"]))
    assert newest == [{"id": edge["id"], "since": edge["since"]} for edge in expected]

    some = graph.edges(7, [], filter=("weight", None, -4.5))["edges"]
    assert [edge["id"] for edge in some] == [20, 21, 22]
    assert graph.degree([7], filter=("balance", -44, -40)) == [5]
    for wrong in ["AQ", "no cursor"]:
        with pytest.raises(ValueError, match="cursor"):
            graph.edges(7, after=wrong)
    with pytest.raises(kith.KithError) as refused:
        graph.edges(7, order_by="name")
    assert refused.value.code == "unknown_column"


def test_what_is_not_there_has_its_own_error(client: kith.Client, village: str) -> None:
    for ask, code in [
        (lambda: client.graph("vilage").connections(1), "unknown_graph"),
        (lambda: client.graph(village).connections(1), "member_not_found"),
        (lambda: client.graph(village).members("scool", 1), "unknown_kind"),
        (lambda: client.graph(village).path(1005, 18028, max=7), "out_of_range"),
    ]:
        with pytest.raises(kith.KithError) as error:
            ask()
        assert error.value.code == code
    with pytest.raises(TypeError, match="partial"):
        client.graph(village).connections(1005, partial=True)
    with pytest.raises(ValueError):
        client.graph(village, direction="up").connections(1005)


def test_defaults_of_reads_do_not_disturb_graphs(cluster: Cluster, village: str) -> None:
    client = kith.connect(cluster.router, partial=True, deadline=30)
    assert client.graph(village).network_size(1005) == 951


def test_loaded_graphs_have_no_objects_and_take_no_tickets(client: kith.Client, village: str) -> None:
    graph = client.graph(village)
    for ask in [
        lambda: graph.object_get(1005),
        lambda: graph.object_get_many([1005, 1]),
        lambda: graph.assoc_get(1005, "likes", [1], high=9, with_data=True),
        lambda: graph.assoc_count(1005, "likes"),
        lambda: graph.assoc_range(1005, "likes", after=(7, 1), limit=2),
        lambda: graph.assoc_time_range(1005, "likes", low=3),
        lambda: graph.connections(1005, critical=True),
    ]:
        with pytest.raises(kith.KithError) as refused:
            ask()
        assert refused.value.code == "loaded_graph"
    with pytest.raises(ValueError, match="not one that a write returned"):
        graph.connections(1005, ticket="AAAA")
    with pytest.raises(TypeError, match="pos or after"):
        graph.assoc_range(1005, "likes", pos=1, after=(7, 1))
    with pytest.raises(kith.KithError, match="no replica group 77"):
        graph.connections(1005, group=77)
    assert graph.connections(1005, group=0) == graph.connections(1005)
