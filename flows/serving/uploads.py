"""A table that a browser sends, written piece by piece into a folder of the lake.

The body is a form of several parts (RFC 7578): fields first, the table, and a second file where there is one. They are
written as they come, with mode 0600 and together never more than the limit, and nothing of them is looked at here.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from python_multipart.exceptions import MultipartParseError
from python_multipart.multipart import MultipartParser, parse_options_header

from flows.serving.starts import TABLE, safe_name
from schemas.errors import SpecError

_FILES: Final = ("table", "second")
"""Names of the fields of files."""
_MOST_FIELDS, _MOST_VALUE = 4, 1024


class TooLargeError(Exception):
    """More bytes than the limit."""


@dataclass
class Incoming:
    """A form that arrives.

    Its pieces are given to ``write``, in order, and ``ended`` says that all came.
    """

    content_type: str
    folder: Path
    most: int
    """Bytes of all files."""
    admit: Callable[[dict[str, str]], None]
    """Looks at the fields before a file is written; what it raises ends the upload."""
    fields: dict[str, str] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    """Field of each file -> its bytes."""
    names: dict[str, str] = field(default_factory=dict)
    """Field of each file that was chosen -> its name."""
    _header: bytes = b""
    _value: bytes = b""
    _part: dict[bytes, bytes] = field(default_factory=dict)
    _descriptor: int = -1
    _ends: list[int] = field(default_factory=list)
    """Bytes of the files when the form ended; empty before."""
    _after: int = 0
    """Bytes that came in pieces after that one."""

    def __post_init__(self) -> None:
        """Begin to read.

        Raises:
            SpecError: it is no form with a file.
        """
        kind, options = parse_options_header(self.content_type)
        if kind != b"multipart/form-data" or not options.get(b"boundary"):
            raise SpecError("this is no form with a table; send it from the page")
        self._parser = MultipartParser(
            options[b"boundary"],
            {
                "on_header_field": lambda data, start, end: self._add(field=data[start:end]),
                "on_header_value": lambda data, start, end: self._add(value=data[start:end]),
                "on_header_end": self._end_header,
                "on_headers_finished": self._end_headers,
                "on_part_data": self._data,
                "on_part_end": self._end,
                "on_end": lambda: self._ends.append(self.size),
            },
        )

    @property
    def name(self) -> str:
        """Of the table; empty where none was chosen."""
        return self.names.get(_FILES[0], "")

    @property
    def second(self) -> str:
        """Name of the second file; empty where none was chosen."""
        return self.names.get(_FILES[1], "")

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(self.sizes.values())

    def write(self, piece: bytes) -> None:
        """Take the next piece.

        Raises:
            SpecError: it is not what the page sends.
            TooLargeError: the files are larger than the limit.
            OSError: the disk does not take it.
        """
        self._after += len(piece) if self._ends else 0
        try:
            self._parser.write(piece)
        except MultipartParseError as error:
            raise SpecError("the form cannot be read; send it from the page") from error
        if self._after > _MOST_VALUE:
            raise SpecError("the form goes on after its end; send it from the page")

    def ended(self) -> None:
        """Say that no piece follows.

        Raises:
            SpecError: a file is empty, or did not come whole.
        """
        if not self._ends:
            raise SpecError("the table did not arrive whole; send it again")
        if not self.name:
            raise SpecError("no table was chosen; choose a file")
        for part, name in self.names.items():
            if not self.sizes[part]:
                raise SpecError(f"the file {name} is empty; choose a table with a header and rows")

    def close(self) -> None:
        """Let go of the file; what it holds stays."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _add(self, field: bytes = b"", value: bytes = b"") -> None:  # the parser bounds both
        self._header, self._value = self._header + field, self._value + value

    def _end_header(self) -> None:
        self._part[self._header.lower()] = self._value
        self._header, self._value = b"", b""

    def _end_headers(self) -> None:
        _, options = parse_options_header(self._part.get(b"content-disposition", b""))
        self._field = options.get(b"name", b"").decode("utf-8", "replace")
        self._value = b""
        if b"filename" not in options:
            if self._field in _FILES or len(self.fields) >= _MOST_FIELDS:
                raise SpecError("this is no form of the page; send it from the page")
            return
        if self._field not in _FILES or self._field in self.sizes:
            raise SpecError("one table at a time: the form holds another file")
        self.admit(self.fields)
        self.sizes[self._field] = 0
        if name := options[b"filename"].decode("utf-8", "replace"):
            if safe_name(name) in self.names.values():
                raise SpecError(f"both files are called {safe_name(name)}; give one of them another name")
            self.names[self._field] = safe_name(name)
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
            self._descriptor = os.open(self.folder / TABLE / self.names[self._field], flags, 0o600)

    def _data(self, data: bytes, start: int, end: int) -> None:
        if self._field not in _FILES:
            self._value += data[start:end]
            if len(self._value) > _MOST_VALUE:
                raise SpecError("a field of the form is too long; send it from the page")
            return
        self.sizes[self._field] += end - start
        if self.size > self.most:
            raise TooLargeError
        piece = memoryview(data)[start:end]
        while piece and self._descriptor >= 0:
            piece = piece[os.write(self._descriptor, piece) :]

    def _end(self) -> None:
        if self._field in _FILES:
            self.close()
        else:
            self.fields[self._field] = self._value.decode("utf-8", "replace")
        self._part, self._header, self._value = {}, b"", b""
