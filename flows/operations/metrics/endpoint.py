"""Serves the metrics of a lake at the address of EVENHAND_METRICS while a worker works."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from schemas.errors import InfrastructureError, SpecError
from tasks.lake.store import Lake

VARIABLE: Final = "EVENHAND_METRICS"
_MOST_PORT = 65535


@contextmanager
def metrics_served(lake: Lake) -> Iterator[None]:
    """Serve them at ``http://HOST:PORT/metrics`` while the block runs; nothing where EVENHAND_METRICS is not set.

    Raises:
        SpecError: the variable is no address.
        InfrastructureError: nothing can listen there.
    """
    said = os.environ.get(VARIABLE)
    if not said:
        yield
        return
    host, port = address(said)
    from prometheus_client import CollectorRegistry, start_http_server

    from flows.operations.metrics.collector import LakeCollector

    registry = CollectorRegistry()
    registry.register(LakeCollector(lake))
    try:
        server, thread = start_http_server(port, addr=host, registry=registry)
    except OSError as error:
        raise InfrastructureError(f"{VARIABLE}: nothing can listen at {said} ({error}); give a free port") from error
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def address(said: str) -> tuple[str, int]:
    """Host and port.

    Raises:
        SpecError: it is none.
    """
    host, _, port = said.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) <= _MOST_PORT:
        raise SpecError(f"{VARIABLE}: {said!r} is no address; give HOST:PORT, such as 127.0.0.1:9464")
    return host.strip("[]"), int(port)
