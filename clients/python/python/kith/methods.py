"""The methods of both clients, except those of graphs. ``kith.Client`` waits for answers, and ``kith.aio.Client`` awaits them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar, Unpack

from kith import _kith
from kith.answers import Counts, value_of
from kith.calls import Asking, request
from kith.options import Options
from kith.plan import Building

if TYPE_CHECKING:
    from kith.plan import Conditions, Keys

Stream = TypeVar("Stream")
Compute = TypeVar("Compute")
Aggregate = TypeVar("Aggregate")
Graph = TypeVar("Graph")


class ClientMethods(Asking, Generic[Stream, Compute, Aggregate, Graph]):
    """The methods of ``Client``."""

    _stream: Callable[[_kith.Stream], Stream]
    _compute: Callable[[Any, str], Compute]
    _aggregate: Callable[[Any, str], Aggregate]
    _graph: Callable[[Any, str, dict[str, Any]], Graph]

    def __init__(self, core: _kith.Client, defaults: Options) -> None:
        self._core = core
        self._defaults = defaults

    @request
    async def get(self, store: str, key: int | str | bytes, default: Any = None, **options: Unpack[Options]) -> Any:
        """Returns the value of a key, or ``default`` if the store does not have the key.

        Raises ``kith.KithError`` if no replica could tell.
        """
        return value_of(await self._reply(self._core.get(store, key, {**self._defaults, **options})), default)

    @request
    async def get_many(self, store: str, keys: Keys, **options: Unpack[Options]) -> _kith.Batch:
        """Returns an entry for each key, in the order of ``keys``, all from one version of the store. At most 100,000 keys.

        A key that is given twice has two entries. Raises ``kith.KithError`` if a key was neither found nor proven absent. With
        ``partial=True``, the batch contains such keys as ``ERROR`` or ``UNANSWERED`` instead.
        """
        batch: _kith.Batch = await self._reply(self._core.multi_get(store, keys, {**self._defaults, **options}))
        return batch

    def stream(self, store: str, keys: Keys, **options: Unpack[Options]) -> Stream:
        """Returns the entries of ``keys`` as they arrive, in any order, all from one version of the store, and then a footer.

        The deadline applies to the whole stream, including the time that the caller spends between entries. A stream that takes
        longer is cut off.
        """
        return self._stream(self._core.stream(store, keys, {**self._defaults, **options}))

    def compute(self, store: str) -> Compute:
        """Returns a plan for values that the nodes compute from records, such as scores. Add steps to it, then execute it."""
        return self._compute(self, store)

    def aggregate(self, store: str) -> Aggregate:
        """Returns what counts records on the nodes."""
        return self._aggregate(self, store)

    def graph(self, name: str, *, edge_type: str | None = None, direction: str | None = None) -> Graph:
        """Returns a graph whose queries follow one edge type (by default its first one) in one direction: ``out``, ``in`` or ``both``."""
        return self._graph(self, name, {"edge_type": edge_type, "direction": direction})

    @request
    async def shape(self, store: str) -> tuple[str, str]:
        """Returns the types of the keys and of the values of a store, such as ``("id", "record")``."""
        shape: tuple[str, str] = await self._reply(self._core.shape(store))
        return shape


class ComputeMethods(Building, Asking, Generic[Stream]):
    """The methods of ``Compute``."""

    _stream: Callable[[_kith.Stream], Stream]

    def __init__(self, client: ClientMethods[Any, Any, Any, Any], store: str) -> None:
        super().__init__()
        self._client = client
        self._store = store

    @request
    async def execute(self, keys: Keys, **options: Unpack[Options]) -> _kith.Batch:
        """Returns the results for the records of ``keys``, in the order of ``keys``; with ``top_k``, only the best ones, best first."""
        given = {**self._client._defaults, **options}
        call = self._client._core.compute(self._store, self._plan, keys, given)
        batch: _kith.Batch = await self._reply(call)
        return batch

    def stream(self, keys: Keys, **options: Unpack[Options]) -> Stream:
        """Returns the results for the records of ``keys`` as they arrive, in any order, and then a footer. Not for plans with ``top_k``."""
        given = {**self._client._defaults, **options}
        return self._stream(self._client._core.compute_stream(self._store, self._plan, keys, given))


class AggregateMethods(Asking):
    """The methods of ``Aggregate``."""

    def __init__(self, client: ClientMethods[Any, Any, Any, Any], store: str) -> None:
        self._client = client
        self._store = store

    @request
    async def count_by_value(self, field: str, keys: Keys, top: int = 20, **options: Unpack[Options]) -> Counts:
        """Counts how often each value of ``field`` occurs; each item of a list counts.

        Returns the ``top`` most frequent values, most frequent first. Among values with equal counts, the smallest comes first.
        """
        given = {**self._client._defaults, **options}
        return Counts(*await self._reply(self._client._core.count_by_value(self._store, field, keys, top, given)))

    @request
    async def count_by_bucket(
        self, field: str, keys: Keys, buckets: dict[str, Conditions], **options: Unpack[Options]
    ) -> Counts:
        """Counts how many values of ``field`` are in each bucket, such as ``{"young": {"lt": 18}, "other": {"ge": 18}}``."""
        given = {**self._client._defaults, **options}
        return Counts(*await self._reply(self._client._core.count_by_bucket(self._store, field, keys, buckets, given)))
