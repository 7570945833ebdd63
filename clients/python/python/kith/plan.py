"""Plans of read compute, built step by step; the sync and the async client carry them out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, Union

from typing import Self

from kith import _kith

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy

    Vector = Union[Sequence[float], "numpy.ndarray[Any, Any]", memoryview]
    Keys = Union[Iterable[int], Iterable[str], Iterable[bytes], "numpy.ndarray[Any, Any]"]
    Conditions = Mapping[str, Any]


class Building:
    """What is wanted of each record: the fields of ``project`` first, then what is worked out.

    A value that is worked out is called ``<function>_<field>``, unless ``as_`` says otherwise.
    """

    _plan: _kith.Plan

    def __init__(self) -> None:
        self._plan = _kith.Plan()

    def project(self, *fields: str) -> Self:
        """And fields as they are."""
        for field in fields:
            self._plan.project(field)
        return self

    def dot(self, field: str, query: Vector, as_: str | None = None) -> Self:
        """And the dot product of a vector field with ``query``."""
        self._plan.operator("dot", field, query, as_)
        return self

    def cosine(self, field: str, query: Vector, as_: str | None = None) -> Self:
        """And the cosine of a vector field and ``query``; ``None`` if either is all zeros."""
        self._plan.operator("cosine", field, query, as_)
        return self

    def hadamard(self, field: str, query: Vector, as_: str | None = None) -> Self:
        """And the products of a vector field with ``query``, element by element."""
        self._plan.operator("hadamard", field, query, as_)
        return self

    def count(self, field: str, as_: str | None = None) -> Self:
        """And how many items a list, map or vector has."""
        self._plan.operator("count", field, None, as_)
        return self

    def top_k(self, by: str, k: int) -> Self:
        """Only the ``k`` records with the greatest ``by``, best first: a value that is worked out, or else a field."""
        self._plan.top_k(by, k)
        return self

    def with_schema(self, schema: str) -> Self:
        """Asks for fields by this schema: those that the version does not have are its defaults, else ``None``."""
        self._plan.reader(schema)
        return self

    def at(self, place: Literal["nodes", "client"]) -> Self:
        """Where records are worked on; the answer is the same to the bit."""
        self._plan.at(place)
        return self
