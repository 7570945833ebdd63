"""Read compute and counts: against numpy, on nodes and here."""

from __future__ import annotations

import numpy
import pytest

import kith
from conftest import DIMENSIONS, PAGES, embeddings

QUERY = numpy.linspace(-1, 1, DIMENSIONS, dtype=numpy.float32)


@pytest.mark.parametrize("place", ["nodes", "client"])
def test_the_best_come_first_with_what_was_asked_for(client: kith.Client, place: str) -> None:
    plan = client.compute("pages").project("title").dot("embed", QUERY, as_="score").top_k("score", 20)
    batch = plan.at(place).execute(numpy.arange(PAGES + 5))
    exact = embeddings().astype(float) @ QUERY.astype(float)
    best = sorted(range(PAGES), key=lambda key: (-exact[key], key))[:20]
    assert [entry.key for entry in batch] == best and len(batch) == 20
    for entry in batch:
        assert entry.value.keys() == ["title", "score"] and entry.value["title"] == f"page {entry.key}"
        assert entry.value["score"] == pytest.approx(exact[entry.key], abs=1e-12)
    assert (batch.footer.found, batch.footer.absent) == (PAGES, 5)


@pytest.mark.parametrize("place", ["nodes", "client"])
def test_results_come_as_they_are_worked_out(client: kith.Client, place: str) -> None:
    plan = client.compute("pages").project("title").dot("embed", QUERY, as_="score").at(place)
    keys = numpy.arange(PAGES + 5)
    whole = {entry.key: (entry.state, entry.found and entry.value.to_dict()) for entry in plan.execute(keys)}
    stream = plan.stream(keys, partial=True)
    streamed = {entry.key: (entry.state, entry.found and entry.value.to_dict()) for entry in stream}
    assert streamed == whole and len(whole) == PAGES + 5
    assert (stream.footer.found, stream.footer.absent, stream.footer.status) == (PAGES, 5, "OK")
    piece = next(client.compute("pages").hadamard("embed", QUERY).stream(keys).pieces())
    rows, there = piece.numpy("hadamard_embed")
    first = [entry.key for entry in piece]
    assert there.all() and numpy.array_equal(rows, embeddings()[first] * QUERY)


def test_plans_may_begin_alike(client: kith.Client) -> None:
    base = client.compute("pages").project("title")
    scored, counted = base.dot("embed", QUERY, as_="s"), base.count("tags", as_="n").top_k("n", 1)
    assert base.execute([7])[0].value.keys() == ["title"]
    assert scored.execute([7, 8])[1].value.keys() == ["title", "s"]
    assert [entry.value.keys() for entry in counted.execute([7, 8])] == [["title", "n"]]
    for odd, error in [(-1, ValueError), (2**32, ValueError), (True, TypeError), ("3", TypeError)]:
        with pytest.raises(error, match="k is a whole number"):
            base.top_k("n", odd)  # type: ignore[arg-type]


def test_what_is_no_query_and_no_key_is_told(client: kith.Client) -> None:
    with pytest.raises(TypeError, match="not bytes"):
        client.compute("pages").dot("embed", b"x" * DIMENSIONS)  # type: ignore[arg-type]
    for odd, reason in [(-1, "out of range"), (2**64, "out of range"), (True, "bool"), (1.5, "float")]:
        with pytest.raises(TypeError, match=reason):
            client.get_many("pages", [odd])  # type: ignore[list-item]
        with pytest.raises(TypeError, match=reason):
            client.get("pages", odd)  # type: ignore[arg-type]


def test_the_best_have_no_stream(client: kith.Client) -> None:
    with pytest.raises(TypeError, match="top_k"):
        client.compute("pages").dot("embed", QUERY, as_="score").top_k("score", 3).stream([1, 2])
    with pytest.raises(kith.KithError) as caught:
        list(client.compute("pages").project("nothing").stream([1]))
    assert caught.value.code == "unknown_field"


