"""The process that drafts an audit of a table that a browser sent. ``python -m flows.cli.draft.apart``.

It gets an order on its input, limits itself, reads the table, and answers with a form (``form``), or with the reason
for none. It has the limits of the process that reads a model: memory, time, and no network. ``flows.serving.starts`` is
the server's side of it.
"""

import json
import os
import resource
import signal
import sys
from pathlib import Path
from typing import Any, Final

from flows.cli.draft.drafting import drafted
from flows.cli.draft.form import answered_as_shown, choices_as_json, choices_of, form_of, form_of_join
from flows.cli.draft.hmda_spec import hmda_spec
from flows.cli.draft.questions import join_question, open_questions
from flows.cli.draft.reading import File, keys_of_both, read_file
from flows.cli.draft.spec_text import text
from schemas.errors import EvenhandError, SpecError
from tasks.ingest.sources.containers import packing
from tasks.scoring.model_reader.protocol import (
    ADDRESSES,
    READING,
    allow_seconds,
    end_with,
    leave_network,
    limit,
    reserved,
)

SECONDS_A_MB: Final = 2
"""Of the processor, beside those that a model has: a draft looks at every cell."""
UNPACKED_BYTES: Final = 2 * 10**9
"""Of one file that a packed table is unpacked to."""


def main() -> None:
    """Answer one order, without network and core dumps, and with limits of memory, time and files."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the server ends this process
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a library prints is no answer
    order = json.loads(sys.stdin.buffer.read())
    size = sum(Path(order[name]).stat().st_size for name in ("path", "second") if order[name])
    leave_network()
    limit(resource.RLIMIT_CORE, 0)
    limit(resource.RLIMIT_FSIZE, UNPACKED_BYTES)
    limit(resource.RLIMIT_AS, reserved() + ADDRESSES + 4 * size)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # a write beyond the limit is an error with words
    allow_seconds(READING + SECONDS_A_MB * size // 10**6)
    end_with(os.getppid())
    try:
        answer = _formed(order)
    except EvenhandError as error:
        answer = {"error": str(error)}
    except MemoryError:
        answer = {"error": f"the table needs more than {ADDRESSES / 1e9:g} GB to be read; give fewer rows or columns"}
    except OSError as error:
        answer = {"error": f"the table cannot be read here ({error.strerror}); unpack it, and give the file"}
    except Exception as error:  # a fault of ours; its words may hold cells
        answer = {"error": f"the table cannot be drafted ({type(error).__name__}); try evenhand init on a terminal"}
    json.dump(answer, answers, ensure_ascii=False, default=str)
    answers.flush()


def _formed(order: dict[str, Any]) -> dict[str, Any]:
    """The form of a table, with the spec where no question is left.

    Raises:
        EvenhandError: it is no table that can be audited.
    """
    path = Path(order["path"])
    if (spec := hmda_spec(path)) is not None:
        return {"spec": spec, "steps": [], "hmda": True, "faults": {}}
    part = order["part"] or None
    is_zip = packing(path) == "zip"
    second, key = Path(order["second"]) if order["second"] else None, order["choices"].get("key")
    file = File(path, part if is_zip else None, None if is_zip else part, second, key or order["answers"].get("join"))
    if second is not None and not file.key:
        return _asking_for_key(file, {})
    try:
        table = read_file(file)
    except SpecError as error:
        if second is None or key:
            raise
        return _asking_for_key(file, {"join": str(error).removeprefix("--key ")})
    draft = drafted(table, choices_of(order["choices"]))
    outcome = answered_as_shown(draft, order["shown"], order["answers"])
    draft = outcome.draft
    choices = {**choices_as_json(draft.choices), "key": file.key or ""}
    form = {**form_of(draft), "faults": dict(outcome.faults), "choices": choices}
    if draft.is_whole and not open_questions(draft):
        form["spec"] = text(draft)
    return form


def _asking_for_key(file: File, faults: dict[str, str]) -> dict[str, Any]:
    """The form with the question for the key of a second file."""
    assert file.second is not None  # noqa: S101
    return {**form_of_join(join_question(file.second.name, keys_of_both(file))), "faults": faults}


if __name__ == "__main__":
    main()
