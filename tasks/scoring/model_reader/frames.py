"""What the audit and the process that reads a model tell each other: a few words and arrays of numbers, never objects.

A message is its length in eight bytes, and arrays in the safetensors format with the words in its metadata: to read
it runs nothing, and unpacks nothing. The order in which an array lies in memory is kept, as sums depend on it.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, BinaryIO

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from tasks.numerics.arrays import Floats

HEAD = 8


@dataclass(frozen=True)
class Frame:
    """A message."""

    said: Mapping[str, Any]
    """Words and numbers, as JSON has them."""
    arrays: Mapping[str, Floats] = field(default_factory=dict)

    def packed(self) -> bytes:
        """The message as bytes, with its length before it."""
        columns = [name for name, array in self.arrays.items() if array.flags.f_contiguous and array.ndim == 2]
        arrays = {
            name: np.ascontiguousarray(array.T if name in columns else array) for name, array in self.arrays.items()
        }
        content = save(arrays, {"said": json.dumps({"said": self.said, "columns": columns})})
        return len(content).to_bytes(HEAD, "little") + content

    @classmethod
    def of(cls, content: bytes) -> "Frame":
        """The message of bytes without their length.

        Raises:
            ValueError: They are none.
        """
        try:
            arrays = load(content)
            length = int.from_bytes(content[:HEAD], "little")
            words = json.loads(json.loads(content[HEAD : HEAD + length])["__metadata__"]["said"])
            said, columns = words["said"], words["columns"]
            return cls(said, {name: array.T if name in columns else array for name, array in arrays.items()})
        except (SafetensorError, KeyError, TypeError, RecursionError) as error:
            raise ValueError(f"no message: {error!r}") from error


def received(stream: BinaryIO) -> Frame | None:
    """The next message of a stream; None at its end.

    Raises:
        ValueError: It is none.
    """
    head = stream.read(HEAD)
    return Frame.of(stream.read(int.from_bytes(head, "little"))) if len(head) == HEAD else None
