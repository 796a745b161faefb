"""Expectations that Great Expectations makes once: its own are made anew some eight times for each table and run.

A worker judges the same declarations for every partition, and a table of some rows takes longer to prepare than to
count. Scope: what is kept. Which expectations there are: ``expectations``. Which a table has: ``suites``.
"""

import json
import logging
from copy import copy, deepcopy
from typing import Any, NamedTuple, Self

from great_expectations.compatibility.pydantic import PrivateAttr
from great_expectations.expectations.expectation import BatchExpectation
from great_expectations.expectations.expectation_configuration import ExpectationConfiguration
from great_expectations.util import convert_to_json_serializable

for _name in ("great_expectations", "great_expectations.data_context.types.base"):
    logging.getLogger(_name).setLevel(logging.CRITICAL)  # results have its errors; it tells of a directory, too


class KeptConfiguration(ExpectationConfiguration):  # type: ignore[misc]  # the library has no types
    """Type and arguments of an expectation; its copies share the expectations that they make, one a batch."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._shared: dict[Any, Any] = {}

    def __deepcopy__(self, _: Any) -> Self:
        """A copy of its own for the batch; the other arguments do not change."""
        copied = copy(self)
        copied._kwargs = dict(self._kwargs)
        return copied

    def to_domain_obj(self) -> Any:
        """The expectation of the batch in its arguments."""
        batch = self._kwargs.get("batch_id")
        if batch not in self._shared:
            expectation = super().to_domain_obj()
            expectation._made = self
            self._shared[batch] = expectation
        return self._shared[batch]

    @property
    def record(self) -> "Record":
        """What is kept of it, the same for every batch."""
        if "record" not in self._shared:
            self._shared["record"] = _record(self)
        kept: Record = self._shared["record"]
        return kept


class KeptExpectation(BatchExpectation):  # type: ignore[misc]  # the library has no types
    """Makes its configuration and the list of its metrics once."""

    _made: Any = PrivateAttr(default=None)
    _dependencies: Any = PrivateAttr(default=(None, None))

    @property
    def configuration(self) -> Any:
        """Type and arguments, which do not change."""
        if self._made is None:
            made = super().configuration
            facts = {name: getattr(made, name) for name in ("meta", "notes", "description", "severity", "id")}
            self._made = KeptConfiguration(made.type, made.kwargs, **facts)
        return self._made

    def get_validation_dependencies(self, execution_engine: Any = None, runtime_configuration: Any = None) -> Any:
        """The metrics that it needs; every run asks twice, for the same format of results."""
        if self._dependencies[0] != runtime_configuration:
            asked = deepcopy(runtime_configuration)  # the library adds to it
            self._dependencies = asked, super().get_validation_dependencies(execution_engine, runtime_configuration)
        return self._dependencies[1]


class Record(NamedTuple):
    """A configuration without the batch and identifiers."""

    sign: str
    """Type and arguments as text, which tell the expectations of a suite apart."""
    content: dict[str, Any]
    """As Great Expectations writes it."""


def record(configuration: Any) -> Record:
    """What is kept of a configuration."""
    return configuration.record if isinstance(configuration, KeptConfiguration) else _record(configuration)


def _record(configuration: Any) -> Record:
    arguments = {name: value for name, value in configuration.kwargs.items() if name != "batch_id"}
    content = {"type": configuration.type, "kwargs": convert_to_json_serializable(arguments)}
    content |= {"meta": configuration.meta or {}, "severity": configuration.severity.value}
    return Record(json.dumps([configuration.type, arguments], sort_keys=True, default=str), content)
