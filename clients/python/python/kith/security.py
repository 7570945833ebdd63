"""The files for TLS and tokens, as the command line takes them (docs/operating/securing.md)."""

from __future__ import annotations

import os
from typing import TypeAlias

Path: TypeAlias = str | os.PathLike[str]
Files: TypeAlias = tuple[Path | None, Path | None, Path | None, Path | None]


def files(tls_ca: Path | None, tls_cert: Path | None, tls_key: Path | None, token_file: Path | None) -> Files:
    """Returns the given files. For each that is ``None``, returns the one that its environment variable names."""
    return (
        _or_named(tls_ca, "KITH_TLS_CA"),
        _or_named(tls_cert, "KITH_TLS_CERT"),
        _or_named(tls_key, "KITH_TLS_KEY"),
        _or_named(token_file, "KITH_TOKEN_FILE"),
    )


def _or_named(given: Path | None, variable: str) -> Path | None:
    # A name that was given and is empty is an error, not a connection in the clear.
    return (os.environ.get(variable) or None) if given is None else given
