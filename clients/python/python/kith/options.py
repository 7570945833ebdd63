"""The options of requests. They have the same names as in docs/queries.md."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Literal, TypedDict


Filter = tuple[str, int | float | None, int | float | None]
"""A column, and the smallest and the greatest value that pass the filter. ``None`` means that there is no such limit."""


class Options(TypedDict, total=False):
    """The options of a read. All are optional. ``connect`` takes them too, as defaults for all requests of the client."""

    deadline: float | timedelta | None
    """The maximum time until the answer, as seconds or as a ``timedelta``."""
    partial: bool | None
    """Whether to return an answer that lacks some keys. By default, such a request fails."""
    fan_out: str | None
    """How many replica groups may take part: ``auto``, ``min``, ``max`` or ``groups=N``; ``KIND=LIMIT`` for one kind of fan-out."""
    policy: str | None
    """The replica policy, such as ``least-loaded``."""
    hedge: Literal["on", "table", "off"] | None
    """Whether a late request to a node is also sent to a node of another group."""
    cache: Literal["use", "bypass", "refresh"] | None
    """How to use the router's caches of networks and neighbour lists."""
    workflow: Literal["interactive", "background"] | None
    """Whether somebody waits for the answer (``interactive``)."""
    ticket: str | Sequence[str] | None
    """For live graphs: the answer must show the writes that returned these tickets."""
    critical: bool | None
    """For live graphs: whether the answer must show all writes that were confirmed before this request was sent."""
    group: int | None
    """Sends the request only to the replicas of this group."""
    trace_id: str | None
    """An id that logs print with this request."""


class WriteOptions(TypedDict, total=False):
    """The options of a write to a live graph. All are optional."""

    if_version: int | None
    """The write takes effect only if the object or association has this version."""
    if_exists: bool | None
    """The write takes effect only if the object or association exists (``True``), or does not exist (``False``)."""
    write_id: str | None
    """A name for the write. A repeat within ten minutes returns the outcome of the first attempt, and writes nothing."""
    deadline: float | timedelta | None
    """The maximum time until the answer, as seconds or as a ``timedelta``."""
