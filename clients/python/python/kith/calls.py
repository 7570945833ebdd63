"""One definition of each method for both clients. One awaits the answer to a request; the other waits for it."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar, overload

from kith import _kith

Given = ParamSpec("Given")
Result = TypeVar("Result")


class Asking:
    """A part of a client that sends requests."""

    async def _reply(self, call: _kith.Call) -> Any:
        raise NotImplementedError


class Awaiting(Asking):
    """A part of the client for asyncio."""

    async def _reply(self, call: _kith.Call) -> Any:
        return await call.begin()


class Blocking(Asking):
    """A part of the synchronous client. Its methods are those of the client for asyncio, which are never suspended here."""

    async def _reply(self, call: _kith.Call) -> Any:
        return call.wait()

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for name in dir(cls):
            method = getattr(cls, name)
            # Coroutines of a program's own subclass stay as they are.
            if inspect.iscoroutinefunction(method) and hasattr(method, "is_request"):
                blocking = _blocking(method)
                blocking.__qualname__ = f"{cls.__name__}.{name}"
                setattr(cls, name, blocking)


def _blocking(method: Callable[..., Coroutine[Any, Any, Any]]) -> Callable[..., Any]:
    @functools.wraps(method)
    def blocking(*given: Any, **named: Any) -> Any:
        try:
            method(*given, **named).send(None)
        except StopIteration as returned:
            return returned.value
        raise RuntimeError("a method of the synchronous client was suspended")

    return blocking


if TYPE_CHECKING:

    class request(Generic[Given, Result]):
        """Marks a method that sends a request. It is a coroutine only in the client for asyncio."""

        def __init__(self, method: Callable[Concatenate[Any, Given], Coroutine[Any, Any, Result]]) -> None: ...
        @overload
        def __get__(self, part: Blocking, owner: object = None) -> Callable[Given, Result]: ...
        @overload
        def __get__(self, part: Awaiting, owner: object = None) -> Callable[Given, Coroutine[Any, Any, Result]]: ...
        def __get__(self, part: object, owner: object = None) -> Any: ...

else:

    def request(method):
        method.is_request = True
        return method
