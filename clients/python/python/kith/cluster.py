"""Finds the addresses of the cluster, as the command line does (docs/queries.md)."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

from kith.errors import error_of

WELL_KNOWN = (Path(".kith/ready.json"), Path("kith/ready.json"))


def addresses(
    router: str | Sequence[str] | None,
    ready_file: str | os.PathLike[str] | None,
    direct: bool,
) -> list[str]:
    """Returns the given addresses, or else those of ``KITH_ROUTER`` or of the ready file of ``kith dev``, with nodes if ``direct``."""
    if router is not None and ready_file is not None:
        raise TypeError("router and ready_file both name a cluster: give one of them")
    if ready_file is not None:
        return _read(Path(ready_file), direct)
    if router is not None:
        return _listed(router) if isinstance(router, str) else list(router)
    if named := os.environ.get("KITH_ROUTER"):
        return _listed(named)
    folders = (Path(), Path(os.environ.get("XDG_RUNTIME_DIR", "/nonexistent")))
    files = [folder / name for folder, name in zip(folders, WELL_KNOWN)]
    for file in files:
        if file.exists():
            return _read(file, direct)
    looked = ", ".join(str(file) for file in files)
    raise error_of(
        "no_cluster",
        f"no cluster is named and there is no ready file ({looked})",
        "start one with `kith dev`, or name one: kith.connect('HOST:PORT')",
    )


def _listed(text: str) -> list[str]:
    return [address.strip() for address in text.split(",")]


def _read(file: Path, direct: bool) -> list[str]:
    help = "it is there while `kith dev` runs: start it, or name a router: kith.connect('HOST:PORT')"
    try:
        ready = json.loads(file.read_text(encoding="utf-8-sig"))
        found = [ready["router"], *(router["addr"] for router in ready.get("routers", []))]
        nodes = [node["addr"] for node in ready.get("nodes", [])] if direct else []
    except OSError as error:
        raise error_of("ready_file_unreadable", f"read ready file {file}: {error}", help) from error
    except (ValueError, KeyError, TypeError) as error:
        raise error_of("ready_file_unreadable", f"{file} is no ready file: {error!r}", help) from error
    return list(dict.fromkeys(found + nodes))
