"""Blocks of evidence pages ask for what the method plans: no column stands for a measure that nobody makes."""

from importlib import import_module
from pathlib import Path

import pytest

from schemas.audit.file import read_spec
from tasks.pipeline.method import Form
from tasks.pipeline.registry import known_settings
from tasks.reporting.declared import Setting, declared

AUDITS = (Path("data/audits/law-school.yaml"), Path("data/audits/paper/law-school-intersectional.yaml"))
"""Both cross two attributes; the first has all methods, the second a causal graph with edges."""
EVERYTHING = {
    "methods.fgce": "{exact: true, face: [vector, path]}",
    "methods.cst": "{interval: wald}",
}
METHODS = ("cst", "fgce")
_ENDS = ("min", "max")


def planned(method: str) -> list[Form]:
    """Every measure with its parameters, where an audit asks for all that there is."""
    module = import_module(f"tasks.methods.{method}.measures")
    specs = [
        read_spec(path.read_text(encoding="utf-8"), str(path), known_settings(), EVERYTHING).spec for path in AUDITS
    ]
    return [named for spec in specs for form in module.measures(spec) for named in form.named()]


def asked(method: str) -> list[tuple[str, dict[str, Setting], tuple[str, ...], str]]:
    """Name, fixed parameters, parameters run along, and title of the block; sizes of parts are never planned."""
    blocks = [block for block in declared(method).evidence if not block.parts]
    columns = [(column.name, column.at, block.along, block.title) for block in blocks for column in block.columns]
    names = [("_".join((b.measure, form)) if form else b.measure, b) for b in blocks if b.measure for form in b.forms]
    return columns + [(name, block.at, block.along, block.title) for name, block in names]


def agrees(form: Form, at: dict[str, Setting], along: tuple[str, ...]) -> bool:
    """Whether the form has the fixed parameters at these values, and no others but those run along."""
    values = ((form.parameters[name], value) for name, value in at.items() if name in form.parameters)
    known = all(there is None or value in _ENDS or value in there for there, value in values)
    return known and set(at) <= set(form.parameters) <= set(at) | set(along)


@pytest.mark.parametrize("method", METHODS)
def test_blocks_ask_for_measures_that_are_planned(method: str) -> None:
    forms = planned(method)
    nobody = [
        f"{title}: {name} at {at} along {along}"
        for name, at, along, title in asked(method)
        if not any(form.measure == name and agrees(form, at, along) for form in forms)
    ]
    assert nobody == []


@pytest.mark.parametrize("method", METHODS)
def test_every_planned_measure_stands_in_a_block(method: str) -> None:
    shown = {measure for block in declared(method).evidence for measure in block.measures}
    module = import_module(f"tasks.methods.{method}.method")
    assert set(module.METHOD.measures) == shown
