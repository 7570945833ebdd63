"""The client for programs that wait."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Unpack

from kith import _kith
from kith.answers import Counts, value_of
from kith.cluster import addresses
from kith.options import Filter, Options, WriteOptions
from kith.plan import Building
from kith.security import Path, files
from kith.stream import Stream

if TYPE_CHECKING:
    from kith.plan import Conditions, Keys


def connect(
    router: str | Sequence[str] | None = None,
    *,
    ready_file: Path | None = None,
    direct: bool = False,
    transport: Literal["framed", "framed-tcp", "grpc"] = "framed",
    tls_ca: Path | None = None,
    tls_cert: Path | None = None,
    tls_key: Path | None = None,
    token_file: Path | None = None,
    **defaults: Unpack[Options],
) -> Client:
    """Connects to a cluster: to the first router of those named (``"host:port"``, several with commas or as a list) that answers,
    else to what ``KITH_ROUTER`` or the ready file of ``kith dev`` names.

    With ``direct`` it asks the nodes itself, one hop less. With ``tls_ca``, the authorities that sign the cluster's certificates,
    connections are TLS; ``tls_cert`` and ``tls_key``, or ``token_file``, say who asks. What is not given is taken from
    ``KITH_TLS_CA``, ``KITH_TLS_CERT``, ``KITH_TLS_KEY`` and ``KITH_TOKEN_FILE``; files (PEM, and a token alone) that change are read again.

    The other options hold for every question that does not say otherwise. Raises ``kith.KithError`` if nobody answers, or if those
    who do refuse.
    """
    found = addresses(router, ready_file, direct)
    secured = files(tls_ca, tls_cert, tls_key, token_file)
    return Client(_kith.connect(found, direct, transport, secured).wait(), defaults)


class Client:
    """Connections to one cluster. May be shared by threads; the interpreter is free while one waits."""

    def __init__(self, core: _kith.Client, defaults: Options) -> None:
        self._core = core
        self._defaults = defaults

    def get(self, store: str, key: int | str | bytes, default: Any = None, **options: Unpack[Options]) -> Any:
        """The value of one key; ``default`` if the store has no such key, which a replica has proven."""
        return value_of(self._core.get(store, key, {**self._defaults, **options}).wait(), default)

    def get_many(self, store: str, keys: Keys, **options: Unpack[Options]) -> _kith.Batch:
        """What became of each key, in their order, repeats included, all of one version. At most 100,000 keys.

        Raises if a key has no proven answer, unless ``partial=True``: then it is in the batch as ``ERROR`` or ``UNANSWERED``.
        """
        batch: _kith.Batch = self._core.multi_get(store, keys, {**self._defaults, **options}).wait()
        return batch

    def stream(self, store: str, keys: Keys, **options: Unpack[Options]) -> Stream:
        """Begins to read ``keys`` and hands their records on as they arrive, in any order, all of one version; then a footer.

        The deadline is for all of it, and for what the loop over it does: a program that takes longer is cut.
        """
        return Stream(self._core.stream(store, keys, {**self._defaults, **options}))

    def compute(self, store: str) -> Compute:
        """Scores, projections and counts of records, worked out on nodes."""
        return Compute(self, store)

    def aggregate(self, store: str) -> Aggregate:
        """Counts over records, made on nodes."""
        return Aggregate(self, store)

    def graph(self, name: str, *, edge_type: str | None = None, direction: str | None = None) -> Graph:
        """A graph, along one edge type (its first, if not told) in one direction: ``out``, ``in`` or ``both``."""
        return Graph(self, name, {"edge_type": edge_type, "direction": direction})

    def shape(self, store: str) -> tuple[str, str]:
        """What the keys and the values of a store are: ``("id", "record")``."""
        shape: tuple[str, str] = self._core.shape(store).wait()
        return shape


class Compute(Building):
    """``client.compute("pages").project("title").dot("embed", query, as_="score").top_k("score", 20).execute(keys)``"""

    def __init__(self, client: Client, store: str) -> None:
        super().__init__()
        self._client = client
        self._store = store

    def execute(self, keys: Keys, **options: Unpack[Options]) -> _kith.Batch:
        """What it makes of the records of ``keys``: in their order, or the best first and only they."""
        given = {**self._client._defaults, **options}
        batch: _kith.Batch = self._client._core.compute(self._store, self._plan, keys, given).wait()
        return batch

    def stream(self, keys: Keys, **options: Unpack[Options]) -> Stream:
        """Begins to work it out for the records of ``keys`` and hands results on as they arrive, in any order; then a footer. Without ``top_k``."""
        given = {**self._client._defaults, **options}
        return Stream(self._client._core.compute_stream(self._store, self._plan, keys, given))


class Aggregate:
    """Counts over records of a store. A field of a list counts by item; nulls are not counted."""

    def __init__(self, client: Client, store: str) -> None:
        self._client = client
        self._store = store

    def count_by_value(self, field: str, keys: Keys, top: int = 20, **options: Unpack[Options]) -> Counts:
        """How often each value of ``field`` occurs: the ``top`` most frequent, of equal counts the least first."""
        given = {**self._client._defaults, **options}
        core = self._client._core
        return Counts(*core.count_by_value(self._store, field, keys, top, given).wait())

    def count_by_bucket(
        self, field: str, keys: Keys, buckets: dict[str, Conditions], **options: Unpack[Options]
    ) -> Counts:
        """How many values of ``field`` are in each bucket: ``{"young": {"lt": 18}, "other": {"ge": 18}}``."""
        given = {**self._client._defaults, **options}
        core = self._client._core
        return Counts(*core.count_by_bucket(self._store, field, keys, buckets, given).wait())


class Graph:
    """Questions of a graph; docs/queries.md says what each answers."""

    def __init__(self, client: Client, name: str, along: dict[str, Any]) -> None:
        self._client = client
        self._name = name
        self._along = along

    def _ask(self, op: str, fields: dict[str, Any], options: Options) -> Any:
        # Answers of graphs are whole: a default that reads have says nothing about them.
        given = {**self._client._defaults, "partial": None, **options}
        return self._client._core.graph(self._name, op, {**self._along, **fields}, given).wait()

    def connections(self, id: int, **options: Unpack[Options]) -> list[int]:
        """The first degree of a member, ascending."""
        ids: list[int] = self._ask("connections", {"id": id}, options)
        return ids

    def entities(self, id: int, kind: str, **options: Unpack[Options]) -> list[int]:
        """The entities of one kind that a member has."""
        ids: list[int] = self._ask("entities", {"id": id, "kind": kind}, options)
        return ids

    def members(self, kind: str, entity: int, **options: Unpack[Options]) -> list[int]:
        """The members that an entity has."""
        ids: list[int] = self._ask("members", {"kind": kind, "entity": entity}, options)
        return ids

    def network(self, id: int, **options: Unpack[Options]) -> dict[str, Any]:
        """First and second degree: ``id``, ``degree``, ``n2``, ``net``, ``fof``, and the ids ``first`` and ``second``."""
        network: dict[str, Any] = self._ask("network", {"id": id, "return": "ids"}, options)
        return network

    def network_size(self, id: int, **options: Unpack[Options]) -> int:
        """How many members are one or two steps away."""
        size: int = self._ask("network", {"id": id, "return": "size"}, options)["net"]
        return size

    def distance(self, id: int, to: Sequence[int], **options: Unpack[Options]) -> list[int | None]:
        """How far each target is: 0 to 3, ``None`` if farther."""
        far: list[int | None] = self._ask("distance", {"id": id, "to": to}, options)
        return far

    def path(self, id: int, to: int, max: int = 6, **options: Unpack[Options]) -> list[int]:
        """A shortest path with both ends; empty if there is none of at most ``max`` edges."""
        path: list[int] = self._ask("path", {"id": id, "to": to, "max": max}, options)
        return path

    def common(self, id: int, to: int, kind: str | None = None, **options: Unpack[Options]) -> list[int]:
        """What two members share: connections, or entities of a kind."""
        ids: list[int] = self._ask("common", {"id": id, "to": to, "kind": kind}, options)
        return ids

    def has_common(self, id: int, to: int, kind: str | None = None, **options: Unpack[Options]) -> bool:
        """Whether they share one."""
        asked = {"id": id, "to": to, "kind": kind, "return": "exists"}
        exists: bool = self._ask("common", asked, options)
        return exists

    def suggest(self, id: int, k: int = 20, **options: Unpack[Options]) -> list[tuple[int, int]]:
        """People that a member may know, with the number of common connections, most first."""
        suggestions: list[tuple[int, int]] = self._ask("suggest", {"id": id, "k": k}, options)
        return suggestions

    def degree(
        self,
        ids: Sequence[int],
        filter: Filter | None = None,
        **options: Unpack[Options],
    ) -> list[int | None]:
        """How many connections each member has; None if it is not in the graph.

        With a filter, only edges count whose value in a column lies in a range: ("since", 2015, 2020), both ends included and
        either end None if it is open.
        """
        asked = {"ids": list(ids), "filter": filter}
        degrees: list[int | None] = self._ask("degree", asked, options)
        return degrees

    def edges(
        self,
        id: int,
        columns: Sequence[str] | None = None,
        *,
        order_by: str | None = None,
        descending: bool = False,
        filter: Filter | None = None,
        limit: int | None = None,
        after: str | None = None,
        **options: Unpack[Options],
    ) -> dict[str, Any]:
        """The edges of a member with their columns (all, unless they are named), sorted by id or by a column.

        The answer has ``edges``, a list of dictionaries with ``id`` and the columns, and ``after``, the cursor of the next page or
        None. A cursor belongs to one version of the edge type: once that is gone, it raises ``kith.KithError`` with the code
        ``cursor_expired``.
        """
        asked = {
            "id": id,
            "columns": None if columns is None else list(columns),
            "order_by": order_by,
            "descending": descending,
            "filter": filter,
            "limit": limit,
            "after": after,
        }
        page: dict[str, Any] = self._ask("edges", asked, options)
        return page

    def _write(self, op: str, fields: dict[str, Any], options: WriteOptions) -> dict[str, Any]:
        given = {"deadline": options.pop("deadline", self._client._defaults.get("deadline"))}
        data = fields.get("data")
        asked = {**fields, **options, "data": None if data is None else json.dumps(dict(data))}
        done: dict[str, Any] = self._client._core.write(self._name, op, asked, given).wait()
        return done

    def object_add(
        self,
        type: str,
        data: Mapping[str, Any] | None = None,
        *,
        id: int | None = None,
        near: int | None = None,
        **options: Unpack[WriteOptions],
    ) -> dict[str, Any]:
        """Creates an object of a live graph: ``id``, ``version`` and ``ticket``.

        ``id`` imports one; ``near`` is an object whose partition the new one shares.
        """
        return self._write("object_add", {"type": type, "data": data, "id": id, "near": near}, options)

    def object_update(
        self, id: int, data: Mapping[str, Any], **options: Unpack[WriteOptions]
    ) -> dict[str, Any]:
        """Replaces the fields of an object that ``data`` has: ``version``, ``ticket`` and ``existed``."""
        return self._write("object_update", {"id": id, "data": data}, options)

    def object_delete(self, id: int, **options: Unpack[WriteOptions]) -> dict[str, Any]:
        """Deletes an object; its associations stay."""
        return self._write("object_delete", {"id": id}, options)

    def assoc_add(
        self,
        id1: int,
        type: str,
        id2: int,
        data: Mapping[str, Any] | None = None,
        *,
        time: int | None = None,
        **options: Unpack[WriteOptions],
    ) -> dict[str, Any]:
        """Creates or overwrites an association, and its inverse if its type has one.

        ``time`` is by convention in milliseconds since 1970, and now if it is left out.
        """
        asked = {"id1": id1, "type": type, "id2": id2, "time": time, "data": data}
        return self._write("assoc_add", asked, options)

    def assoc_delete(
        self, id1: int, type: str, id2: int, **options: Unpack[WriteOptions]
    ) -> dict[str, Any]:
        """Deletes an association, and its inverse if its type has one."""
        return self._write("assoc_delete", {"id1": id1, "type": type, "id2": id2}, options)

    def assoc_change_type(
        self, id1: int, type: str, id2: int, new_type: str, **options: Unpack[WriteOptions]
    ) -> dict[str, Any]:
        """Gives an association another type, if it exists."""
        asked = {"id1": id1, "type": type, "id2": id2, "new_type": new_type}
        return self._write("assoc_change_type", asked, options)

    def object_get(self, id: int, **options: Unpack[Options]) -> dict[str, Any] | None:
        """An object of a live graph: ``id``, ``type``, ``version`` and ``data``; None if there is none."""
        found: dict[str, Any] | None = self._ask("object_get", {"id": id}, options)
        return found

    def object_get_many(
        self, ids: Sequence[int], **options: Unpack[Options]
    ) -> list[dict[str, Any] | None]:
        """What ``object_get`` returns, for each id."""
        found: list[dict[str, Any] | None] = self._ask("object_get", {"ids": list(ids)}, options)
        return found

    def assoc_get(
        self,
        id1: int,
        type: str,
        ids: Sequence[int],
        *,
        high: int | None = None,
        low: int | None = None,
        with_data: bool = False,
        with_versions: bool = False,
        **options: Unpack[Options],
    ) -> list[tuple[Any, ...]]:
        """Returns the associations of a live graph that lead from ``id1`` to ``ids``, newest first: tuples ``(id2, time)``.

        ``high`` and ``low`` are the latest and the earliest time. With ``with_data``, each tuple also has the fields of the
        association, as a dictionary. With ``with_versions``, the last element of each tuple is the version of the association,
        which a write can give as ``if_version``. With both, a tuple is ``(id2, time, data, version)``.
        """
        asked: dict[str, Any] = {"id1": id1, "type": type, "ids": list(ids), "high": high, "low": low}
        asked |= {"with_data": with_data, "with_versions": with_versions}
        out: list[tuple[Any, ...]] = self._ask("assoc_get", asked, options)
        return out

    def assoc_count(self, id1: int, type: str, **options: Unpack[Options]) -> int:
        """How many associations of a type leave an object."""
        count: int = self._ask("assoc_count", {"id1": id1, "type": type}, options)
        return count

    def assoc_range(
        self,
        id1: int,
        type: str,
        *,
        pos: int | None = None,
        after: tuple[int, int] | None = None,
        limit: int | None = None,
        with_data: bool = False,
        with_versions: bool = False,
        **options: Unpack[Options],
    ) -> dict[str, Any]:
        """Associations that leave an object, newest first, from an index or from behind a place ``(time, id2)`` on.

        The answer has ``out``, tuples as of ``assoc_get``, and ``more``: whether further ones follow.
        """
        asked: dict[str, Any] = {"id1": id1, "type": type, "pos": pos, "after": after, "limit": limit}
        asked |= {"with_data": with_data, "with_versions": with_versions}
        page: dict[str, Any] = self._ask("assoc_range", asked, options)
        return page

    def assoc_time_range(
        self,
        id1: int,
        type: str,
        *,
        high: int | None = None,
        low: int | None = None,
        limit: int | None = None,
        with_data: bool = False,
        with_versions: bool = False,
        **options: Unpack[Options],
    ) -> dict[str, Any]:
        """Associations that leave an object and whose time lies in a range, newest first; the answer is as of ``assoc_range``."""
        asked: dict[str, Any] = {"id1": id1, "type": type, "high": high, "low": low, "limit": limit}
        asked |= {"with_data": with_data, "with_versions": with_versions}
        page: dict[str, Any] = self._ask("assoc_time_range", asked, options)
        return page
