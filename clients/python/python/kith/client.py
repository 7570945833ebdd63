"""The synchronous client."""

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
    """Connects to a cluster.

    ``router`` is the address of a router (``"host:port"``), or several addresses, as a list or separated by commas. The client
    connects to the first one that answers. Without ``router``, the addresses are those of ``KITH_ROUTER``, or else those of the
    ready file of ``kith dev``. With ``direct``, the client sends its requests to the nodes itself, which saves a hop.

    With ``tls_ca``, the certificates of the authorities that signed the cluster's certificates, connections use TLS.
    ``tls_cert`` and ``tls_key``, or ``token_file``, prove who the caller is. Certificates and keys are PEM files; a token file
    contains only the token. The default of each is the file that ``KITH_TLS_CA``, ``KITH_TLS_CERT``, ``KITH_TLS_KEY`` or
    ``KITH_TOKEN_FILE`` names. Files that change are read again.

    All other options are defaults for the requests of this client. Raises ``kith.KithError`` if no address answers, or if the
    cluster refuses the caller.
    """
    found = addresses(router, ready_file, direct)
    secured = files(tls_ca, tls_cert, tls_key, token_file)
    return Client(_kith.connect(found, direct, transport, secured).wait(), defaults)


class Client:
    """Connections to one cluster. Threads may share a client; other threads run while one of them waits for an answer."""

    def __init__(self, core: _kith.Client, defaults: Options) -> None:
        self._core = core
        self._defaults = defaults

    def get(self, store: str, key: int | str | bytes, default: Any = None, **options: Unpack[Options]) -> Any:
        """Returns the value of a key, or ``default`` if the store does not have the key.

        Raises ``kith.KithError`` if no replica could tell.
        """
        return value_of(self._core.get(store, key, {**self._defaults, **options}).wait(), default)

    def get_many(self, store: str, keys: Keys, **options: Unpack[Options]) -> _kith.Batch:
        """Returns an entry for each key, in the order of ``keys``, all from one version of the store. At most 100,000 keys.

        A key that is given twice has two entries. Raises ``kith.KithError`` if a key was neither found nor proven absent. With
        ``partial=True``, the batch contains such keys as ``ERROR`` or ``UNANSWERED`` instead.
        """
        batch: _kith.Batch = self._core.multi_get(store, keys, {**self._defaults, **options}).wait()
        return batch

    def stream(self, store: str, keys: Keys, **options: Unpack[Options]) -> Stream:
        """Returns the entries of ``keys`` as they arrive, in any order, all from one version of the store, and then a footer.

        The deadline applies to the whole stream, including the time that the caller spends between entries. A stream that takes
        longer is cut off.
        """
        return Stream(self._core.stream(store, keys, {**self._defaults, **options}))

    def compute(self, store: str) -> Compute:
        """Returns a plan for values that the nodes compute from records, such as scores. Add steps to it, then execute it."""
        return Compute(self, store)

    def aggregate(self, store: str) -> Aggregate:
        """Returns what counts records on the nodes."""
        return Aggregate(self, store)

    def graph(self, name: str, *, edge_type: str | None = None, direction: str | None = None) -> Graph:
        """Returns a graph whose queries follow one edge type (by default its first one) in one direction: ``out``, ``in`` or ``both``."""
        return Graph(self, name, {"edge_type": edge_type, "direction": direction})

    def shape(self, store: str) -> tuple[str, str]:
        """Returns the types of the keys and of the values of a store, such as ``("id", "record")``."""
        shape: tuple[str, str] = self._core.shape(store).wait()
        return shape


class Compute(Building):
    """A plan: ``client.compute("pages").project("title").dot("embed", query, as_="score").top_k("score", 20).execute(keys)``"""

    def __init__(self, client: Client, store: str) -> None:
        super().__init__()
        self._client = client
        self._store = store

    def execute(self, keys: Keys, **options: Unpack[Options]) -> _kith.Batch:
        """Returns the results for the records of ``keys``, in the order of ``keys``; with ``top_k``, only the best ones, best first."""
        given = {**self._client._defaults, **options}
        batch: _kith.Batch = self._client._core.compute(self._store, self._plan, keys, given).wait()
        return batch

    def stream(self, keys: Keys, **options: Unpack[Options]) -> Stream:
        """Returns the results for the records of ``keys`` as they arrive, in any order, and then a footer. Not for plans with ``top_k``."""
        given = {**self._client._defaults, **options}
        return Stream(self._client._core.compute_stream(self._store, self._plan, keys, given))


