"""Records as views: nothing is decoded before it is asked for, and no vector is copied."""

from __future__ import annotations

import json

import numpy
import pytest

import kith
from conftest import DIMENSIONS, SCHEMA, embeddings, page


@pytest.fixture
def record(client: kith.Client) -> kith.Record:
    return client.get("pages", 42)


def test_a_record_is_a_mapping_in_the_order_of_its_schema(record: kith.Record) -> None:
    names = [field["name"] for field in SCHEMA["fields"]]
    assert list(record) == record.keys() == names and len(record) == len(names)
    assert "title" in record and "titel" not in record and 7 not in record
    assert dict(record.items()).keys() == set(names)
    assert record.get("titel", "none") == "none" and record.get("title") == "page 42"
    with pytest.raises(KeyError, match="title"):
        record["titel"]


def test_every_type_has_its_python_value(record: kith.Record) -> None:
    assert record["score"] == 21.0 and record["public"] is True
    assert record["tags"] == ["all", "even"]
    assert record["counts"] == {"clicks": 42, "views": 2**60 + 42}
    assert record["id"] == 2**64 - 1 - 42 and record["when"] == 1_700_000_000_042
    assert list(record["small"]) == [-128, 127, 42]
    assert list(record["half"]) == [0.5, -1.0, 42.0]
    assert list(record["embed"]) == [float(number) for number in embeddings()[42]]


def test_null_is_none(client: kith.Client) -> None:
    record = client.get("pages", 10)
    assert record["score"] is None and record.to_dict()["score"] is None


def test_copies_hold_what_was_pushed(record: kith.Record) -> None:
    assert record.to_dict() == page(42) == record
    printed = json.loads(record.to_json())
    # JSON has the shortest text of single precision, not the digits of the double that it is.
    assert numpy.array_equal(numpy.array(printed.pop("embed"), dtype=numpy.float32), embeddings()[42])
    assert printed == {name: value for name, value in page(42).items() if name != "embed"}
    assert json.loads(record.schema)["fields"][0]["name"] == "title"


def test_vectors_are_views_of_the_answer(record: kith.Record) -> None:
    raw = numpy.frombuffer(record.raw, dtype=numpy.uint8)
    view = record["embed"]
    assert isinstance(view, memoryview) and view.readonly and view.format == "f" and len(view) == DIMENSIONS
    for vector in (numpy.asarray(view), record.numpy("embed"), record.numpy("small"), record.numpy("half")):
        assert numpy.shares_memory(vector, raw)
    assert record.numpy("embed").dtype == numpy.float32 and record.numpy("half").dtype == numpy.float16
    assert numpy.array_equal(record.numpy("embed"), embeddings()[42])
    assert numpy.array_equal(record.numpy("half"), numpy.array([0.5, -1, 42], dtype=numpy.float16))
    with pytest.raises(ValueError):
        record.numpy("embed")[0] = 1
    with pytest.raises(TypeError):
        record.numpy("title")


def test_a_view_outlives_its_record_and_batch(client: kith.Client) -> None:
    view = client.get_many("pages", range(100))[42].value["embed"]
    assert numpy.array_equal(numpy.asarray(view), embeddings()[42])


def test_a_batch_has_its_vectors_as_one_array(client: kith.Client) -> None:
    rows, there = client.get_many("pages", [5, 100_000, 3]).numpy("embed")
    assert rows.shape == (3, DIMENSIONS) and there.tolist() == [True, False, True]
    assert numpy.array_equal(rows[[0, 2]], embeddings()[[5, 3]]) and not rows[1].any()
    # Also where there is none of them, or nothing was asked for.
    for keys in ([100_000, 100_001], []):
        rows, there = client.get_many("pages", keys).numpy("embed")
        assert rows.shape == (len(keys), DIMENSIONS) and rows.dtype == numpy.float32 and not rows.any()
        assert there.dtype == bool and there.tolist() == [False] * len(keys)
    with pytest.raises(TypeError):
        client.get_many("pages", [100_000]).numpy("title")
    with pytest.raises(TypeError):
        client.get_many("pages", [5]).numpy("title")
    with pytest.raises(TypeError):
        client.get_many("words", ["w1"]).numpy("embed")
