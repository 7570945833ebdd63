"""Plans of what nodes compute from records. Both clients build them step by step."""

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
    """A plan of what to return for each record: first the fields of ``project``, then the computed values.

    A computed value is called ``<function>_<field>``, unless ``as_`` gives it another name. Each step returns a new plan and leaves
    the old one unchanged, so several plans may begin with the same one.
    """

    _plan: _kith.Plan

    def __init__(self) -> None:
        self._plan = _kith.Plan()

    def _step(self) -> Self:
        step = copy(self)
        step._plan = self._plan.copy()
        return step

    def project(self, *fields: str) -> Self:
        """Adds fields of the record."""
        step = self._step()
        for field in fields:
            step._plan.project(field)
        return step

    def dot(self, field: str, query: Vector, as_: str | None = None) -> Self:
        """Adds the dot product of a vector field and ``query``."""
        step = self._step()
        step._plan.operator("dot", field, query, as_)
        return step

    def cosine(self, field: str, query: Vector, as_: str | None = None) -> Self:
        """Adds the cosine of a vector field and ``query``; ``None`` if either contains only zeros."""
        step = self._step()
        step._plan.operator("cosine", field, query, as_)
        return step

    def hadamard(self, field: str, query: Vector, as_: str | None = None) -> Self:
        """Adds the element-wise product of a vector field and ``query``."""
        step = self._step()
        step._plan.operator("hadamard", field, query, as_)
        return step

    def count(self, field: str, as_: str | None = None) -> Self:
        """Adds the number of items of a list, map or vector."""
        step = self._step()
        step._plan.operator("count", field, None, as_)
        return step

    def top_k(self, by: str, k: int) -> Self:
        """Returns only the ``k`` records with the greatest ``by``, which names a computed value or a field. The best comes first."""
        step = self._step()
        step._plan.top_k(by, k)
        return step

    def with_schema(self, schema: str) -> Self:
        """Reads records under this schema. A field that the version lacks has the schema's default, or is ``None``."""
        step = self._step()
        step._plan.reader(schema)
        return step

    def at(self, place: Literal["nodes", "client"]) -> Self:
        """Says where to compute the values. The answers are equal, bit for bit."""
        step = self._step()
        step._plan.at(place)
        return step
