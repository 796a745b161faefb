"""Reads the model file that comes on the standard input, then answers for batches of rows until the input ends.

The first message is the file; the answer says what it is, or why it is refused. A network or linear model is handed
back as its arrays, and the process is needed no longer.
"""

import os
import select
import signal
import sys
from typing import Any, BinaryIO, cast

import numpy as np

from schemas.errors import EvenhandError, SpecError
from tasks.numerics.attributions import Linear, Module
from tasks.numerics.networks.network import Network
from tasks.scoring.model_reader.protocol import BATCH, Frame, allow_seconds, confine, end_with, received, without
from tasks.scoring.models import (
    LOG_ODDS,
    ModelFile,
    Readable,
    format_of,
    inputs_taken,
    linear_form,
    named,
    names_of,
    probabilities,
    read,
)

MADE_UP = 64
"""Rows that every model decides on before a real one: a faulty one ends here, and not later."""
WIDEST = 100_000
IDLE = 60
"""Seconds without a question, after which the process ends; the audit starts another if it has more."""


def main() -> None:
    """Answer until the audit closes the input."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the audit stops this process, and says what was stopped
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints is no answer
    first = received(sys.stdin.buffer)
    if first is None:
        return
    content = first.arrays["content"].tobytes()
    # What reads a format is imported before the file is seen: memory that this takes is no part of the file's.
    file_format = format_of(content)
    if file_format == "torchscript":
        import torch  # noqa: F401
    if file_format == "skops":
        with without("torch", "dask", "pandas"):
            import skops.io  # noqa: F401 it looks at all modules of scikit-learn, and these at theirs
    confine(len(content))
    end_with(os.getppid())
    try:
        model = read(ModelFile(content, **first.header))
        answer = _examined(model)
    except Exception as error:  # whatever a stranger's file may do to a library
        model, answer = None, _refused(error)
    _send(answers, answer)
    if model is None or answer.arrays:
        return
    while select.select([sys.stdin], [], [], IDLE)[0] and (question := received(sys.stdin.buffer)) is not None:
        allow_seconds(BATCH)
        try:
            quantity, rows, queried = question.header["asked"], question.arrays["rows"], cast(Any, model)
            if quantity == "gradient":
                values = queried.gradient(rows)
            elif quantity == "logit" and not isinstance(model, Module):
                values = queried.decision_function(named(queried, rows))
            else:
                values = queried.logit(rows) if quantity == "logit" else probabilities(queried, rows)
            answer = Frame({}, {"found": np.asarray(values)})
        except Exception as error:  # of scikit-learn, of torch, or of the program in the file
            answer = _refused(error)
        _send(answers, answer)


def _examined(model: Readable) -> Frame:
    """The facts of a model, after it decided on made-up rows.

    That detects a crash; only real rows show that it cannot decide.
    """
    width = inputs_taken(model)
    if width is not None:
        if isinstance(width, bool) or not isinstance(width, int | np.integer) or not 0 < width <= WIDEST:
            raise SpecError(f"the model declares {width!r} inputs; a model takes 1 to {WIDEST:,}: write it again")
        rng = np.random.default_rng(0)
        rows = rng.normal(size=(MADE_UP, width)) * rng.choice([0.1, 1.0, 100.0, 1e6], size=(MADE_UP, 1))
        rows[::4] = rng.integers(0, 5, size=rows[::4].shape)
        try:
            probabilities(model, rows)
        except MemoryError:
            raise
        except Exception:  # noqa: S110 of a category that it does not know, say
            pass
    if isinstance(model, Network):
        layers = zip(model.weights, model.biases, strict=True)
        arrays = {
            f"{at}.{part}": parameter
            for at, pair in enumerate(layers)
            for part, parameter in zip("wb", pair, strict=True)
        }
        return Frame({"activation": model.activation}, arrays)
    if isinstance(model, Linear):
        return Frame({"intercept": model.intercept}, {"coefficients": model.coefficients})
    kind, module = type(model).__name__, isinstance(model, Module)
    log_odds = kind in LOG_ODDS and model.loss == "log_loss"  # type: ignore[union-attr]
    form = None if module else linear_form(model)
    linear = None if form is None else {"coefficients": form.coefficients.tolist(), "intercept": form.intercept}
    inputs = None if width is None else int(width)
    description = {"kind": kind, "inputs": inputs, "names": names_of(model), "log_odds": log_odds, "gradient": module}
    return Frame({**description, "linear": linear})


def _refused(error: Exception) -> Frame:
    kind = type(error).__name__ if isinstance(error, EvenhandError | MemoryError) else ""
    return Frame({"error": kind, "message": str(error).strip() or repr(error)})


def _send(answers: BinaryIO, answer: Frame) -> None:
    answers.write(answer.packed())
    answers.flush()


if __name__ == "__main__":
    main()
