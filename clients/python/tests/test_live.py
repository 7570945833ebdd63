"""Writes to live graphs, and reads that show them."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import kith
from cluster import Cluster

TYPES = """
[object.person]
fields = { name = "text", born = { type = "timestamp", nullable = true } }

[association.follows]
inverse = "followed_by"

[association.admires]
inverse = "admired_by"
fields = { weight = { type = "f32", default = 1.0 } }
"""


@pytest.fixture(scope="module")
def social(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> str:
    file: Path = tmp_path_factory.mktemp("types") / "social.toml"
    file.write_text(TYPES)
    cluster.kith("schema", "apply", str(file), "--graph", "social")
    return "social"


def test_objects_are_created_changed_and_deleted(client: kith.Client, social: str) -> None:
    graph = client.graph(social)
    ann = graph.object_add("person", {"name": "Ann"})
    ben = graph.object_add("person", {"name": "Ben", "born": 12}, near=ann["id"])
    assert ann["id"] != ben["id"]
    found = graph.object_get(ann["id"], ticket=ann["ticket"])
    assert found is not None and found["data"] == {"name": "Ann", "born": None}

    changed = graph.object_update(ann["id"], {"name": "Anna"}, if_version=ann["version"])
    assert changed["existed"] is True and ann["version"] < changed["version"]
    with pytest.raises(kith.KithError) as refused:
        graph.object_update(ann["id"], {"name": "Annette"}, if_version=ann["version"])
    assert refused.value.code == "condition_failed"
    with pytest.raises(kith.KithError) as refused:
        graph.object_add("person", {"nam": "Carl"})
    assert refused.value.code == "bad_fields"

    gone = graph.object_delete(ann["id"])
    many = graph.object_get_many([ann["id"], ben["id"]], ticket=[gone["ticket"], ben["ticket"]])
    assert many[0] is None and many[1] is not None and many[1]["data"] == {"name": "Ben", "born": 12}


def test_associations_change_at_both_ends(client: kith.Client, social: str) -> None:
    graph = client.graph(social)
    one, two = (graph.object_add("person", {"name": name})["id"] for name in ["one", "two"])
    added = graph.assoc_add(one, "follows", two, time=5, write_id=f"follow-{one}")
    again = graph.assoc_add(one, "follows", two, time=5, write_id=f"follow-{one}")
    assert added["existed"] is False and again["version"] == added["version"]
    assert graph.assoc_get(two, "followed_by", [one], ticket=added["ticket"]) == [(one, 5)]
    followed = client.graph(social, edge_type="followed_by")
    assert followed.connections(two, ticket=added["ticket"]) == [one]

    changed = graph.assoc_change_type(one, "follows", two, "admires")
    admired = graph.assoc_range(one, "admires", with_data=True, ticket=changed["ticket"])
    assert admired == {"out": [(two, 5, {"weight": 1.0})], "more": False}
    assert graph.assoc_count(two, "admired_by", ticket=changed["ticket"]) == 1
    assert graph.assoc_count(two, "followed_by", ticket=changed["ticket"]) == 0

    deleted = graph.assoc_delete(one, "admires", two)
    assert graph.assoc_count(one, "admires", ticket=deleted["ticket"]) == 0


def test_the_same_with_asyncio(cluster: Cluster, social: str) -> None:
    async def write_and_read() -> None:
        client = await kith.aio.connect(cluster.router)
        graph = client.graph(social)
        added = await graph.object_add("person", {"name": "Dora"}, id=77)
        found = await graph.object_get(77, ticket=added["ticket"])
        assert found is not None and found["data"]["name"] == "Dora"

    asyncio.run(write_and_read())
