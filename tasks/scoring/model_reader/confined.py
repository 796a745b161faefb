"""Runs an untrusted model file in a restricted process and scores rows there."""

import json
import os
import signal
import subprocess
import sys
import threading
import weakref
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import tasks
from schemas.audit.model import Model
from schemas.errors import InfrastructureError, IntegrityError, SpecError
from tasks.numerics.arrays import Floats
from tasks.numerics.attributions import Linear
from tasks.numerics.networks.network import Network
from tasks.scoring.model_formats import check_archive
from tasks.scoring.model_reader.protocol import ADDRESSES, BATCH, PATIENCE, READING, Frame, SilentError, exchanged
from tasks.scoring.models import Facts, ModelFile, Readable, read, vouched

# --------------------------------------------------------------------------------------------------------------------
# Reads a foreign model in a separate process, and queries it there for every row.
#
# The process (``__main__`` beside this) has limits, no network where the system allows that, and nothing of this one's
# environment but what Python needs. Whatever a file does to it ends there, and is told. Networks and linear models come
# back as plain arrays, and are asked here.


ROWS_AT_ONCE = {"module": 65_536, "classifier": 16_384}
"""Powers of two: sums of long rows are rounded in the same way wherever a batch begins."""

KEPT = ("HOME", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "PATH", "TMPDIR", "VIRTUAL_ENV")
"""Variables that the process gets; secrets are in others."""
OWN = {
    "JOBLIB_MULTIPROCESSING": "0",
    "MKL_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
}


NONE = np.zeros((0, 0))

MODELS = 2
"""Models whose processes are kept for the next stage: one takes seconds to start, and ends when it is not asked."""


class UnansweredError(SpecError):
    """A model that was read does not take the rows that it gets."""

    detail: str = ""
    """The message of the model's library."""


def opened(file: ModelFile) -> Readable:
    """A foreign model: arrays where it is a network or linear, else one that is queried in a separate process.

    Raises:
        SpecError: The file is not trusted, not known, no model of two classes, or ended the process that read it.
        InfrastructureError: The library that its format needs is not installed.
    """
    file_format = vouched(file)
    if file_format in ("skops", "torchscript"):
        check_archive(file.content, file.name)
    model = confined(file, os.getpid())
    return model if model.arrays is None else model.arrays


@lru_cache(MODELS)
def confined(file: ModelFile, asking: int) -> "Confined":  # noqa: ARG001 a fork of this process asks another
    """A model in a separate process, shared within the process ``asking`` by all requests for the same file.

    Raises:
        SpecError: It is no model, or ended the process.
    """
    return Confined(file)


