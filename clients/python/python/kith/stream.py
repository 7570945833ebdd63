"""Streams of entries. The synchronous and the asyncio client differ in how they wait for them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Self

from kith import _kith
from kith.answers import StreamFooter


class Reading:
    """A read whose entries are returned as they arrive, one for each key, in any order.

    The read ends when its loop is left, when it is closed (``close``, or the end of a ``with`` block), and when it is no longer
    referenced. The nodes then stop working for it.
    """

    def __init__(self, core: _kith.Stream) -> None:
        self._core = core

    @property
    def footer(self) -> StreamFooter:
        """The counts for all keys. Raises ``RuntimeError`` until all entries have been read, because the footer arrives last."""
        footer = self._core.footer
        if footer is None:
            raise RuntimeError("there is no footer yet: it arrives after the last entry, so read the stream to its end")
        return footer

    def close(self) -> None:
        """Ends the read if it has not ended yet. Entries that were not read are lost."""
        self._core.close()


class Stream(Reading):
    """A stream of entries: ``for entry in client.stream("pages", ids): ...``, and then ``stream.footer``.

    If the read fails, the loop raises ``kith.KithError`` after the entries that arrived before. With ``partial=True``, it raises
    only if no key was answered.
    """

    def __iter__(self) -> Iterator[_kith.Entry]:
        for piece in self.pieces():
            yield from piece

    def pieces(self) -> Iterator[_kith.Batch]:
        """Iterates over batches as the nodes sent them, each with the entries of some keys. ``Batch.numpy`` returns a vector field."""
        try:
            while (piece := self._core.next().wait()) is not None:
                yield piece
        finally:
            self.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
