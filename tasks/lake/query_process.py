"""Runs a reader's query in a separate process: the system limits its memory, and it is killed after its time.

DuckDB's own limits do not count every allocation of a function, and its planner does not look whether it was asked to
stop. The process limits its address space before it sees the query, and the command kills it when the time is over.
As a program, ``python -m tasks.lake.query_process``, this module is that process.

Scope: the process and its limits. Views, and the words of errors: ``tasks.lake.views``.
"""

import json
import os
import resource
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO, Final, cast

import pyarrow as pa

import tasks
from schemas.errors import EvenhandError, InfrastructureError, IntegrityError, SpecError
from tasks.lake.storage import threads
from tasks.lake.store import Lake, open_lake
from tasks.lake.views import after_seconds, open_views, result_of, too_large, untold

_MODULE: Final = "tasks.lake.query_process"
_READY: Final = b"+"
"""Written once the tables are open, or cannot be opened: the time of the query begins."""
_HEAD: Final = 8
"""Bytes of the length before the facts."""
_COPIES: Final = 2
"""The memory given holds what DuckDB keeps, and once more the result."""
_SPARE: Final = 512 * 2**20
"""Addresses for plans and buffers that no limit of DuckDB counts."""
_OF_THREAD: Final = 64 * 2**20
"""Addresses for the stack and the heap of a thread."""
_FEW_HEAPS: Final = {"ARROW_DEFAULT_MEMORY_POOL": "system", "MALLOC_ARENA_MAX": "2"}
"""Allocators that reserve few addresses which they do not use."""
_KINDS: Final = {kind.__name__: kind for kind in (SpecError, InfrastructureError, IntegrityError)}


def answer_apart(lake: Lake, query: str, seconds: float, memory: int) -> tuple[pa.Table, list[str]]:
    """The result of a query over all tables of a lake, and the tables in it that are not made to be published.

    Args:
        lake: that is read.
        query: one statement or more; the result is that of the last.
        seconds: of the clock that the query may take, without the opening of the tables.
        memory: bytes that the query may use, and as many for its result.

    Raises:
        SpecError: the query is wrong, or does more than read; the lake holds nothing.
        IntegrityError: a manifest or a file is not the one that was written.
        InfrastructureError: it takes more time or memory than it may.
    """
    order = json.dumps({"lake": lake.location, "query": query, "memory": memory}).encode() + b"\n"
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with TemporaryDirectory(prefix="evenhand-sql-", ignore_cleanup_errors=True) as scratch:
        variables = {"TMPDIR": scratch, "PYTHONPATH": str(Path(tasks.__file__).parents[1])}
        environment = os.environ | _FEW_HEAPS | variables
        command = [sys.executable, "-P", "-m", _MODULE]  # without modules of the working directory
        # of a session of its own: Ctrl-C is for the command, which ends the process
        started = subprocess.Popen(command, env=environment, start_new_session=True, **pipes)  # noqa: S603 our own words
        late = threading.Event()

        def end() -> None:
            late.set()
            started.kill()

        patience = threading.Timer(seconds, end)
        with started as process:
            try:
                answers = cast("BinaryIO", process.stdout)
                with suppress(BrokenPipeError):
                    process.stdin.write(order)  # type: ignore[union-attr]
                    process.stdin.flush()  # type: ignore[union-attr]
                if answers.read(len(_READY)) == _READY:
                    patience.start()
                length = answers.read(_HEAD)
                facts = json.loads(answers.read(int.from_bytes(length, "little")) or "{}")
                patience.cancel()
                if not facts:
                    raise after_seconds(seconds) if late.is_set() else _ended(process.wait(), memory)
                if "error" in facts:
                    raise _KINDS.get(facts["error"], RuntimeError)(facts["message"])
                with pa.ipc.open_stream(answers) as stream:
                    return stream.read_all(), facts["untold"]
            finally:
                patience.cancel()
                process.kill()


def _ended(code: int, memory: int) -> EvenhandError:
    """The error of a process that ended without an answer: a library that gets no memory may end it."""
    how = f"signal {-code}" if code < 0 else f"exit code {code}"
    return InfrastructureError(
        f"the query ended the process that runs it ({how}), most likely for want of memory beyond the "
        f"{memory / 1e6:,.0f} MB given; narrow it, or give --memory"
    )


# --------------------------------------------------------------------------------------------------------------------
# The process: takes an order, limits itself, answers, and ends with the command that started it.


def main() -> None:
    """Answer the order on the input: a mark once the tables are open, facts, and the result as a stream of Arrow."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints is no answer
    order = json.loads(sys.stdin.buffer.readline())
    threading.Thread(target=_end_with_command, daemon=True).start()
    memory, table, mark = order["memory"], pa.table({}), _READY
    try:
        with open_views(open_lake(order["lake"]), memory=memory) as connection:
            limit_addresses(memory)
            answers.write(mark)
            answers.flush()
            mark = b""
            table = result_of(connection, order["query"], memory)
            facts: dict[str, Any] = {"untold": untold(connection, order["query"])}
    except EvenhandError as error:
        kind = next((name for name, kind in _KINDS.items() if isinstance(error, kind)), "")
        facts = {"error": kind, "message": str(error)}
    except MemoryError:
        facts = {"error": InfrastructureError.__name__, "message": str(too_large(memory))}
    except BaseException as error:
        facts = {"error": "", "message": f"the process of the query failed: {type(error).__name__}: {error}"}
    header = json.dumps(facts).encode()
    answers.write(mark + len(header).to_bytes(_HEAD, "little") + header)
    if "error" not in facts:
        with pa.ipc.new_stream(answers, table.schema) as stream:
            stream.write_table(table)
    answers.flush()
    os._exit(0)


def limit_addresses(memory: int) -> None:
    """Let this process take so much memory for a query and its result, and leave no dump of it."""
    reserved = 0
    with suppress(OSError):  # macOS has no such file, and knows no such limit
        reserved = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    most = reserved + _COPIES * memory + _SPARE + threads() * _OF_THREAD
    for kind, bound in ((resource.RLIMIT_CORE, 0), (resource.RLIMIT_AS, most)):
        with suppress(ValueError, OSError):
            hard = resource.getrlimit(kind)[1]
            least = bound if hard == resource.RLIM_INFINITY else min(bound, hard)
            resource.setrlimit(kind, (least, least))


def _end_with_command() -> None:
    """End once the command is gone, which closes the input; a killed one leaves its temporary directory to us."""
    with suppress(OSError):
        while os.read(0, 1):
            pass
    rmtree(os.environ["TMPDIR"], ignore_errors=True)
    os._exit(1)


if __name__ == "__main__":
    main()
