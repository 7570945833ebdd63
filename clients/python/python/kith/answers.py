"""What comes back besides values."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Iterator, Literal

from kith._kith import Batch
from kith.errors import error_of


@dataclass(frozen=True, slots=True)
class Footer:
    """How many keys ended how; the four counts sum to the number of keys."""

    found: int
    absent: int
    error: int
    unanswered: int
    versions: list[int]
    """Of the store: all records of one answer are of one version."""
    missing_partitions: list[int]
    """Those that did not answer for all of their keys; only of partial answers."""

    @property
    def complete(self) -> bool:
        """Whether every key is found or absent."""
        return self.error == 0 and self.unanswered == 0


@dataclass(frozen=True, slots=True)
class StreamFailure:
    """Keys of a stream that failed alike."""

    class_: str
    """Why they have no answer: the code that a whole read would fail with (docs/errors.md); ``unreachable`` if the stream
    itself was cut."""
    keys: int
    """How many."""
    partitions: list[int]
    """Theirs, ascending."""
    nodes: list[int]
    """Those that were asked, in order."""


@dataclass(frozen=True, slots=True)
class StreamFooter(Footer):
    """What became of every key of a stream."""

    status: Literal["OK", "PARTIAL", "FAILED"]
    """Every key is found or absent; some are not; none is."""
    failures: list[StreamFailure]
    """Only of partial answers."""
    crc32c: int | None
    """Of the pieces as they travelled, which held; ``None`` if they did not travel as a stream: with ``direct``."""
    total: timedelta
    """From the request's arrival to the footer, as whoever made it measured."""
    service: timedelta
    """The longest that a node worked on a request whose answer counts."""


@dataclass(frozen=True, slots=True)
class Counts:
    """How many records have which value: the highest first, or in the order of the buckets."""

    counts: list[tuple[Any, int]]
    distinct: int | None
    """How many values there are; ``None`` of buckets."""
    truncated: bool
    """Whether there are more values than are kept."""
    footer: Footer

    def __iter__(self) -> Iterator[tuple[Any, int]]:
        return iter(self.counts)

    def __len__(self) -> int:
        return len(self.counts)


def value_of(batch: Batch, default: Any) -> Any:
    """The value of a batch of one; ``default`` only if a replica has proven that there is none."""
    entry = batch[0]
    if entry.state == "FOUND":
        return entry.value
    if entry.state == "ABSENT":
        return default
    if entry.error is not None:
        raise entry.error
    raise error_of(
        "partitions_unavailable",
        f"no replica of the partition of key {entry.key!r} answered",
        "look at `kith cluster status`",
    )