class Confined:
    """A model in a separate process, which ends with this object, or after a time without queries."""

    facts: Facts
    arrays: Network | Linear | None = None
    """The model itself, where it is no more than arrays; there is no process then."""

    def __init__(self, file: ModelFile) -> None:
        """Start the process and have it read the file."""
        self.name, self._file, self._lock = file.name, file, threading.Lock()
        answer = self._begun()
        header, arrays = answer.header, answer.arrays
        if not arrays:
            linear = header["linear"]
            form = None if linear is None else Linear(np.array(linear["coefficients"]), linear["intercept"])
            self.facts = Facts(**{**header, "names": tuple(header["names"]), "linear": form})
            return
        self._end()
        if "intercept" in header:
            self.arrays = Linear(arrays["coefficients"], header["intercept"])
        else:
            weights, biases = (tuple(arrays[f"{at}.{part}"] for at in range(len(arrays) // 2)) for part in "wb")
            self.arrays = Network(weights, biases, header["activation"])

    def probability(self, x: Floats) -> Floats:
        """``(r,)`` probabilities of the favourable decision for rows ``(r, p)``.

        Raises:
            SpecError: The model does not take them, or ended the process.
        """
        return self._batches("probability", x)

    def logit(self, x: Floats) -> Floats:
        """``(r,)`` logits: of a module, or of a classifier with a decision function that is the log odds."""
        return self._batches("logit", x)

    def gradient(self, x: Floats) -> Floats:
        """``(r, p)`` gradients of a module's logit."""
        return self._batches("gradient", x)

    def _batches(self, quantity: str, x: Floats) -> Floats:
        size = ROWS_AT_ONCE["module" if self.facts.gradient else "classifier"]
        size = max(len(x), 1) if quantity == "gradient" else size  # gradients are requested of few rows at once
        parts = [np.zeros((0, *x.shape[1:]) if quantity == "gradient" else 0)]
        for start in range(0, len(x), size):
            rows = x[start : start + size]
            with self._lock:
                answer = self._answered(Frame({"asked": quantity}, {"rows": np.asarray(rows, np.float64)}))
            if (kind := answer.header.get("error")) is not None:
                if kind:
                    raise self._refusal(answer.header)
                detail = str(answer.header["message"]).rpartition("\n")[2]
                error = UnansweredError(
                    f"{self.name} does not take the rows that it gets: {detail}; look at its inputs"
                )
                error.detail = detail
                raise error
            values = answer.arrays.get("found", NONE)
            expected_shape = rows.shape if quantity == "gradient" else (len(rows),)
            if values.shape != expected_shape:
                raise SpecError(f"{self.name} gives {values.shape} for {len(rows)} rows; expected {expected_shape}")
            parts.append(values)
        return np.concatenate(parts)

    def _begun(self) -> Frame:
        """A new process after it has read the file, and its description of the file."""
        self._process = started()
        self._end = weakref.finalize(self, ended, self._process)
        header = {"name": self.name, "sha256": self._file.sha256, "output": self._file.output}
        answer = self._asked(Frame(header, {"content": np.frombuffer(self._file.content, np.uint8)}), READING)
        if answer.header.get("error") is not None:
            self._end()
            raise self._refusal(answer.header)
        return answer

    def _answered(self, question: Frame) -> Frame:
        """The answer of the process, or of a new one if it ended because it had no queries."""
        if self._process.poll() is None:
            try:
                return self._asked(question, BATCH)
            except SpecError:
                if self._process.poll() != 0:
                    raise
        self._begun()
        return self._asked(question, BATCH)

    def _asked(self, question: Frame, seconds: int) -> Frame:
        """What the process answers; it is ended where it does not.

        Raises:
            SpecError: It ended, said something else than a message, or took too long.
        """
        try:
            return Frame.of(exchanged(self._process, question.packed(), seconds * PATIENCE))
        except (SilentError, ValueError) as error:
            code = None if isinstance(error, TimeoutError) else died(self._process)
            self._end()
            if code is None or code == -signal.SIGXCPU:
                fate = f"took more than {seconds} s in the process that reads it"
            else:
                how = f"signal {-code}" if code < 0 else f"exit code {code}"
                fate = f"ended the process that reads it ({how})"
            raise SpecError(f"{self.name} {fate}: {_HARM}") from error
        except BaseException:  # stopped in the middle: the process would answer the next question with this one's
            self._end()
            raise

    def _refusal(self, header: Mapping[str, Any]) -> Exception:
        kind, message = header["error"], header["message"]
        if kind == "MemoryError":
            needs = f"{self.name} needs more than {ADDRESSES / 1e9:g} GB beside four times its own size"
            return SpecError(f"{needs}: it is damaged or made to do harm; give a smaller one")
        if not kind:
            return SpecError(f"{self.name} cannot be read: {message}; write it again")
        refusal = InfrastructureError if kind == "InfrastructureError" else SpecError
        return refusal(message if self.name in message else f"{self.name}: {message}")


_HARM = "it is damaged or made to do harm; ask for it again"


def started() -> "subprocess.Popen[bytes]":
    """A process that reads a model, in which nothing of this one's environment is but what Python needs."""
    environment = {name: os.environ[name] for name in KEPT if name in os.environ}
    environment |= {**OWN, "PYTHONPATH": str(Path(tasks.__file__).parents[1])}
    words = [sys.executable, "-P", "-W", "ignore", "-m", "tasks.scoring.model_reader"]
    pipe = subprocess.PIPE
    return subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=pipe, env=environment, bufsize=0)  # noqa: S603 our own words


def died(process: "subprocess.Popen[bytes]") -> int | None:
    """How a process ended without a message; None where it did not."""
    try:
        return process.wait(timeout=5)
    except subprocess.TimeoutExpired:
        return None


def ended(process: "subprocess.Popen[bytes]") -> None:
    """End a process, and close what it was talked to by."""
    process.kill()
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            stream.close()
    process.wait()


# --------------------------------------------------------------------------------------------------------------------
# The models that the stage ``score`` stored: fitted ones are read, a foreign one is queried in a separate process.


def stored(models: pa.Table, model: Model) -> dict[int, Readable]:
    """The models of an audit, by fold; an object of the program itself is the only one.

    Raises:
        IntegrityError: One is not what the stage would have left.
    """
    if model.kind == "object":
        return {row["fold"]: model.instance.knowing(json.loads(row["content"])) for row in models.to_pylist()}
    make = read if model.file is None else opened
    try:
        return {row["fold"]: make(ModelFile.of(model, row["content"])) for row in models.sort_by("fold").to_pylist()}
    except SpecError as error:
        raise IntegrityError(
            f"a stored model cannot be read again, so that it is not what was stored: {error}"
        ) from error
