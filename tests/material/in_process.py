"""The command run in the process of the tests: what it prints and its exit code, without the seconds of a start.

All that a process has to itself is set up before and put back after: environment, directory, arguments, umask, streams,
warnings, loggers and Prefect's settings. Signals are those of the tests: a test of signals starts a process.
"""

import logging
import os
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from subprocess import CompletedProcess
from typing import IO
from unittest import mock

import typer.main

_OWN = dict(os.environ)
"""The environment of the tests themselves."""
_command = cache(typer.main.get_command)
"""The parsers of all commands, which nothing changes once Typer has built them."""


def run(arguments: tuple[str, ...], environment: dict[str, str], cwd: Path) -> "CompletedProcess[str]":
    """What a process of its own would give."""
    from flows.cli import main as cli
    from flows.supervision import file_modes

    with ExitStack() as stack:
        stack.enter_context(mock.patch.dict(os.environ, environment, clear=True))
        stack.enter_context(mock.patch.object(sys, "argv", ["evenhand", *arguments]))
        stack.enter_context(mock.patch.object(typer.main, "get_command", _command))
        stack.enter_context(_directory(cwd))
        stack.enter_context(_umask())
        streams = [stack.enter_context(_stream(number)) for number in (1, 2)]
        stack.enter_context(_warnings())
        stack.enter_context(_loggers())
        stack.enter_context(_prefect())
        file_modes.restrict()
        code = cli._code()
        sys.stdout.flush()
        sys.stderr.flush()
        printed = [_read(stream) for stream in streams]
    return CompletedProcess(["evenhand", *arguments], code, *printed)


@contextmanager
def _directory(path: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(path)
    try:
        yield
    finally:
        os.chdir(before)


@contextmanager
def _umask() -> Iterator[None]:
    before = os.umask(0o022)
    os.umask(before)
    try:
        yield
    finally:
        os.umask(before)


@contextmanager
def _stream(number: int) -> Iterator[IO[bytes]]:
    """Send a standard stream to a file: what Python writes, and what libraries and child processes write past it."""
    name, errors = {1: ("stdout", "strict"), 2: ("stderr", "backslashreplace")}[number]
    with tempfile.TemporaryFile() as file:
        before = os.dup(number)
        os.dup2(file.fileno(), number)
        text = open(number, "w", encoding="utf-8", errors=errors, closefd=False)  # noqa: SIM115
        try:
            with mock.patch.object(sys, name, text):
                yield file
        finally:
            text.close()
            os.dup2(before, number)
            os.close(before)


def _read(stream: IO[bytes]) -> str:
    stream.seek(0)
    return stream.read().decode()


@contextmanager
def _warnings() -> Iterator[None]:
    """Python's own filters, and warnings on the error stream; pytest has others."""
    from pydantic.warnings import UnsupportedFieldAttributeWarning

    with warnings.catch_warnings():
        warnings.resetwarnings()
        for ignored in (
            DeprecationWarning,
            PendingDeprecationWarning,
            ImportWarning,
            ResourceWarning,
            UnsupportedFieldAttributeWarning,  # as the command's main function does
        ):
            warnings.simplefilter("ignore", ignored)
        warnings.showwarning = _show
        yield


def _show(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: object = None,
    line: str | None = None,
) -> None:
    sys.stderr.write(warnings.formatwarning(message, category, filename, lineno, line))


@contextmanager
def _loggers() -> Iterator[None]:
    """A process begins without handlers and shows no progress; the command adds some, Prefect others."""
    from tasks.pipeline.progress import show_on

    every = [logging.getLogger(), *(each for each in logging.root.manager.loggerDict.values() if _is_logger(each))]
    before = [(each, each.handlers[:], each.level, each.propagate, each.disabled) for each in every]
    for fresh in (logging.getLogger(), logging.getLogger("evenhand")):
        fresh.handlers, fresh.propagate = [], True
        fresh.setLevel(logging.WARNING if fresh.parent is None else logging.NOTSET)
    try:
        yield
    finally:
        show_on(None)
        for logger, handlers, level, propagate, disabled in before:
            logger.handlers, logger.propagate, logger.disabled = handlers, propagate, disabled
            if logger.level != level:  # to set it makes every logger look its level up again
                logger.setLevel(level)


def _is_logger(entry: object) -> bool:
    return isinstance(entry, logging.Logger)


@contextmanager
def _prefect() -> Iterator[None]:
    """Prefect reads its settings as it is imported, after the command has prepared them: here it reads them again."""
    from flows.supervision import prefect_server

    prepare = prefect_server.prepare_environment
    with ExitStack() as stack:

        def prepare_and_read(local: Path) -> None:
            prepare(local)
            with mock.patch.dict(os.environ, _OWN, clear=True):  # what it is imported with stays, for all tests
                import prefect  # noqa: F401
            from prefect.context import use_profile
            from prefect.logging.configuration import setup_logging
            from prefect.settings import Profile

            fresh = Profile(name="of-this-command", settings={})
            stack.enter_context(use_profile(fresh, include_current_context=False))
            setup_logging(incremental=False)

        stack.enter_context(mock.patch.object(prefect_server, "prepare_environment", prepare_and_read))
        yield
