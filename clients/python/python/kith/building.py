"""Builds versions of graphs and stores into a folder or a bucket, with the same files as ``kith load graph`` and ``kith store build``."""

from __future__ import annotations

import base64
import json
import os
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from kith import _kith
from kith.security import Path

Files: TypeAlias = Path | Sequence[Path]
"""One file or several."""

_ROWS_OF_AN_ARRAY = 65536


@dataclass(frozen=True, slots=True)
class Dropped:
    """Wrong rows that were left out for the same reason."""

    reason: str
    count: int
    first_lines: list[str]
    """The first of these rows, unchanged."""


@dataclass(frozen=True, slots=True)
class BuiltStore:
    """A version of a store that was built."""

    store: str
    version: int
    location: str
    """The folder or URL of the version, which ``kith store push`` takes."""
    records: int
    bytes: int
    """The size of one replica."""
    duplicates: int
    """The number of rows that were dropped because another row with the same key was kept."""
    dropped: list[Dropped]
    manifest_hash: str
    """Identifies the content of the version. Versions with equal hashes have equal files."""


@dataclass(frozen=True, slots=True)
class BuiltComponent:
    """A component of a graph: an edge type, an entity kind or the list of members."""

    name: str
    role: str
    """``undirected``, ``directed``, ``entity`` or ``members-only``."""
    members: int
    edges: int
    entities: int
    """The number of entities; 0 unless the component is an entity kind."""
    self_loops: int
    """The number of edges that were dropped because both ends are the same member."""
    duplicates: int
    both_orders: int
    """The number of undirected edges that were given in both orders."""
    bytes: int
    manifest_hash: str


@dataclass(frozen=True, slots=True)
class ReadFile:
    """A file that was read to its end."""

    path: str
    role: str
    """``edges``, ``entities`` or ``members``."""
    rows: int
    columns: dict[str, str]
    """The columns that were read: their names in the file, or their places, by what they were read as (``src``, ``dst``, …)."""


@dataclass(frozen=True, slots=True)
class BuiltGraph:
    """A version of the components of a graph that was built."""

    graph: str
    version: int
    location: str
    """The folder or URL of the graph. It contains a folder for each component, which contains the version, under its number."""
    components: list[BuiltComponent]
    dropped: list[Dropped]
    files: list[ReadFile]
    """The files that were read; empty if the graph was built from rows."""


def build_store(
    store: str,
    out: Path,
    rows: Iterable[tuple[Any, Any]] | Mapping[Any, Any] | None = None,
    *,
    files: Files | None = None,
    partitions: int,
    key: Literal["id", "string", "bytes"] = "string",
    value: Literal["text", "bytes", "json", "record"] = "text",
    schema: Mapping[str, Any] | str | None = None,
    schema_file: Path | None = None,
    version: int | None = None,
    duplicates: Literal["refuse", "first", "last"] = "refuse",
    compress: int | None = None,
    max_errors: int = 0,
    fill_missing: bool = False,
    memory: int | None = None,
    threads: int | None = None,
    key_field: str | None = None,
    value_field: str | None = None,
    format: Literal["csv", "json", "parquet", "arrow", "f32le"] | None = None,
    header: bool | None = None,
    delimiter: str | None = None,
    dims: int | None = None,
    unpacked_max: int | None = None,
    times: Sequence[str] = (),
) -> BuiltStore:
    """Builds a version of ``store`` into the folder or URL ``out``, which may contain several versions, each under its number.

    ``rows`` are pairs of key and value, or a mapping. Keys are ``int``, ``str`` or ``bytes``. Values are ``str``, ``bytes``, what
    ``json.dumps`` accepts (for ``value="json"``), or mappings from fields to values (for ``value="record"``, which needs a schema).
    Rows are read a few thousand at a time and sorted. Up to ``memory`` bytes of them (by default 256 MiB) are kept in memory, the
    rest on disk. Instead of rows, ``files`` may name files, folders, patterns or URLs. The options from ``key_field`` on apply to
    files only. Records in files need no schema. Files may expand to ``unpacked_max`` bytes of rows, by default to 1,000 times their
    size and at least 1 GiB. Rows that all lack a field of the schema are refused, unless ``fill_missing`` says
    that its default, or null, is stored. ``times=["born:time-s"]`` names fields whose plain numbers are seconds (``time-us``,
    ``time-ns``) instead of milliseconds.

    ``partitions`` is the number that ``kith cluster status`` shows. By default, ``version`` is the current time. Equal input gives
    equal files, also on the command line. Raises ``kith.Refused`` if more than ``max_errors`` rows are wrong or a key is repeated,
    and ``kith.KithError`` for other errors; nothing is built then. Other threads run while rows are sorted and written. Ctrl-C ends
    a build.
    """
    given = {
        "partitions": partitions, "key": key, "value": value, "version": version, "duplicates": duplicates,
        "schema": schema if isinstance(schema, str | None) else json.dumps(schema), "schema_file": schema_file,
        "compress": compress, "max_errors": max_errors, "fill_missing": fill_missing, "memory": memory, "threads": threads,
        "key_field": key_field, "value_field": value_field, "format": format, "header": header, "delimiter": delimiter, "dims": dims,
        "unpacked_max": unpacked_max, "times": list(times),
    }  # fmt: skip
    if files is None:
        _only_of_files(key_field=key_field, value_field=value_field, format=format, header=header, delimiter=delimiter, dims=dims)
    if isinstance(rows, Mapping):
        rows = rows.items()
    if rows is not None and value in ("json", "record"):
        rows = _spelled(rows)
    named = None if files is None else [os.fspath(path) for path in _all(files)]
    built = _kith.build_store(store, os.fspath(out), given, rows, named)
    made, location, records, size, repeated, dropped, manifest_hash = built
    return BuiltStore(store, made, location, records, size, repeated, _dropped(dropped), manifest_hash)


