"""The methods of both clients for graphs.

Operations whose answers are as JSON need no method here: those of the registry that have none get one when this module is
imported. The others below are typed, or their answers have a form of their own.
"""

from __future__ import annotations

import inspect
import json
import keyword
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, Unpack

from kith import _kith
from kith.calls import Asking, request
from kith.methods import ClientMethods
from kith.options import Filter, Options, WriteOptions


class GraphMethods(Asking):
    """Queries of a graph (docs/queries.md); of a live graph, also reads and writes of objects and associations (docs/live-graph.md)."""

    def __init__(self, client: ClientMethods[Any, Any, Any, Any], name: str, along: dict[str, Any]) -> None:
        self._client = client
        self._name = name
        self._along = along

    async def _ask(self, op: str, fields: Mapping[str, Any], options: Mapping[str, Any]) -> Any:
        # Answers of graphs are complete: the default for `partial` concerns reads of stores only.
        given = {**self._client._defaults, "partial": None, **options}
        return await self._reply(self._client._core.graph(self._name, op, {**self._along, **fields}, given))

    @request
    async def ask(self, op: str, /, **arguments: Any) -> Any:
        """Asks any operation of docs/queries.md by its name, with its fields and options: ``graph.ask("distance", id=1, to=[2])``.

        A field that is called like a keyword of Python has an underscore behind its name: ``return_``. Returns what the operation
        returns as JSON: a dictionary or, if it has one member, the value of that member.
        """
        return await self._ask(op, {_field(name): value for name, value in arguments.items()}, {})

    @request
    async def connections(self, id: int, **options: Unpack[Options]) -> list[int]:
        """Returns the connections (first degree) of a member, ascending by id."""
        ids: list[int] = await self._ask("connections", {"id": id}, options)
        return ids

    @request
    async def entities(self, id: int, kind: str, **options: Unpack[Options]) -> list[int]:
        """Returns the entities of one kind that a member has, ascending by id."""
        ids: list[int] = await self._ask("entities", {"id": id, "kind": kind}, options)
        return ids

    @request
    async def members(self, kind: str, entity: int, **options: Unpack[Options]) -> list[int]:
        """Returns the members that have an entity, ascending by id."""
        ids: list[int] = await self._ask("members", {"kind": kind, "entity": entity}, options)
        return ids

    @request
    async def network(self, id: int, **options: Unpack[Options]) -> dict[str, Any]:
        """Returns the sizes (``degree``, ``n2``, ``net``, ``fof``) and the ids (``first``, ``second``) of the first and second degree."""
        network: dict[str, Any] = await self._ask("network", {"id": id, "return": "ids"}, options)
        return network

    @request
    async def network_size(self, id: int, **options: Unpack[Options]) -> int:
        """Returns how many members are one or two steps away."""
        size: int = (await self._ask("network", {"id": id, "return": "size"}, options))["net"]
        return size

    @request
    async def distance(self, id: int, to: Sequence[int], **options: Unpack[Options]) -> list[int | None]:
        """Returns the distance to each target: 0 to 3, or ``None`` if it is greater."""
        far: list[int | None] = await self._ask("distance", {"id": id, "to": to}, options)
        return far

    @request
    async def path(self, id: int, to: int, max: int = 6, **options: Unpack[Options]) -> list[int]:
        """Returns a shortest path, including both ends; an empty list if every path has more than ``max`` edges."""
        path: list[int] = (await self._ask("path", {"id": id, "to": to, "max": max}, options))["path"]
        return path

    @request
    async def common(self, id: int, to: int, kind: str | None = None, **options: Unpack[Options]) -> list[int]:
        """Returns the connections that two members have in common; with ``kind``, the entities of that kind."""
        ids: list[int] = await self._ask("common", {"id": id, "to": to, "kind": kind}, options)
        return ids

    @request
    async def has_common(self, id: int, to: int, kind: str | None = None, **options: Unpack[Options]) -> bool:
        """Returns whether two members have anything in common: a connection or an entity of any kind, or only of ``kind``."""
        asked = {"id": id, "to": to, "kind": kind, "return": "exists"}
        exists: bool = await self._ask("common", asked, options)
        return exists

    @request
    async def suggest(self, id: int, k: int = 20, **options: Unpack[Options]) -> list[tuple[int, int]]:
        """Returns ``k`` members whom a member may know, each with the number of common connections, greatest number first."""
        suggestions: list[tuple[int, int]] = await self._ask("suggest", {"id": id, "k": k}, options)
        return suggestions

    @request
    async def degree(
        self,
        ids: Sequence[int],
        filter: Filter | None = None,
        **options: Unpack[Options],
    ) -> list[int | None]:
        """Returns the number of connections of each member, or ``None`` if the member is not in the graph.

        With a filter such as ``("since", 2015, 2020)``, only edges count whose value in the column lies in the range. The range
        includes both ends; an end that is ``None`` is open.
        """
        degrees: list[int | None] = await self._ask("degree", {"ids": ids, "filter": filter}, options)
        return degrees

    @request
    async def edges(
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
            "columns": columns,
            "order_by": order_by,
            "descending": descending,
            "filter": filter,
            "limit": limit,
            "after": after,
        }
        page: dict[str, Any] = await self._ask("edges", asked, options)
        return page

    async def _write(self, op: str, fields: dict[str, Any], options: WriteOptions) -> dict[str, Any]:
        given = {"deadline": options.pop("deadline", self._client._defaults.get("deadline"))}
        data = fields.get("data")
        asked = {**fields, **options, "data": None if data is None else json.dumps(dict(data))}
        done: dict[str, Any] = await self._reply(self._client._core.write(self._name, op, asked, given))
        return done

    @request
    async def object_add(
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
        return await self._write("object_add", {"type": type, "data": data, "id": id, "near": near}, options)

    @request
    async def object_update(
        self, id: int, data: Mapping[str, Any], **options: Unpack[WriteOptions]
    ) -> dict[str, Any]:
        """Replaces those fields of an object that ``data`` has. Returns ``version``, ``ticket`` and ``existed``."""
        return await self._write("object_update", {"id": id, "data": data}, options)

    @request
    async def object_delete(self, id: int, **options: Unpack[WriteOptions]) -> dict[str, Any]:
        """Deletes an object, but not its associations. Returns the same as ``object_update``."""
        return await self._write("object_delete", {"id": id}, options)

    @request
    async def assoc_add(
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

        With ``if_exists=False``, an association that exists is not replaced: ``condition_failed``. ``time`` is by convention in
        milliseconds since 1970; the default is the current time.
        """
        asked = {"id1": id1, "type": type, "id2": id2, "time": time, "data": data}
        return await self._write("assoc_add", asked, options)

    @request
    async def assoc_delete(
        self, id1: int, type: str, id2: int, **options: Unpack[WriteOptions]
    ) -> dict[str, Any]:
        """Deletes an association, and its inverse if its type has one. Returns the same as ``object_update``."""
        return await self._write("assoc_delete", {"id1": id1, "type": type, "id2": id2}, options)

    @request
    async def assoc_change_type(
        self, id1: int, type: str, id2: int, new_type: str, **options: Unpack[WriteOptions]
    ) -> dict[str, Any]:
        """Changes the type of an association, if the association exists. Returns the same as ``object_update``."""
        asked = {"id1": id1, "type": type, "id2": id2, "new_type": new_type}
        return await self._write("assoc_change_type", asked, options)

    @request
    async def object_get(self, id: int, **options: Unpack[Options]) -> dict[str, Any] | None:
        """Returns ``id``, ``type``, ``version`` and ``data`` of an object of a live graph, or ``None`` if there is no such object."""
        found: dict[str, Any] | None = await self._ask("object_get", {"id": id}, options)
        return found

    @request
    async def object_get_many(
        self, ids: Sequence[int], **options: Unpack[Options]
    ) -> list[dict[str, Any] | None]:
        """Returns for each id what ``object_get`` returns, in the order of ``ids``."""
        found: list[dict[str, Any] | None] = await self._ask("object_get", {"ids": ids}, options)
        return found

    @request
    async def object_find(
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
        asked = {"type": type, "field": field, "values": [value], "limit": limit, "after": after}
        found: list[int] = await self._ask("object_find", asked, options)
        return found

    @request
    async def assoc_get(
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
        asked: dict[str, Any] = {"id1": id1, "type": type, "ids": ids, "high": high, "low": low}
        asked |= {"with_data": with_data, "with_versions": with_versions}
        out: list[tuple[Any, ...]] = await self._ask("assoc_get", asked, options)
        return out

    @request
    async def assoc_count(self, id1: int, type: str, **options: Unpack[Options]) -> int:
        """Returns how many associations of a type lead from ``id1``."""
        count: int = await self._ask("assoc_count", {"id1": id1, "type": type}, options)
        return count

    @request
    async def assoc_range(
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
        page: dict[str, Any] = await self._ask("assoc_range", asked, options)
        return page

    @request
    async def assoc_time_range(
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
        page: dict[str, Any] = await self._ask("assoc_time_range", asked, options)
        return page


def _field(argument: str) -> str:
    """Returns the field of an argument. A field that is called like a keyword of Python has an underscore behind its name."""
    name = argument.removesuffix("_")
    return name if keyword.iskeyword(name) else argument


def _argument(field: str) -> str:
    return f"{field}_" if keyword.iskeyword(field) else field


def _method(op: str, about: str, parameters: list[tuple[str, bool, Any]]) -> Callable[..., Coroutine[Any, Any, Any]]:
    """Returns a method for an operation: required fields first, which may be given by position, then the others by name."""
    kinds = inspect.Parameter
    required = [kinds(_argument(name), kinds.POSITIONAL_OR_KEYWORD) for name, is_required, _ in parameters if is_required]
    others = [
        kinds(_argument(name), kinds.KEYWORD_ONLY, default=default)
        for name, is_required, default in parameters
        if not is_required
    ]
    own = [kinds("self", kinds.POSITIONAL_ONLY), *required, *others]
    signature = inspect.Signature([*own, kinds("options", kinds.VAR_KEYWORD)])

    async def method(self: GraphMethods, /, *given: Any, **named: Any) -> Any:
        arguments = signature.bind(self, *given, **named).arguments
        options = arguments.pop("options", {})
        del arguments["self"]
        return await self._ask(op, {_field(name): value for name, value in arguments.items()}, options)

    method.__name__, method.__qualname__ = op, f"Graph.{op}"
    method.__doc__ = f"{about}. Returns the same as ``ask({op!r}, …)``; docs/queries.md describes the fields."
    method.__signature__ = signature  # type: ignore[attr-defined]
    return method


for _op, _about, _parameters in _kith.operations():
    if not hasattr(GraphMethods, _op):
        setattr(GraphMethods, _op, request(_method(_op, _about, _parameters)))
