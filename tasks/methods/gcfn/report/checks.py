"""What speaks against the generators: their training, how much of a person they keep, and covariates that leak.

Nothing here can show that a person's mediators are right; it can only show that they are not. Here belong the numbers
of the generators themselves; what they imagine is in ``mediators``.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from tasks.methods.gcfn.report.charts import MEAN, ONE, TRAINING, epochs
from tasks.methods.gcfn.report.lookups import Generators
from tasks.numerics.mediation import ALL_COVARIATES, LEAKS
from tasks.reporting.lookups import words_for
from tasks.reporting.material import listed
from tasks.reporting.numbers import number_cell, percent, significant
from tasks.reporting.section import Cell, Figure, Notice, Panel, TableView

GLOSSARY = {
    "reconstruction": "squared error with which a network gives back the mediators that it was shown, per input",
    "advantage": "how much better a discriminator tells groups by their mediators than covariates alone tell them, in "
    "nats; 0 where the game has come to rest",
    "kept": "slope of imagined on observed mediators, each less the mean of people alike: about 1 where the person is "
    "kept, 0 where only the mean of people alike is left, below 0 where ranks are turned round",
    "beyond the mean": "how much imagined mediators vary about the mean of people alike, as a part of how much "
    "observed ones do",
    "apart from quantiles": "root mean square distance between what a network and the quantile map imagine, in "
    "standard deviations of the mediator",
}
_TRAINING = ("reconstruction", "advantage", "accuracy")
_PERSON = ("kept", "beyond_mean", "apart_from_quantiles")
_TERMS = {
    "reconstruction": "Reconstruction error",
    "log_loss": "Log loss of the discriminator, nats",
    "accuracy": "Accuracy of the discriminator",
}
_DRAWN = 60
"""Epochs that are drawn: more would only make the page larger."""


def warnings(g: Generators) -> tuple[Notice, ...]:
    """A loud warning where covariates give the group away: nobody alike is then found in the other group."""
    found = [row for row in g.found("leak") if row["doubtful"]]
    if not found:
        return ()
    points = tuple(f"{_column(g, row)}: AUC {significant(row['value'])}." for row in found)
    text = (
        f"An AUC above {LEAKS:g} says that almost nobody with these covariates is in another group, so that mediators "
        "there are guessed where there is nobody to learn from. Take the role of a covariate away from what "
        f"{g.attribute.name} itself decides. What is said below rests on this guess."
    )
    return (Notice(f"Covariates give {g.attribute.name} away", text, points),)


def _column(g: Generators, row: Mapping[str, Any]) -> str:
    return ALL_COVARIATES if row["column"] == ALL_COVARIATES else words_for(g.material, row["column"])


def readings(g: Generators) -> tuple[str, ...]:
    """What of the checks is a reason for doubt, each in a sentence."""
    return tuple(said for said in (_rested(g), *_left(g), _leaking(g)) if said)


def _rested(g: Generators) -> str:
    found = g.found("converged")
    if not found:
        return ""
    rested = sum(row["value"] == 1 for row in found)
    said = f"Came to rest: {rested} of {len(found)} networks."
    if rested == len(found):
        return f"{said} That is needed, and does not show that they imagine the right mediators."
    return f"{said} What the others imagine is that of an unfinished training, and counts in the worst of them."


def _left(g: Generators) -> Iterator[str]:
    """By mediator how much of a person is left."""
    for name, rows in _by_column(g, "kept").items():
        known = [row["value"] for row in rows if row["value"] is not None and math.isfinite(row["value"])]
        words = words_for(g.material, name)
        if not known:
            yield f"{words}: whether anything of a person is left in it cannot be said."
            continue
        low, high = significant(min(known)), significant(max(known))
        between = low if len(known) == 1 else f"between {low} and {high}"
        doubtful = sum(row["doubtful"] for row in rows)
        few = (
            f" Less than half in {doubtful} of {len(rows)} networks: mostly the mean of people alike, so that flips "
            "are those of an average applicant and not of this one."
        )
        yield f"{words}: kept {between} (1: the person, 0: the mean of people alike)." + few * bool(doubtful)


def _leaking(g: Generators) -> str:
    found = [row for row in g.found("leak") if row["value"] is not None and not row["doubtful"]]
    if not found or any(row["doubtful"] for row in g.found("leak")):
        return ""
    worst = max(found, key=lambda row: row["value"])
    return (
        f"{g.attribute.name} can be told from {_column(g, worst)} with an AUC of {significant(worst['value'])} "
        "(0.5: not at all). The nearer to 1, the fewer people alike there are in the other group to learn from."
    )


def figures(g: Generators) -> tuple[Figure, ...]:
    """The terms of the training, epoch by epoch."""
    panels = tuple(_panel(g, term, words) for term, words in _TERMS.items()) if g.history else ()
    caption = (
        "Reconstruction error should fall to nearly 0. The discriminator guesses which mediators are the observed "
        "ones: at the end of the game it should know no more than the covariates tell. A line that still moves at the "
        f"end is that of a training that is not finished. At most {_DRAWN} epochs are drawn."
    )
    title = f"How the training went, by {g.attribute.name}"
    return (Figure(title, panels, caption, tuple(TRAINING.values())),)


def _panel(g: Generators, term: str, words: str) -> Panel:
    last = max(row["epoch"] for row in g.history)
    chosen = {round(epoch) for epoch in np.linspace(1, last, min(last, _DRAWN))}
    by_epoch: dict[int, list[float]] = {}
    rows: list[dict[str, Any]] = []
    for row in g.history:
        if row["epoch"] in chosen:
            by_epoch.setdefault(row["epoch"], []).append(row[term])
            rows.append({"what": ONE, "network": str(row["network"]), "epoch": row["epoch"], "value": row[term]})
    means = ((epoch, float(np.mean(values))) for epoch, values in by_epoch.items())
    rows += [{"what": MEAN, "network": MEAN, "epoch": epoch, "value": value} for epoch, value in means]
    label = f"{words} by epoch, of each network and on average; where it ended is in the table below."
    return epochs(words, label, rows)


def tables(g: Generators) -> tuple[TableView, ...]:
    """Network by network how the training ended and what is left of a person, and how much covariates tell."""
    return _trained(g), _persons(g), _leaks(g)


def _trained(g: Generators) -> TableView:
    found = {check: {row["network"]: row for row in g.found(check)} for check in (*_TRAINING, "converged")}
    rows = tuple(
        (
            number_cell(str(network)),
            *(_value(found[check].get(network)) for check in _TRAINING),
            Cell("yes" if row["value"] == 1 else "no: doubtful"),
        )
        for network, row in sorted(found["converged"].items())
    )
    header = ("Network", "Reconstruction error", "Advantage, nats", "Accuracy of the discriminator", "Came to rest")
    note = (
        "Means over the last tenth of the epochs. Came to rest: reconstruction error near 0, and a discriminator that "
        "knows hardly more or less than the covariates tell."
    )
    return TableView(f"The networks at the end of their training, by {g.attribute.name}", header, rows, note)


def _persons(g: Generators) -> TableView:
    found = {check: {(row["column"], row["network"]): row for row in g.found(check)} for check in _PERSON}
    rows = tuple(
        (
            Cell(words_for(g.material, column)),
            number_cell("–" if network is None else str(network)),
            *(_value(found[check].get((column, network))) for check in _PERSON),
        )
        for column, network in found["kept"]
    )
    header = ("Mediator", "Network", "Kept", "Beyond the mean", "Apart from quantiles")
    note = (
        "Kept and beyond the mean should be about 1: a generator that gives everybody the mean of people alike scores "
        "0 in both, however well its distribution looks. Apart from quantiles: of continuous mediators; taken one by "
        "one the quantile map is the answer that keeps ranks, and 0 is agreement with it. Doubtful: less than half of "
        "the person is left, or the quantile map is far. Mediators with categories have none of these."
    )
    title = f"What is left of a person, by {g.attribute.name}"
    return TableView(title, header, rows, note, folded=len(rows) > _DRAWN // 3)


def _leaks(g: Generators) -> TableView:
    rows = tuple((Cell(_column(g, row)), _value(row)) for row in g.found("leak"))
    note = "AUC of foretelling the group, cross-validated. 0.5: not at all; near 1 nobody alike is in another group."
    title = f"How well covariates tell {g.attribute.name}"
    return TableView(title, ("Covariate", "AUC"), rows, note, folded=True)


def _by_column(g: Generators, check: str) -> dict[str, list[Mapping[str, Any]]]:
    found: dict[str, list[Mapping[str, Any]]] = {}
    for row in g.found(check):
        found.setdefault(row["column"], []).append(row)
    return found


def _value(row: Mapping[str, Any] | None) -> Cell:
    """A number of the generators, with a word where it is a reason for doubt."""
    if row is None:
        return Cell("–", "none")
    if row["value"] is None or not math.isfinite(row["value"]):
        return Cell("undefined", "none")
    told = percent(row["value"]) if row["check"] == "accuracy" else significant(row["value"])
    return number_cell(told + " (doubtful)" * row["doubtful"])


def in_doubt(g: Generators) -> str:
    """The checks that are a reason for doubt, for the first page; empty if there is none."""
    names = {
        "converged": "networks that did not come to rest",
        "kept": "mediators in which little of the person is left",
        "beyond_mean": "mediators that vary too little about the mean of people alike",
        "apart_from_quantiles": "mediators far from the quantile map",
        "leak": "covariates that give the group away",
    }
    found = [words for check, words in names.items() if any(row["doubtful"] for row in g.found(check))]
    return listed(found) if found else ""
