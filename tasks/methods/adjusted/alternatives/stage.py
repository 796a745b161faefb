"""Alternatives: every candidate that was tried, and for each group the gain of the best on rows that chose none.

The search goes on after a stop: it leaves what it tried in the scratch place of the stage.
"""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import ClassVar

import numpy as np
import pyarrow as pa

from schemas.audit.model import Model
from schemas.audit.partition import Growth
from schemas.audit.spec import AuditSpec, Protected, StageSettings
from schemas.errors import IntegrityError
from schemas.tables.applications import APPLICATIONS, ENCODINGS, FEATURES, MEMBERSHIPS
from tasks.methods.adjusted.settings import AdjustedSettings, Alternatives
from tasks.methods.adjusted.tables import ALTERNATIVE_GAINS, ALTERNATIVES
from tasks.pipeline.stage import NOWHERE, OwnStage, Produced, Scratch, stage

FILE = "tried.json"


class AlternativesSettings(StageSettings):
    """What decides the search; all of it is fixed before the first candidate."""

    memory: ClassVar[Growth] = Growth(250, 1.5)

    alternatives: Alternatives
    model: Model
    protected: tuple[Protected, ...]
    level: float
    seed: int


def alternatives_settings(spec: AuditSpec) -> AlternativesSettings | None:
    """The stage's settings; None of a spec that requests no search."""
    method_settings = spec.methods.of(AdjustedSettings)
    if method_settings is None or method_settings.alternatives is None or not spec.features():
        return None
    return AlternativesSettings.of(spec, alternatives=method_settings.alternatives, level=spec.bootstrap.level)


@stage(
    reads=(FEATURES, ENCODINGS, APPLICATIONS, MEMBERSHIPS),
    writes=(ALTERNATIVES, ALTERNATIVE_GAINS),
    balanced=False,
    resumable=True,
)
def alternatives(
    features: pa.Table,
    encodings: pa.Table,
    applications: pa.Table,
    memberships: pa.Table,
    *,
    settings: AlternativesSettings,
    scratch: Scratch = NOWHERE,
) -> Produced:
    """The register of candidates, and the gain for each group."""
    from tasks.methods.adjusted.algorithm.alternatives import (
        CandidateSearch,
        Gain,
        Groups,
        Pool,
        Search,
        Tried,
        parts_of,
        searched,
    )
    from tasks.preprocessing.columns import groups_of

    ids = features["row_id"].to_numpy()
    grouped = groups_of(memberships, ids, settings.protected)
    of_row = applications.select(["row_id", "favourable", "outcome"]).to_pandas().set_index("row_id").loc[ids]
    names = tuple(dict.fromkeys(encodings["feature"].to_pylist()))
    pool = Pool(
        np.column_stack(
            [np.empty((len(ids), 0)), *(features[name].to_numpy() for name in encodings["encoded"].to_pylist())]
        ),
        encodings["feature_index"].to_numpy(),
        names,
        frozenset(column for p in settings.protected for column in p.columns),
        of_row["outcome"].to_numpy(dtype=bool),
        of_row["favourable"].to_numpy(dtype=bool),
        tuple(Groups(name, g.group, tuple(g.groups), g.reference) for name, g in grouped.items() if g.compared),
    )
    of = settings.alternatives
    family = settings.model.kind if settings.model.kind != "none" else "logistic_regression"
    fixed = Search(family, of.loss, of.candidates, of.draws, settings.level, settings.seed)

    def earlier(content: bytes) -> list[list[Tried]]:
        try:
            return [[Tried(**row) for row in of_split] for of_split in json.loads(content)]
        except (ValueError, TypeError) as error:
            raise IntegrityError("what a stopped search left is damaged, and it begins again") from error

    done: list[list[Tried]] = []

    def keep(tried: Sequence[Tried]) -> None:
        scratch.write(FILE, json.dumps([[asdict(t) for t in of_split] for of_split in (*done, tried)]).encode())

    before = scratch.whole(FILE, earlier) or []
    search, gains, above = CandidateSearch(pool, fixed), list[Gain](), Counter[tuple[str, str]]()
    for split in range(of.splits):
        part = parts_of(pool, np.random.default_rng([settings.seed, 4, split])) if split else search.part
        of_split = CandidateSearch(pool, fixed, part) if split else search
        done.append(searched(of_split, before[split] if split < len(before) else (), keep))
        of_groups = list(of_split.gains(done[split]))
        gains = gains or of_groups
        above.update((gain.attribute, gain.group) for gain in of_groups if gain.above_zero)
    tried = done[0]
    chosen = {gain.chosen for gain in gains if gain.chosen is not None}
    base, candidates = tried[0], {c.number: c for c in search.listed()}
    rows = []
    for t in tried:
        candidate, is_eligible = candidates[t.number], not t.reason and t.auc >= base.auc - of.loss
        why = t.reason or "not eligible: its AUC on the choosing part is below the base's by more than the loss"
        if t.number == 0:
            why = "base"
        elif is_eligible:
            why = "chosen: highest ratio of a group" if t.number in chosen else "eligible, and not the highest ratio"
        for key, ratio in t.ratios.items():
            attribute, group = key.split("\n")
            rows.append(
                {
                    **{"candidate": t.number, "kind": candidate.kind, "features": list(candidate.features)},
                    **{"family": family, "penalty": candidate.penalty, "segment": candidate.segment or None},
                    **{"seed": settings.seed, "protected_attribute": attribute, "group": group, "auc": t.auc},
                    **{"ratio": ratio, "gain": ratio - base.ratios[key], "cuts": json.dumps(t.cuts, sort_keys=True)},
                    "eligible": is_eligible,
                    "chosen": any(g.chosen == t.number and (g.attribute, g.group) == (attribute, group) for g in gains),
                    "reason": why,
                }
            )
    return Produced(
        {
            ALTERNATIVES.name: ALTERNATIVES.build(
                **{c.name: [row[c.name] for row in rows] for c in ALTERNATIVES.columns}
            ),
            ALTERNATIVE_GAINS.name: ALTERNATIVE_GAINS.build(
                **{
                    **{name: [getattr(gain, name) for gain in gains] for name in _OF_GAIN},
                    "protected_attribute": [gain.attribute for gain in gains],
                    "auc_difference": [gain.auc for gain in gains],
                    "above_zero": [gain.above_zero for gain in gains],
                    "candidates": [len(tried) - 1] * len(gains),
                    "loss": [of.loss] * len(gains),
                    "splits": [of.splits] * len(gains),
                    "splits_above": [above[gain.attribute, gain.group] for gain in gains],
                }
            ),
        }
    )


_OF_GAIN = (
    "group",
    "base_auc",
    "base_ratio",
    "eligible",
    "chosen",
    "gain_choosing",
    "approvals",
    "losses",
    "ratio",
    "gain",
    "low",
    "high",
    "n",
    "reason",
)


OWN_STAGE = OwnStage(stage=alternatives, settings=alternatives_settings)
