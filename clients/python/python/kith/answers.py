"""The parts of answers other than values."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Iterator, Literal

from kith._kith import Batch
from kith.errors import error_of


@dataclass(frozen=True, slots=True)
class Footer:
    """How many keys have which state. The four counts add up to the number of keys."""

    found: int
    absent: int
    error: int
    unanswered: int
    versions: list[int]
    """The version of the store that was read. All records of an answer come from one version."""
    missing_partitions: list[int]
    """The partitions that did not answer for all of their keys. Empty unless the answer is partial."""

    @property
    def complete(self) -> bool:
        """Whether every key was found or is absent."""
        return self.error == 0 and self.unanswered == 0


@dataclass(frozen=True, slots=True)
class StreamFailure:
    """Keys of a stream that failed for the same reason at the same nodes."""

    class_: str
    """The error code (docs/errors.md); ``unreachable`` if the stream was cut off."""
    keys: int
    """How many keys failed."""
    partitions: list[int]
    """The partitions of the keys, ascending."""
    nodes: list[int]
    """The nodes that were asked, in this order."""


@dataclass(frozen=True, slots=True)
class StreamFooter(Footer):
    """The counts for the keys of a stream, and how the stream went."""

    status: Literal["OK", "PARTIAL", "FAILED"]
    """Whether all keys were found or are absent (``OK``), or some of them, or none."""
    failures: list[StreamFailure]
    """The keys that failed. Empty unless the answer is partial."""
    crc32c: int | None
    """The checksum of the batches as they were sent, which was verified; ``None`` with ``direct``, where there is no stream."""
    total: timedelta
    """The time from the arrival of the request to the footer, measured by the sender of the footer."""
    service: timedelta
    """The longest time that a node worked on a request whose answer was used."""


@dataclass(frozen=True, slots=True)
class Counts:
    """Counts by value, greatest count first, or by bucket, in the order of the buckets."""

    counts: list[tuple[Any, int]]
    distinct: int | None
    """The number of different values; ``None`` for buckets."""
    truncated: bool
    """Whether there were more different values than are counted."""
    footer: Footer

    def __iter__(self) -> Iterator[tuple[Any, int]]:
        return iter(self.counts)

    def __len__(self) -> int:
        return len(self.counts)


def value_of(batch: Batch, default: Any) -> Any:
    """Returns the value of a batch with one entry, or ``default`` if a replica has proven that the key is absent."""
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
