"""Clusters over TLS: a caller with a certificate or a token is served as far as its rights go. A refused caller receives the
same error as on the command line."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

import kith
from cluster import KITH, TIMEOUT, wait_until
from secured import Authority, Papers, Secured

WAYS = [
    {"direct": direct, "transport": transport} for direct in (False, True) for transport in ("framed", "grpc")
]


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    cluster = Secured(tmp_path_factory.mktemp("secured"))
    try:
        for store in ("pages", "secrets"):
            cluster.store(store, "id", "text", [{"key": n, "value": f"{store} {n}"} for n in range(50)])
        yield cluster
    finally:
        cluster.close()


def shown(papers: Papers) -> dict[str, Any]:
    return {"tls_cert": papers.cert, "tls_key": papers.key}


@pytest.mark.parametrize("way", WAYS)
def test_certificates_and_tokens_are_shown_on_every_way_in(secured: Secured, way: dict[str, Any]) -> None:
    for who in (shown(secured.ops), {"token_file": secured.token("reader")}):
        client = kith.connect(secured.router, tls_ca=secured.authority.pem, **who, **way)
        assert client.get("pages", 7) == "pages 7"
        stream = client.stream("pages", range(60))
        assert len(list(stream)) == 60 and (stream.footer.found, stream.footer.absent) == (50, 10)
    for ask in (lambda: client.get("secrets", 7), lambda: list(client.stream("secrets", [7]))):
        with pytest.raises(kith.Denied, match="reader may not read store") as denied:
            ask()
        assert denied.value.code == "permission_denied" and isinstance(denied.value, PermissionError)


def test_asyncio_connects_as_well(secured: Secured) -> None:
    async def ask() -> None:
        client = await kith.aio.connect(secured.router, tls_ca=secured.authority.pem, **shown(secured.ops))
        assert await client.get("secrets", 7) == "secrets 7"
        with pytest.raises(kith.Denied):
            await (await kith.aio.connect(secured.router, tls_ca=secured.authority.pem)).get("pages", 7)

    asyncio.run(ask())


def test_what_is_wrong_is_what_the_command_line_says(secured: Secured) -> None:
    stranger = Authority(secured.folder, "other")
    expired = secured.authority.papers("late", not_after=datetime(2021, 1, 1, tzinfo=UTC))
    ca = {"tls_ca": secured.authority.pem}
    cases: list[tuple[dict[str, Any], str, type[kith.KithError]]] = [
        ({}, "tls_required", kith.Unreachable),
        ({"tls_ca": stranger.pem, **shown(secured.ops)}, "tls_failed", kith.Unreachable),
        ({**ca, **shown(expired)}, "tls_failed", kith.Unreachable),
        ({**ca, **shown(stranger.papers("mallory"))}, "tls_failed", kith.Unreachable),
        (ca, "unauthenticated", kith.Denied),
        ({**ca, "token_file": secured.token("guess")}, "unauthenticated", kith.Denied),
        ({**ca, **shown(secured.authority.papers("nobody"))}, "permission_denied", kith.Denied),
        ({"token_file": secured.token("reader")}, "usage", kith.KithError),
        ({**ca, "tls_cert": secured.ops.cert}, "usage", kith.KithError),
        (shown(secured.ops), "usage", kith.KithError),
        ({"tls_ca": "/nowhere"}, "bad_security_file", kith.KithError),
        ({"tls_ca": secured.ops.key}, "bad_security_file", kith.KithError),
        ({**ca, "tls_cert": secured.ops.cert, "tls_key": expired.key}, "bad_security_file", kith.KithError),
        ({**ca, "token_file": secured.authority.pem}, "bad_security_file", kith.KithError),
    ]
    for files, code, kind in cases:
        with pytest.raises(kind) as raised:
            kith.connect(secured.router, **files).get("pages", 7)
        flags = [part for name, file in files.items() for part in (f"--{name.replace('_', '-')}", str(file))]
        command = [KITH, "get", "pages", "7", "--router", secured.router, "-o", "json", *flags]
        output = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT)
        error = json.loads(output.stdout)["error"]
        assert (raised.value.code, raised.value.help) == (code, error["help"]), files
        assert error["code"] == code and error["message"].endswith(str(raised.value)), (error, raised.value)


def test_why_a_certificate_is_refused_is_always_heard(secured: Secured) -> None:
    """A router refuses after the handshake and closes: what is written until then may fail before the reason was read."""
    stranger = Authority(secured.folder, "heard").papers("eve")
    for _ in range(50):
        with pytest.raises(kith.Unreachable, match="does not trust the authority") as refused:
            kith.connect(secured.router, tls_ca=secured.authority.pem, **shown(stranger))
        assert refused.value.code == "tls_failed"


def test_a_name_that_is_empty_is_not_a_connection_in_the_clear(secured: Secured) -> None:
    with pytest.raises(kith.KithError) as error:
        kith.connect(secured.router, tls_ca="")
    assert error.value.code == "bad_security_file"


def test_the_environment_names_files_too(secured: Secured, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KITH_TLS_CA", str(secured.authority.pem))
    monkeypatch.setenv("KITH_TOKEN_FILE", str(secured.token("guess")))
    with pytest.raises(kith.Denied):
        kith.connect(secured.router).get("pages", 7)
    assert kith.connect(secured.router, token_file=secured.token("reader")).get("pages", 7) == "pages 7"
    monkeypatch.setenv("KITH_TOKEN_FILE", "")
    monkeypatch.setenv("KITH_TLS_CERT", str(secured.ops.cert))
    monkeypatch.setenv("KITH_TLS_KEY", str(secured.ops.key))
    assert kith.connect(secured.router).get("secrets", 7) == "secrets 7"


def test_files_that_change_are_taken_up(secured: Secured) -> None:
    token = secured.folder / "changing.token"
    token.touch(mode=0o600)
    token.write_text("reader")
    client = kith.connect(secured.router, tls_ca=secured.authority.pem, token_file=token, transport="grpc")

    def is_known() -> bool:
        try:
            return client.get("pages", 7) == "pages 7"
        except kith.Denied:
            return False

    assert is_known()
    token.write_text("another")
    wait_until("the new token is shown", lambda: not is_known())
    token.write_text("reader")
    wait_until("the old token is shown again", is_known)