def test_each_operator_is_worked_out(client: kith.Client) -> None:
    query = [float(number) for number in QUERY]
    plan = client.compute("pages").cosine("embed", query).hadamard("embed", memoryview(QUERY)).count("tags", as_="n")
    batch = plan.execute([7, 2**40, 8])
    assert [entry.state for entry in batch] == ["FOUND", "ABSENT", "FOUND"]
    value, row = batch[0].value, embeddings()[7]
    cosine = row.astype(float) @ QUERY / numpy.linalg.norm(row.astype(float)) / numpy.linalg.norm(QUERY)
    assert value["cosine_embed"] == pytest.approx(cosine, abs=1e-6) and value["n"] == 2
    assert numpy.array_equal(value.numpy("hadamard_embed"), row * QUERY)


@pytest.mark.parametrize("kind", [">f4", ">f8", "<f4", "<f8", ">f2"])
def test_queries_come_in_any_byte_order(client: kith.Client, kind: str) -> None:
    query = numpy.arange(DIMENSIONS).astype(kind)
    dot = client.compute("pages").dot("embed", query, as_="s").execute([7])[0].value["s"]
    assert dot == pytest.approx(embeddings()[7].astype(float) @ numpy.arange(DIMENSIONS), rel=1e-9)


def test_a_cosine_with_nothing_is_none(client: kith.Client) -> None:
    value = client.compute("pages").cosine("embed", numpy.zeros(DIMENSIONS)).execute([7])[0].value
    assert value["cosine_embed"] is None


def test_plans_that_do_not_fit_are_refused_whole(client: kith.Client) -> None:
    def code(plan: kith.Compute) -> str:
        with pytest.raises(kith.KithError) as refused:
            plan.execute([7])
        return refused.value.code

    pages = lambda: client.compute("pages")  # noqa: E731
    assert code(pages().dot("embed", [1.0, 2.0])) == "dimension_mismatch"
    assert code(pages().dot("titel", QUERY)) == "unknown_field"
    assert code(pages().dot("title", QUERY)) == "wrong_field_type"
    assert code(pages().project("title").top_k("title", 3)) == "wrong_field_type"
    assert code(client.compute("profiles").project("name")) == "not_records"
    for query in ("text", numpy.zeros((2, 8), dtype=numpy.float32), [1, "a"], None):
        with pytest.raises((TypeError, ValueError)):
            pages().dot("embed", query)
    halves = [numpy.full(DIMENSIONS, 1 + 2j, dtype=kind) for kind in (numpy.complex64, numpy.complex128)]
    for query in [*halves, list(halves[0]), [1.0, 2j]]:
        with pytest.raises(TypeError, match="complex"):
            pages().dot("embed", query)
    with pytest.raises(ValueError, match="single precision"):
        pages().dot("embed", [1e39] * DIMENSIONS)
    with pytest.raises(ValueError):
        pages().at("home")


def test_values_and_buckets_are_counted(client: kith.Client) -> None:
    keys = range(PAGES + 3)
    counts = client.aggregate("pages").count_by_value("tags", keys, top=2)
    assert list(counts) == [("all", PAGES), ("even", PAGES // 2)]
    assert counts.distinct == 3 and not counts.truncated and counts.footer.absent == 3
    buckets = {
        "low": {"lt": 50},
        "some": {"or": [{"any_of": [50, 50.5]}, {"ge": 100, "lt": 101}]},
        "none": {"gt": 1e9},
    }
    counts = client.aggregate("pages").count_by_bucket("score", keys, buckets)
    scores = [key / 2 for key in range(PAGES) if key % 10]
    some = sum(score in (50, 50.5) or 100 <= score < 101 for score in scores)
    assert list(counts) == [("low", sum(score < 50 for score in scores)), ("some", some), ("none", 0)]
    assert counts.distinct is None


def test_conditions_that_make_no_sense_are_refused(client: kith.Client) -> None:
    aggregate = client.aggregate("pages")
    for conditions in ({}, {"less": 1}, {"lt": None}, 5, {"and": 5}):
        with pytest.raises((TypeError, ValueError)):
            aggregate.count_by_bucket("score", [1], {"b": conditions})
    deep: dict[str, object] = {"lt": 1}
    for _ in range(100):
        deep = {"and": [deep]}
    with pytest.raises(ValueError, match="deep"):
        aggregate.count_by_bucket("score", [1], {"b": deep})
    with pytest.raises(kith.KithError) as wrong:
        aggregate.count_by_value("embed", [1])
    assert wrong.value.code == "wrong_field_type"
