"""One thread of linear algebra while methods detect: the last digits of a product depend on the number of threads.

The number is of the whole process. Years in threads of one share the limit: the first sets it, the last lifts it.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock

from threadpoolctl import threadpool_limits


@dataclass
class _Limit:
    lock: Lock = field(default_factory=Lock)
    users: int = 0
    limiter: threadpool_limits | None = None


_LIMIT = _Limit()


@contextmanager
def single_threaded() -> Iterator[None]:
    """Products in the block are the same bytes however many cores there are."""
    with _LIMIT.lock:
        if not _LIMIT.users:
            _LIMIT.limiter = threadpool_limits(1, user_api="blas")
        _LIMIT.users += 1
    try:
        yield
    finally:
        with _LIMIT.lock:
            _LIMIT.users -= 1
            if not _LIMIT.users and _LIMIT.limiter is not None:
                _LIMIT.limiter.restore_original_limits()
