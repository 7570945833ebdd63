"""Plans of read compute, built step by step; the sync and the async client carry them out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy
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

    A value that is worked out is called ``<function>_<field>``, unless ``as_`` says otherwise. Each step gives a plan of its own: one that
    several others begin with stays as it is.
    """

    _plan: _kith.Plan

    def __init__(self) -> None:
        self._plan = _kith.Plan()

    def _step(self) -> Self:
        step = copy(self)
        step._plan = self._plan.copy()
        return step

    def project(self, *fields: str) -> Self:
        """And fields as they are."""
        step = self._step()
        for field in fields:
            step._plan.project(field)
        return step

    def dot(self, field: str, query: Vector, as_: str | None = None) -> Self:
        """And the dot product of a vector field with ``query``."""
        step = self._step()
        step._plan.operator("dot", field, query, as_)
        return step

    def cosine(self, field: str, query: Vector, as_: str | None = None) -> Self:
        """And the cosine of a vector field and ``query``; ``None`` if either is all zeros."""
        step = self._step()
        step._plan.operator("cosine", field, query, as_)
        return step

    def hadamard(self, field: str, query: Vector, as_: str | None = None) -> Self:
        """And the products of a vector field with ``query``, element by element."""
        step = self._step()
        step._plan.operator("hadamard", field, query, as_)
        return step

    def count(self, field: str, as_: str | None = None) -> Self:
        """And how many items a list, map or vector has."""
        step = self._step()
        step._plan.operator("count", field, None, as_)
        return step

    def top_k(self, by: str, k: int) -> Self:
        """Only the ``k`` records with the greatest ``by``, best first: a value that is worked out, or else a field."""
        step = self._step()
        step._plan.top_k(by, k)
        return step

    def with_schema(self, schema: str) -> Self:
        """Asks for fields by this schema: those that the version does not have are its defaults, else ``None``."""
        step = self._step()
        step._plan.reader(schema)
        return step

    def at(self, place: Literal["nodes", "client"]) -> Self:
        """Where records are worked on; the answer is the same to the bit."""
        step = self._step()
        step._plan.at(place)
        return step
