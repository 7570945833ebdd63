"""Records as they arrive; the sync and the async client differ in how they wait for them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Self

from kith import _kith
from kith.answers import StreamFooter


class Reading:
    """A read that has begun and hands its records on as they arrive, each key once, in any order.

    Leaving the loop over it ends it: what nodes still do for it is cancelled. So do ``close``, ``with``, and letting go of it.
    """

    def __init__(self, core: _kith.Stream) -> None:
        self._core = core

    @property
    def footer(self) -> StreamFooter:
        """What became of every key. Raises ``RuntimeError`` as long as there are records that were not taken: the footer comes last."""
        footer = self._core.footer
        if footer is None:
            raise RuntimeError("there is no footer yet: it comes after the last record, so read the stream to its end")
        return footer

    def close(self) -> None:
        """Ends the read, if it has not ended. From then on its records cannot be had."""
        self._core.close()


class Stream(Reading):
    """``for entry in client.stream("pages", ids): ...``, and then ``stream.footer``.

    Raises where the read fails, after what came before; with ``partial=True`` only if nothing at all was answered.
    """

    def __iter__(self) -> Iterator[_kith.Entry]:
        for piece in self.pieces():
            yield from piece

    def pieces(self) -> Iterator[_kith.Batch]:
        """The records by the piece, as nodes sent them: a ``Batch`` each, some of the keys. Its ``numpy`` gathers a vector field."""
        try:
            while (piece := self._core.next().wait()) is not None:
                yield piece
        finally:
            self.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
