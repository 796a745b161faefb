"""Random changes of one key of every example spec: what comes out is a valid spec or a SpecError, and nothing else.

`EVENHAND_FUZZ=2000` makes as many changes to each spec, for a nightly run.
"""

import datetime
import math
import os
from copy import deepcopy
from typing import Any
from zlib import crc32

import numpy as np
import pytest
import yaml
from conftest import REPOSITORY, examples

from schemas.audit.spec import AuditSpec
from schemas.errors import SpecError
from tasks.metrics.limits import faults
from tasks.pipeline.registry import checked, validated

CHANGES = int(os.environ.get("EVENHAND_FUZZ", examples(300)))
FILES = sorted((REPOSITORY / "data" / "audits").rglob("*.yaml"))
ODD: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2, 0.5, 10**9, -(10**9), 2**32, 10**30, 10**400, 1e-320, 1e308),
    *(math.inf, -math.inf, math.nan),
    *("", "abc", "no", "{year}", "\x00", "\u202e", "a" * 5000, ".nan", "rate_matched", "paper"),
    *(
        [],
        {},
        [[]],
        [None],
        [1, 2, 3],
        [math.nan, 1.0],
        [9, 1],
        {"a": {}},
        {1: 2},
        {None: None},
        {(1, 2): 3},
        {"a": [1]},
    ),
    *(datetime.date(2024, 2, 29), datetime.datetime(2024, 1, 1, 12, 0), b"\xff\x00", {1, 2}),
)


def places(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every key and every position of a parsed spec."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place for key, held in inner for place in ((*at, key), *places(held, (*at, key)))]


def changed(spec: dict[str, Any], rng: np.random.Generator) -> tuple[dict[str, Any], str]:
    """The spec with one key set to something odd, left out, added, or moved under another name."""
    out = deepcopy(spec)
    every = places(out)
    *parents, last = every[rng.integers(len(every))]
    here: Any = out
    for part in parents:
        here = here[part]
    odd = deepcopy(ODD[rng.integers(len(ODD))])
    how = ("set", "set", "set", "left out", "added", "renamed")[rng.integers(6)]
    if how == "set" or not isinstance(here, dict):
        here[last] = odd
    elif how == "left out":
        del here[last]
    elif how == "added":
        here[("odd", 7, True, None, "k", "seed")[rng.integers(6)]] = odd
    else:
        here[f"{last}x"] = here.pop(last)
    return out, f"{how} {parents} {last!r} {odd!r}"[:300]


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}-{file.stem}")
def test_one_changed_key_makes_a_valid_spec_or_a_spec_error(file) -> None:  # type: ignore[no-untyped-def]
    raw = yaml.load(file.read_text(encoding="utf-8"), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    rng = np.random.default_rng(crc32(file.name.encode()))
    refused, told = 0, []
    for _ in range(CHANGES):
        other, what = changed(raw, rng)
        try:
            spec = checked(other, file.name, (faults,))
            assert validated(AuditSpec, spec.model_dump(mode="json")) == spec, what
        except SpecError as error:
            refused += 1
            told.append((str(error), what))
        except Exception as error:
            pytest.fail(f"{type(error).__name__} where a spec or a SpecError was expected: {what}: {error}")
    assert CHANGES / 10 < refused < CHANGES
    assert [what for message, what in told if not message.strip() or "no mapping of keys" in message] == []
