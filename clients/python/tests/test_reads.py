"""Reads by key: what is found, what is not, and what is refused."""

from __future__ import annotations

import pickle
from collections.abc import Iterable

import numpy
import pytest

import kith
from cluster import Cluster


def test_values_are_what_python_expects(client: kith.Client) -> None:
    assert client.get("words", "w7") == "word 7"
    assert client.get("blobs", b"\x03\x00\xff") == b"\x00\x01\x02"
    assert client.get("profiles", 7)["name"] == "n7"
    record = client.get("pages", 7)
    assert isinstance(record, kith.Record) and record["title"] == "page 7"


def test_absent_is_the_default_and_an_empty_value_is_not(client: kith.Client) -> None:
    assert client.get("words", "nobody") is None
    assert client.get("words", "nobody", "else") == "else"
    assert client.get("blobs", b"\x00\x00\xff", "else") == b""


def test_a_batch_has_one_entry_a_key_in_their_order(client: kith.Client) -> None:
    batch = client.get_many("words", ["w5", "nobody", "w1", "w5"])
    assert [(entry.key, entry.state, entry.value) for entry in batch] == [
        ("w5", "FOUND", "word 5"),
        ("nobody", "ABSENT", None),
        ("w1", "FOUND", "word 1"),
        ("w5", "FOUND", "word 5"),
    ]
    assert batch.values() == ["word 5", None, "word 1", "word 5"]
    assert batch.to_dict() == {"w5": "word 5", "w1": "word 1"}
    footer = batch.footer
    assert (footer.found, footer.absent, footer.error, footer.unanswered) == (3, 1, 0, 0)
    assert footer.complete and len(footer.versions) == 1 and footer.missing_partitions == []
    assert len(batch) == 4 and batch[3].found and batch[1].error is None
    with pytest.raises(IndexError):
        batch[4]


@pytest.mark.parametrize(
    "keys",
    [
        [3, 1, 2**64 - 1],
        {3: "a", 1: "b", 2**64 - 1: "c"}.keys(),
        numpy.array([3, 1, 2**64 - 1], dtype=numpy.uint64),
        numpy.array([9, 3, 9, 1, 9, 2**64 - 1], dtype=numpy.uint64)[1::2],
        numpy.array([3, 1, 2**64 - 1], dtype=">u8"),
    ],
    ids=["list", "view", "array", "strided", "of another byte order"],
)
def test_ids_come_as_any_iterable_or_array(client: kith.Client, keys: Iterable[int]) -> None:
    for given in (keys, iter(keys)):
        batch = client.get_many("profiles", given)
        assert [(entry.key, entry.found) for entry in batch] == [(3, True), (1, True), (2**64 - 1, False)]


def test_no_keys_have_no_answers(client: kith.Client) -> None:
    for keys in ([], numpy.array([], dtype=numpy.int64)):
        batch = client.get_many("words", keys)
        assert len(batch) == 0 and list(batch) == [] and batch.footer.complete


@pytest.mark.parametrize("keys", ["w1", b"w1", [1, "w1"], ["w1", b"w1"], [1.5], [-1], [2**64], [None], 5])
def test_what_is_no_list_of_keys_is_a_type_error(client: kith.Client, keys: object) -> None:
    with pytest.raises(TypeError):
        client.get_many("words", keys)


def test_arrays_that_are_no_list_of_keys_are_type_errors(client: kith.Client) -> None:
    for keys in (numpy.array([1, -1]), numpy.zeros((2, 2), dtype=numpy.uint64)):
        with pytest.raises(TypeError):
            client.get_many("profiles", keys)
    with pytest.raises(TypeError, match="key 1 is of type str"):
        client.get_many("profiles", [1, "w1"])


def test_errors_have_code_message_and_help(client: kith.Client) -> None:
    with pytest.raises(kith.NotFound) as unknown:
        client.get("wrods", "w1")
    assert unknown.value.code == "unknown_store" and "words" in unknown.value.help
    with pytest.raises(kith.KithError) as wrong:
        client.get("words", 7)
    assert wrong.value.code == "wrong_key_type" and "string" in str(wrong.value)
    with pytest.raises(kith.KithError) as large:
        client.get_many("profiles", range(100_001))
    assert large.value.code == "out_of_range" and large.value.help
    again = pickle.loads(pickle.dumps(unknown.value))
    assert (type(again), again.code, str(again), again.help) == (
        kith.NotFound,
        "unknown_store",
        str(unknown.value),
        unknown.value.help,
    )


def test_options_that_make_no_sense_are_refused(client: kith.Client) -> None:
    for options in ({"dealine": 1}, {"partial": "yes"}):
        with pytest.raises(TypeError):
            client.get("words", "w1", **options)
    for options in ({"deadline": 0}, {"deadline": -1}, {"hedge": "always"}, {"fan_out": "groups=0"}, {"fan_out": "union=2"}):
        with pytest.raises(ValueError):
            client.get("words", "w1", **options)
    with pytest.raises(kith.KithError) as wrong:
        client.get("words", "w1", policy="nearest")
    assert wrong.value.code == "unknown_policy" and "least-loaded" in wrong.value.help


def test_a_large_batch_is_whole(client: kith.Client) -> None:
    keys = numpy.arange(20_000, dtype=numpy.uint64)
    footer = client.get_many("pages", keys, deadline=30).footer
    assert (footer.found, footer.absent) == (300, 19_700)


def test_what_a_store_is_can_be_asked(client: kith.Client) -> None:
    assert client.shape("pages") == ("id", "record")
    assert client.shape("blobs") == ("bytes", "bytes")


def test_a_cluster_is_found_as_the_command_line_finds_it(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, tmp_path: object
) -> None:
    monkeypatch.chdir(str(tmp_path))
    monkeypatch.delenv("KITH_ROUTER", raising=False)
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    with pytest.raises(kith.Unreachable) as nowhere:
        kith.connect()
    assert nowhere.value.code == "no_cluster"
    monkeypatch.setenv("KITH_ROUTER", f"127.0.0.1:1, {cluster.router}")
    assert kith.connect().get("words", "w1") == "word 1"
    with pytest.raises(kith.Unreachable) as unreachable:
        kith.connect("127.0.0.1:1")
    assert unreachable.value.code == "unreachable" and isinstance(unreachable.value, ConnectionError)
    with pytest.raises(kith.KithError) as unreadable:
        kith.connect(ready_file="none.json")
    assert unreadable.value.code == "ready_file_unreadable"
