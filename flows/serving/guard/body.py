"""Reads the body of a request before anything works on it: at most 64 kB, within 10 seconds.

A sender that stalls so holds a connection for that long, and none of the places at which pages are made.
"""

import asyncio
from typing import Final

from starlette.types import Message, Receive

MOST_BODY: Final = 64 * 1024
BODY_SECONDS: Final = 10.0


class TooLargeError(Exception):
    """A body beyond the bound."""


class GoneError(Exception):
    """The sender left before the body was whole."""


async def read(receive: Receive, length: str, seconds: float = BODY_SECONDS) -> Receive:
    """Read a whole body; gives what the pages receive in place of the connection.

    Args:
        receive: of the request.
        length: what its header says; it may say nothing, or a wrong one.
        seconds: until when the body has to be whole.

    Raises:
        TooLargeError: it is beyond the bound, or its length is no number.
        TimeoutError: it was not whole in time.
        GoneError: the sender left.
    """
    if not length.isdecimal() or int(length) > MOST_BODY:
        raise TooLargeError
    async with asyncio.timeout(seconds):
        return _again(await _whole(receive), receive)


async def _whole(receive: Receive) -> bytes:
    body = b""
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise GoneError
        body += bytes(message.get("body", b""))
        if len(body) > MOST_BODY:
            raise TooLargeError
        if not message.get("more_body", False):
            return body


def _again(body: bytes, receive: Receive) -> Receive:
    """Gives the body once, and then what the connection tells, such as that the reader left."""
    left = [body]

    async def again() -> Message:
        if left:
            return {"type": "http.request", "body": left.pop(), "more_body": False}
        return await receive()

    return again
