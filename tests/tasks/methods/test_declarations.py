"""Declarations of CEC, GCFN and RAGUEL fit what they measure: words for every measure, a block for every form."""

import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module

import pytest
import yaml
from conftest import REPOSITORY

from schemas.audit.spec import AuditSpec
from tasks.pipeline.method import Form
from tasks.pipeline.registry import METHODS, validated
from tasks.reporting.declared import Block, Setting, declared

NAMES = ("cec", "gcfn", "raguel")
ASKED = {
    "cec": {"training": {"grid": [0.5, 2.0]}, "pairs": "all"},
    "gcfn": {"prediction": {}},
    "raguel": {"reach": "any"},
}
"""Everything that they can be asked for."""
BANNED = re.compile(
    r"\b(because|caused?|due to|(un)?bias(ed)?|(un)?fair|discriminat\w*|prove[ns]?|significant(ly)?)\b", re.I
)
LEFT = {"mediator", "category"}
"""Parameters of a share by band that the block of trained predictors leaves to the file of measures."""


@pytest.mark.parametrize("name", NAMES)
def test_every_measure_has_words_and_stands_in_a_block(name: str) -> None:
    said = declared(name)
    measures = set(METHODS[name].measures)
    assert set(said.measures) == measures
    assert {each for block in said.evidence for each in block.measures} == measures
    assert sum(block.chart != "none" for block in said.evidence) <= 3
    assert not [block.title for block in said.evidence if BANNED.search(block.title)]


@cache
def planned(name: str) -> tuple[Form, ...]:
    raw = yaml.safe_load((REPOSITORY / "data" / "audits" / "boston1990.yaml").read_text())
    spec = validated(AuditSpec, {**raw, "methods": {name: ASKED[name]}})
    forms = import_module(f"tasks.methods.{name}.measures").measures(spec)
    return tuple(each for form in forms for each in form.named())


@pytest.mark.parametrize("name", NAMES)
def test_every_planned_form_is_reached_by_a_block(name: str) -> None:
    blocks = declared(name).evidence
    missed = [str(form) for form in planned(name) if not any(reaches(block, form) for block in blocks)]
    assert not missed


@pytest.mark.parametrize("name", NAMES)
def test_every_column_is_planned(name: str) -> None:
    shown = [(measure, at) for block in declared(name).evidence for measure, at in columns(block)]
    assert not [
        each for each in shown if not any(form.measure == each[0] and agrees(each[1], form) for form in planned(name))
    ]


def columns(block: Block) -> Iterator[tuple[str, dict[str, Setting]]]:
    """Every measure that a block shows, with its fixed parameters."""
    yield from ((shown.name, shown.at) for shown in block.columns)
    yield from ((f"{block.measure}_{form}".strip("_"), block.at) for form in block.forms if block.measure)


def reaches(block: Block, form: Form) -> bool:
    """Whether rows of the form, with all parameters that it may have, stand in the block."""
    beside = set(form.parameters) - (LEFT if form.measure == "treated_differently_by_band" else set())
    return any(
        measure == form.measure and agrees(at, form) and beside <= {*at, *block.along} for measure, at in columns(block)
    )


def agrees(at: dict[str, Setting], form: Form) -> bool:
    """Whether the form takes these values; ``min`` and ``max`` are any."""
    for parameter, value in at.items():
        values = form.parameters.get(parameter, ())
        if value not in ("min", "max") and values is not None and value not in values:
            return False
    return set(at) <= set(form.parameters)
