"""Training states of generators as bytes, and as a file from which a stopped training resumes."""

import json
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from schemas.errors import DataQualityError, IntegrityError
from tasks.counterfactuals.algorithm.gan.checkpoint import Checkpoint, GanDivergedError
from tasks.numerics.determinism import digest_of
from tasks.pipeline.scratch import Scratch

log = logging.getLogger("evenhand")

_SAID: Final = "state"
"""The word of the metadata."""


def to_bytes(state: Checkpoint) -> bytes:
    """A state as safetensors, as bytes that follow from it alone: the format puts several words into any order."""
    said = {"epoch": state.epoch, "fingerprint": state.fingerprint, "digest": _digest(state.tensors)}
    return save(dict(state.tensors), {_SAID: json.dumps(said)})


def of_bytes(content: bytes) -> Checkpoint:
    """The state that ``to_bytes`` wrote.

    Raises:
        IntegrityError: It is damaged, or was never one.
    """
    try:
        tensors = load(content)
        length = int.from_bytes(content[:8], "little")
        said = json.loads(json.loads(content[8 : 8 + length])["__metadata__"][_SAID])
        if said["digest"] != _digest(tensors):
            raise IntegrityError("the state's tensors are not those that were written; train from the start")
        return Checkpoint(said["epoch"], tensors, said["fingerprint"])
    except (SafetensorError, KeyError, ValueError) as error:
        raise IntegrityError("the state of generators cannot be read as one; train from the start") from error


def _digest(tensors: Mapping[str, Tensor]) -> str:
    """The format itself does not notice a bit that has turned."""
    names = sorted(tensors)
    return digest_of(names, *(tensors[name].contiguous().numpy() for name in names))


@dataclass(frozen=True)
class States:
    """The state of one training, in a file that is replaced after each epoch."""

    scratch: Scratch
    name: str
    of: str
    """What is trained, in messages."""

    @property
    def path(self) -> Path | str | None:
        """Where the state is."""
        return self.scratch.path(self.name)

    def last(self) -> Checkpoint | None:
        """None where there is none that is whole, so that training begins from the start."""
        content = self.scratch.read(self.name)
        if content is None:
            return None
        try:
            return of_bytes(content)
        except IntegrityError as error:
            log.warning("%s: %s", self.path, error)
            return None

    def keep(self, state: Checkpoint) -> None:
        """Keep a state in place of the one before."""
        self.scratch.write(self.name, to_bytes(state))

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Errors of a training are told with what is trained, and where its state is.

        Raises:
            DataQualityError: The training diverged; its last good state is kept.
            IntegrityError: The state is of another training.
        """
        try:
            yield
        except GanDivergedError as error:
            self.keep(error.last_good)
            where = "" if self.path is None else f" (in {self.path})"
            raise DataQualityError(f"{self.of}: {error}{where}. These are settings of methods.gcfn") from error
        except IntegrityError as error:
            raise IntegrityError(f"{self.of}: {error}; remove {self.path} to train from the start") from error
