"""Writes to live graphs, and reads that show them."""

from __future__ import annotations

import asyncio
import secrets
from pathlib import Path

import pytest

import kith
from cluster import Cluster

TYPES = """
[object.person]
fields = { name = "text", born = { type = "timestamp", nullable = true } }

[object.account.fields]
email = { type = "text", unique = true }
age = { type = "i32", nullable = true, index = true }

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


def test_objects_are_found_by_the_values_of_fields_with_an_index(client: kith.Client, social: str) -> None:
    graph = client.graph(social)
    # The graph is shared by the tests of all clients.
    age = secrets.randbelow(2**31)
    email = f"é{age}@example.org"
    added = graph.object_add("account", {"email": email, "age": age})
    with pytest.raises(kith.KithError) as refused:
        graph.object_add("account", {"email": email})
    assert refused.value.code == "unique_taken"
    assert graph.object_find("account", "email", email) == [added["id"]]
    assert graph.object_find("account", "age", age, limit=1) == [added["id"]]
    assert graph.object_find("account", "age", age, after=added["id"]) == []
    with pytest.raises(kith.KithError) as refused:
        graph.object_find("person", "name", "Ann")
    assert refused.value.code == "no_index"


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


def test_an_association_is_changed_only_if_it_has_the_version_that_was_read(
    client: kith.Client, social: str
) -> None:
    graph = client.graph(social)
    one, two = (graph.object_add("person", {"name": name})["id"] for name in ["one", "two"])
    added = graph.assoc_add(one, "admires", two, {"weight": 1.5}, time=5)
    [(id2, time, data, version)] = graph.assoc_get(
        one, "admires", [two], with_data=True, with_versions=True, ticket=added["ticket"]
    )
    assert (id2, time, data, version) == (two, 5, {"weight": 1.5}, added["version"])

    weight = {"weight": data["weight"] + 1}
    changed = graph.assoc_add(one, "admires", two, weight, time=time, if_version=version)
    with pytest.raises(kith.KithError) as refused:
        graph.assoc_add(one, "admires", two, weight, time=time, if_version=version)
    assert refused.value.code == "condition_failed"

    expected = {"out": [(one, 5, changed["version"])], "more": False}
    seen = {"with_versions": True, "ticket": changed["ticket"]}
    assert graph.assoc_range(two, "admired_by", **seen) == expected
    assert graph.assoc_time_range(two, "admired_by", low=5, **seen) == expected


def test_the_same_with_asyncio(cluster: Cluster, social: str) -> None:
    async def write_and_read() -> None:
        client = await kith.aio.connect(cluster.router)
        graph = client.graph(social)
        added = await graph.object_add("person", {"name": "Dora"}, id=77)
        found = await graph.object_get(77, ticket=added["ticket"])
        assert found is not None and found["data"]["name"] == "Dora"
        assert await graph.object_find("account", "age", 99) == []

    asyncio.run(write_and_read())


def test_no_increment_is_lost_if_each_names_the_version_that_it_read(cluster: Cluster, social: str) -> None:
    async def increment(graph: kith.aio.Graph) -> None:
        done = 0
        while done < 2:
            [(_, time, data, version)] = await graph.assoc_get(
                80, "admires", [81], with_data=True, with_versions=True, critical=True
            )
            weight = {"weight": data["weight"] + 1}
            try:
                await graph.assoc_add(80, "admires", 81, weight, time=time, if_version=version)
                done += 1
            except kith.KithError as refused:
                assert refused.code == "condition_failed"

    async def increments() -> None:
        client = await kith.aio.connect(cluster.router)
        graph = client.graph(social)
        await graph.assoc_add(80, "admires", 81, {"weight": 0}, time=5)
        await asyncio.gather(*(increment(graph) for _ in range(3)))
        found = await graph.assoc_get(81, "admired_by", [80], with_data=True, critical=True)
        assert found == [(80, 5, {"weight": 6.0})]

    asyncio.run(increments())
