"""Stock Gremlin drivers over TLS: certificates, tokens, and the rights of each graph."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from gremlin_python.driver.driver_remote_connection import DriverRemoteConnection
from gremlin_python.driver.protocol import ConfigurationError, GremlinServerError
from gremlin_python.process.anonymous_traversal import traversal

from secured import Authority, Papers, Secured

GRAPHS = {"town": 3, "vault": 2}
"""The number of neighbours of vertex 1, by graph."""


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    cluster = Secured(tmp_path_factory.mktemp("secured"))
    try:
        for graph, neighbours in GRAPHS.items():
            file = cluster.folder / f"{graph}.csv"
            file.write_text("src,dst\n" + "".join(f"1,{other + 2}\n" for other in range(neighbours)))
            cluster.kith("load", "graph", str(file), "--graph", graph)
        yield cluster
    finally:
        cluster.close()


def trusting(authority: Authority, shown: Papers | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(authority.pem))
    if shown:
        context.load_cert_chain(shown.cert, shown.key)
    return context


def count(secured: Secured, graph: str, context: ssl.SSLContext | None, **credentials: str) -> Any:
    """What a driver gets to know about the neighbours of vertex 1."""
    scheme = "wss" if context else "ws"
    options: dict[str, Any] = {"ssl_options": context} if context else {}
    address = f"{scheme}://{secured.gremlin}/gremlin"
    with closing(DriverRemoteConnection(address, graph, **options, **credentials)) as connection:
        return traversal().with_(connection).V(1).both().count().next()


def refused(secured: Secured, graph: str, context: ssl.SSLContext | None, **credentials: str) -> GremlinServerError:
    with pytest.raises(GremlinServerError) as raised:
        count(secured, graph, context, **credentials)
    return raised.value


def test_a_certificate_is_enough(secured: Secured) -> None:
    for graph, neighbours in GRAPHS.items():
        assert count(secured, graph, trusting(secured.authority, secured.ops)) == neighbours


def test_a_token_is_the_password_and_has_the_rights_of_its_subject(secured: Secured) -> None:
    context = trusting(secured.authority)
    assert count(secured, "town", context, username="token", password="reader") == GRAPHS["town"]
    assert count(secured, "town", context, username="anybody", password="reader") == GRAPHS["town"]
    denied = refused(secured, "vault", context, username="token", password="reader")
    assert denied.status_code == 403 and denied.status_attributes["kith.code"] == "permission_denied"
    assert "reader may not read" in str(denied) and "vault" in str(denied)


def test_a_wrong_token_and_a_stranger_are_refused_with_the_reason(secured: Secured) -> None:
    context = trusting(secured.authority)
    wrong = refused(secured, "town", context, username="token", password="guess")
    assert wrong.status_code == 401 and "no subject has this token" in str(wrong)
    # A client whose certificate names no subject is asked for a token, as is one without a certificate.
    for stranger in (trusting(secured.authority, secured.authority.papers("nobody")), context):
        with pytest.raises(ConfigurationError, match="requires authentication"):
            count(secured, "town", stranger)


# The driver closes connections that never opened once more when they are collected.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::RuntimeWarning")
def test_connections_that_are_not_trusted_fail(secured: Secured) -> None:
    stranger = Authority(secured.folder, "other")
    contexts = [None, trusting(stranger), trusting(secured.authority, stranger.papers("mallory"))]
    for context in contexts:
        with pytest.raises(Exception) as raised:  # noqa: PT011
            count(secured, "town", context)
        assert not isinstance(raised.value, GremlinServerError), raised.value
