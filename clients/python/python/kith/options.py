"""What one may say about a question besides the question; names as in docs/queries.md."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Literal, TypedDict


Filter = tuple[str, int | float | None, int | float | None]
"""A column, and the least and the greatest value that pass; either may be ``None``."""


class Options(TypedDict, total=False):
    """All may be left out; ``connect`` takes them as defaults of every question."""

    deadline: float | timedelta | None
    """Seconds that the answer may take."""
    partial: bool | None
    """Whether an answer that lacks keys is better than none."""
    fan_out: str | None
    """How many replica groups may take part: ``auto``, ``min``, ``max`` or ``groups=N``; of rounds of one kind ``KIND=LIMIT``."""
    policy: str | None
    """The replica policy, as ``least-loaded``."""
    hedge: Literal["on", "table", "off"] | None
    """Whether late requests are sent to another group as well."""
    cache: Literal["use", "bypass", "refresh"] | None
    """The router's caches, of graphs."""
    workflow: Literal["interactive", "background"] | None
    """Who waits for the answer."""
    ticket: str | Sequence[str] | None
    """Of a live graph: tickets whose writes the answer must show."""
    critical: bool | None
    """Of a live graph: whether the answer must show every write that was answered before this question was asked."""
    group: int | None
    """The only replica group that is asked."""
    trace_id: str | None
    """Printed in logs beside the question."""


class WriteOptions(TypedDict, total=False):
    """What one may say about a write to a live graph; all may be left out."""

    if_version: int | None
    """Writes only if the object or association has this version."""
    if_exists: bool | None
    """Writes only if it exists, or only if it does not."""
    write_id: str | None
    """Names the write: repeating it within ten minutes returns the first outcome and writes nothing."""
    deadline: float | timedelta | None
    """Seconds that the write may take."""