def build_graph(
    graph: str,
    out: Path,
    *,
    partitions: int,
    edges: Iterable[Sequence[Any]] | Files | None = None,
    edge_type: str = "connection",
    directed: bool = False,
    columns: Sequence[str] = (),
    entities: Mapping[str, Iterable[Sequence[Any]]] | Files | None = None,
    entity_columns: Sequence[str] = (),
    members: Iterable[int] | Files | None = None,
    version: int | None = None,
    allow_empty: bool = False,
    memory: int | None = None,
    threads: int | None = None,
    src: str | int | None = None,
    dst: str | int | None = None,
    header: bool | None = None,
    delimiter: str | None = None,
    max_errors: int = 0,
    unpacked_max: int | None = None,
) -> BuiltGraph:
    """Builds components of ``graph`` into the folder or URL ``out``, as ``<out>/<graph>/<component>/<version>``.

    ``edges`` are rows ``(src, dst, *columns)``, or an array of two columns. ``entities`` are rows ``(member, entity, *columns)`` by
    kind, and ``members`` are ids. Alternatively, all of them are files (CSV, TSV, JSON lines, Parquet, Arrow), as ``kith load
    graph`` takes them, with the same usual names of columns; ``files`` of the result says which columns were read, and a
    ``UserWarning`` that times seem to be in another unit. The options from ``src`` on apply to files only. ``columns`` are names
    with a kind, such as ``"since:time"``; the kinds are ``time`` (``time-s``, ``time-us``, ``time-ns``), ``u64``, ``i64`` and
    ``f64``. Equal input gives equal files, also on the command line.

    Raises ``kith.Refused`` if a row or file is wrong or there are no rows, and ``kith.KithError`` for other errors; nothing is built
    then. Other threads run while edges are sorted and written. Ctrl-C ends a build.
    """
    given: dict[str, Any] = {
        "partitions": partitions, "version": version, "allow_empty": allow_empty, "memory": memory, "threads": threads,
    }  # fmt: skip
    sources = [source for source in (edges, entities, members) if source is not None]
    if all(_is_files(source) for source in sources):
        given |= {
            "edges": _all(edges), "edge_type": edge_type, "directed": directed, "columns": list(columns),
            "entities": _all(entities), "entity_columns": list(entity_columns), "members": _all(members),
            "src": None if src is None else str(src), "dst": None if dst is None else str(dst), "header": header,
            "delimiter": delimiter, "max_errors": max_errors, "unpacked_max": unpacked_max,
        }  # fmt: skip
        components = None
    elif any(_is_files(source) for source in sources):
        raise TypeError("edges, entities and members are all rows, or all files")
    else:
        _only_of_files(src=src, dst=dst, header=header, delimiter=delimiter, max_errors=max_errors or None)
        components = []
        if edges is not None:
            components.append((edge_type, "directed" if directed else "undirected", list(columns), _rows(edges)))
        if entities is not None:
            if not isinstance(entities, Mapping):
                raise TypeError("entities are rows by kind: a mapping from kinds to rows")
            for kind in sorted(entities):
                components.append((kind, "entity", list(entity_columns), _rows(entities[kind])))
        if members is not None:
            components.append(("members", "members-only", [], _rows(members)))
    made, built, dropped, read, doubts = _kith.build_graph(graph, os.fspath(out), given, components)
    location = f"{os.fspath(out).rstrip('/')}/{graph}"
    files = [ReadFile(os.fspath(path), role, rows, dict(taken)) for path, role, rows, taken in read]
    for doubt in doubts:
        warnings.warn(doubt, stacklevel=2)
    return BuiltGraph(graph, made, location, [BuiltComponent(*component) for component in built], _dropped(dropped), files)


def _only_of_files(**options: Any) -> None:
    for name, given in options.items():
        if given is not None:
            raise TypeError(f"{name} is about files, and these are rows")


def _is_files(source: Any) -> bool:
    if isinstance(source, str | os.PathLike):
        return True
    # A row is never a path, so the first item tells.
    return isinstance(source, list | tuple) and bool(source) and isinstance(source[0], str | os.PathLike)


def _all(files: Any) -> list[Path]:
    if files is None:
        return []
    return [files] if isinstance(files, str | os.PathLike) else list(files)


def _rows(rows: Any) -> Iterable[Any]:
    """Returns the rows of an array as Python numbers, converted in parts. Returns everything else unchanged."""
    if not (hasattr(rows, "tolist") and hasattr(rows, "shape")):
        return rows  # type: ignore[no-any-return]
    starts = range(0, len(rows), _ROWS_OF_AN_ARRAY)
    return (row for start in starts for row in rows[start : start + _ROWS_OF_AN_ARRAY].tolist())


def _spelled(rows: Iterable[tuple[Any, Any]]) -> Iterator[tuple[Any, str]]:
    """Returns the rows with their values as JSON text."""
    encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_plain).encode
    for key, value in rows:
        yield key, encode(value)


def _plain(value: Any) -> Any:
    """Returns what stands in JSON for bytes (base64), arrays and numbers of numpy (lists and numbers) and mappings (objects)."""
    if isinstance(value, bytes | bytearray | memoryview):
        return base64.b64encode(value).decode("ascii")
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"a value of type {type(value).__name__} cannot be JSON")


def _dropped(dropped: Iterable[tuple[str, int, list[str]]]) -> list[Dropped]:
    return [Dropped(*one) for one in dropped]