class Aggregate:
    """Counts the records of a store. Each item of a list counts by itself; nulls are not counted."""

    def __init__(self, client: Client, store: str) -> None:
        self._client = client
        self._store = store

    def count_by_value(self, field: str, keys: Keys, top: int = 20, **options: Unpack[Options]) -> Counts:
        """Counts how often each value of ``field`` occurs; each item of a list counts.

        Returns the ``top`` most frequent values, most frequent first. Among values with equal counts, the smallest comes first.
        """
        given = {**self._client._defaults, **options}
        core = self._client._core
        return Counts(*core.count_by_value(self._store, field, keys, top, given).wait())

    def count_by_bucket(
        self, field: str, keys: Keys, buckets: dict[str, Conditions], **options: Unpack[Options]
    ) -> Counts:
        """Counts how many values of ``field`` are in each bucket, such as ``{"young": {"lt": 18}, "other": {"ge": 18}}``."""
        given = {**self._client._defaults, **options}
        core = self._client._core
        return Counts(*core.count_by_bucket(self._store, field, keys, buckets, given).wait())


class Graph:
    """Queries of a graph (docs/queries.md); of a live graph, also reads and writes of objects and associations (docs/live-graph.md)."""

    def __init__(self, client: Client, name: str, along: dict[str, Any]) -> None:
        self._client = client
        self._name = name
        self._along = along

    def _ask(self, op: str, fields: dict[str, Any], options: Options) -> Any:
        # Answers of graphs are complete: the default for `partial` concerns reads of stores only.
        given = {**self._client._defaults, "partial": None, **options}
        return self._client._core.graph(self._name, op, {**self._along, **fields}, given).wait()

    def connections(self, id: int, **options: Unpack[Options]) -> list[int]:
        """Returns the connections (first degree) of a member, ascending by id."""
        ids: list[int] = self._ask("connections", {"id": id}, options)
        return ids

    def entities(self, id: int, kind: str, **options: Unpack[Options]) -> list[int]:
        """Returns the entities of one kind that a member has, ascending by id."""
        ids: list[int] = self._ask("entities", {"id": id, "kind": kind}, options)
        return ids

    def members(self, kind: str, entity: int, **options: Unpack[Options]) -> list[int]:
        """Returns the members that have an entity, ascending by id."""
        ids: list[int] = self._ask("members", {"kind": kind, "entity": entity}, options)
        return ids

    def network(self, id: int, **options: Unpack[Options]) -> dict[str, Any]:
        """Returns the sizes (``degree``, ``n2``, ``net``, ``fof``) and the ids (``first``, ``second``) of the first and second degree."""
        network: dict[str, Any] = self._ask("network", {"id": id, "return": "ids"}, options)
        return network

    def network_size(self, id: int, **options: Unpack[Options]) -> int:
        """Returns how many members are one or two steps away."""
        size: int = self._ask("network", {"id": id, "return": "size"}, options)["net"]
        return size

    def distance(self, id: int, to: Sequence[int], **options: Unpack[Options]) -> list[int | None]:
        """Returns the distance to each target: 0 to 3, or ``None`` if it is greater."""
        far: list[int | None] = self._ask("distance", {"id": id, "to": to}, options)
        return far

    def path(self, id: int, to: int, max: int = 6, **options: Unpack[Options]) -> list[int]:
        """Returns a shortest path, including both ends; an empty list if every path has more than ``max`` edges."""
        path: list[int] = self._ask("path", {"id": id, "to": to, "max": max}, options)
        return path

    def common(self, id: int, to: int, kind: str | None = None, **options: Unpack[Options]) -> list[int]:
        """Returns the connections that two members have in common; with ``kind``, the entities of that kind."""
        ids: list[int] = self._ask("common", {"id": id, "to": to, "kind": kind}, options)
        return ids

    def has_common(self, id: int, to: int, kind: str | None = None, **options: Unpack[Options]) -> bool:
        """Returns whether two members have anything in common: a connection or an entity of any kind, or only of ``kind``."""
        asked = {"id": id, "to": to, "kind": kind, "return": "exists"}
        exists: bool = self._ask("common", asked, options)
        return exists

    def suggest(self, id: int, k: int = 20, **options: Unpack[Options]) -> list[tuple[int, int]]:
        """Returns ``k`` members whom a member may know, each with the number of common connections, greatest number first."""
        suggestions: list[tuple[int, int]] = self._ask("suggest", {"id": id, "k": k}, options)
        return suggestions

    def degree(
        self,
        ids: Sequence[int],
        filter: Filter | None = None,
        **options: Unpack[Options],
    ) -> list[int | None]:
        """Returns the number of connections of each member, or ``None`` if the member is not in the graph.

        With a filter such as ``("since", 2015, 2020)``, only edges count whose value in the column lies in the range. The range
        includes both ends; an end that is ``None`` is open.
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
        """Returns the edges of a member, sorted by id or by a column, with all columns or with those that ``columns`` names.

        The answer has ``edges``, a list of dictionaries with ``id`` and the columns, and ``after``, the cursor of the next page, or
        ``None`` if there is no next page. A cursor belongs to one version of the edge type. Once that version is gone, the cursor
        raises ``kith.KithError`` with the code ``cursor_expired``.
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
        """Creates an object of a live graph. Returns its ``id`` and ``version``, and a ``ticket``.

        By default, the graph chooses the id; ``id`` is for objects that have one already. ``near`` is the id of an object: the
        new object is placed in the same partition.
        """
        return self._write("object_add", {"type": type, "data": data, "id": id, "near": near}, options)

    def object_update(
        self, id: int, data: Mapping[str, Any], **options: Unpack[WriteOptions]
    ) -> dict[str, Any]:
        """Replaces those fields of an object that ``data`` has. Returns ``version``, ``ticket`` and ``existed``."""
        return self._write("object_update", {"id": id, "data": data}, options)

    def object_delete(self, id: int, **options: Unpack[WriteOptions]) -> dict[str, Any]:
        """Deletes an object, but not its associations. Returns the same as ``object_update``."""
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
        """Creates or replaces an association, and its inverse if its type has one. Returns the same as ``object_update``.

        With ``if_exists=False``, an association that exists is not replaced: ``condition_failed``. ``time`` is by convention in milliseconds since 1970; the default is the current time.
        """
        asked = {"id1": id1, "type": type, "id2": id2, "time": time, "data": data}
        return self._write("assoc_add", asked, options)

    def assoc_delete(
        self, id1: int, type: str, id2: int, **options: Unpack[WriteOptions]
    ) -> dict[str, Any]:
        """Deletes an association, and its inverse if its type has one. Returns the same as ``object_update``."""
        return self._write("assoc_delete", {"id1": id1, "type": type, "id2": id2}, options)

    def assoc_change_type(
        self, id1: int, type: str, id2: int, new_type: str, **options: Unpack[WriteOptions]
    ) -> dict[str, Any]:
        """Changes the type of an association, if the association exists. Returns the same as ``object_update``."""
        asked = {"id1": id1, "type": type, "id2": id2, "new_type": new_type}
        return self._write("assoc_change_type", asked, options)

    def object_get(self, id: int, **options: Unpack[Options]) -> dict[str, Any] | None:
        """Returns ``id``, ``type``, ``version`` and ``data`` of an object of a live graph, or ``None`` if there is no such object."""
        found: dict[str, Any] | None = self._ask("object_get", {"id": id}, options)
        return found

    def object_get_many(
        self, ids: Sequence[int], **options: Unpack[Options]
    ) -> list[dict[str, Any] | None]:
        """Returns for each id what ``object_get`` returns, in the order of ``ids``."""
        found: list[dict[str, Any] | None] = self._ask("object_get", {"ids": list(ids)}, options)
        return found

    def object_find(
        self,
        type: str,
        field: str,
        value: Any,
        *,
        limit: int | None = None,
        after: int | None = None,
        **options: Unpack[Options],
    ) -> list[int]:
        """Returns the ids of the objects of a live graph that have a value in a field with an index, in ascending order.

        A field has an index if it is declared with ``index`` or ``unique``. ``bytes`` are given as base64 text. ``limit`` is
        the most ids to return; ``after`` leaves out the ids up to this one.
        """
        asked = {"type": type, "field": field, "values": [json.dumps(value)], "limit": limit, "after": after}
        found: list[int] = self._ask("object_find", asked, options)
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
        """Returns how many associations of a type lead from ``id1``."""
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
        """Returns associations that lead from ``id1``, newest first: those from the index ``pos`` on, or those that follow ``after``.

        ``after`` is the ``(time, id2)`` of an association, usually the last one of the previous page. The answer has ``out``, a
        list of tuples like those of ``assoc_get``, and ``more``, which says whether further associations follow.
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
        """Returns associations that lead from ``id1`` and whose time is from ``low`` to ``high``, newest first, like ``assoc_range``."""
        asked: dict[str, Any] = {"id1": id1, "type": type, "high": high, "low": low, "limit": limit}
        asked |= {"with_data": with_data, "with_versions": with_versions}
        page: dict[str, Any] = self._ask("assoc_time_range", asked, options)
        return page
