"""The stages of years as columns of a table."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from flows.partitions.standing import Stand


def matrix(stages: Sequence["Stand"]) -> dict[str, str]:
    """One column a stage; a stage that several methods share is one column, and as its worst."""
    found: dict[str, str] = {}
    for s in stages:
        name = s.stage.split(" ")[0]
        if found.get(name, "ok") == "ok":
            found[name] = s.state.value
    return found


def aligned(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows with the same columns in the same order, ``why`` last."""
    names = sorted(dict.fromkeys(name for row in rows for name in row), key=lambda name: name == "why")
    return [{name: row.get(name, "") for name in names} for row in rows]
