"""Judges an audit's table again: with planted harm (``evenhand power``), and by other choices (``evenhand stability``).

The tables are read from the lake where it holds them; else the first stages are run in memory. Nothing is written.
"""

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
from threadpoolctl import threadpool_limits

from flows.concurrency.schedule import until
from flows.partitions.part_spec import spec_to_audit
from flows.runs.index import read_manifest, run_of
from flows.runs.record import planned_in
from flows.runs.replay import spec_of_run
from flows.runs.run_names import opened
from schemas.artifact import Partition
from schemas.audit.spec import AuditSpec, check_decided
from schemas.errors import SpecError
from schemas.tables.applications import APPLICATIONS, MEMBERSHIPS
from schemas.tables.readings import ABANDONED, ABANDONED_MEMBERSHIPS, CHOICES, COPIED_ROWS
from schemas.tables.verdicts import PUBLISHED_VERDICTS, VERDICTS
from schemas.terms import State, Theory
from tasks.in_memory import call_plainly
from tasks.ingest.registry import check_columns
from tasks.lake.storage import storage_at
from tasks.lake.store import Lake
from tasks.methods.adjusted.adjust.power import PLANTS, QUESTIONS, Judge, Planting, Power, States, power_of, targets_of
from tasks.methods.adjusted.adjust.settings import adjust_settings
from tasks.methods.adjusted.adjust.stability import Stability, choices_of, stability_of
from tasks.metrics.limits import check_limits
from tasks.plan import held

READ = (APPLICATIONS, COPIED_ROWS, MEMBERSHIPS, ABANDONED, ABANDONED_MEMBERSHIPS)
"""Tables that the judged effect rests on."""
STAGES = ("preprocess", "abandoned")
"""The last stages that write some of them."""
WORTHWHILE = 200
"""Copies of the table from which more processes than one are started: each loads its libraries first."""


# --------------------------------------------------------------------------------------------------------------------
# Power: what this audit could have seen.


@dataclass(frozen=True)
class Question:
    """Targets and draws of a power table."""

    group: str | None = None
    part: str | None = None
    plants: int = PLANTS
    seed: int | None = None
    """That of the spec if None."""
    jobs: int = 1
    value: str | None = None
    """The partition, of a spec with ``by``."""


def power_rows(spec: AuditSpec, root: str, question: Question) -> list[Power]:
    """How often each question would have come out outside, by target and size of harm.

    Raises:
        SpecError: the spec does not judge the lender's decisions, or there is no such group or part.
        EvenhandError: as ingest and preprocessing say.
    """
    with _lake_to_read(root) as lake:
        spec = spec_to_audit(spec, lake, question.value)
        if adjust_settings(spec) is None:
            raise SpecError("this spec leaves the method `adjusted` out, which judges similar applicants; ask for it")
        tables = _tables_of(spec, lake)
    with threadpool_limits(1, user_api="blas"):
        judge = Judge.of(spec, tables)
        seed = spec.seed if question.seed is None else question.seed
        out: list[Power] = []
        for target in targets_of(judge, question.group, question.part):
            if target.reason:
                head = target.attribute, target.group, target.part, 0.0, target.n, 0
                out.append(Power(QUESTIONS[Theory.SIMILAR_APPLICANTS], *head, None, None, None, target.reason))
                continue
            planting = Planting.of(judge, target, seed)
            copies = question.plants * (1 + len(planting.points))
            out += power_of(planting, drawn(planting, question.plants, question.jobs if copies >= WORTHWHILE else 1))
    return out


def drawn(planting: Planting, plants: int, jobs: int) -> list[States]:
    """The states of all copies in the order of their numbers, drawn by so many processes."""
    if jobs < 2:
        return planting.drawn(range(plants))
    shares = [share.tolist() for share in np.array_split(np.arange(plants), jobs)]
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        return [states for part in pool.map(_share, [planting] * jobs, shares) for states in part]


def _share(planting: Planting, numbers: Sequence[int]) -> list[States]:
    with threadpool_limits(1, user_api="blas"):
        return planting.drawn(numbers)


@contextmanager
def _lake_to_read(root: str) -> Iterator[Lake]:
    """The lake, or an empty one that is gone afterwards: reading makes none."""
    place = storage_at(root)
    if any(place.exists(folder) for folder in ("stages", "backfills", "vintages")):
        yield Lake(root, write=False)
        return
    with TemporaryDirectory(prefix="evenhand-") as folder:
        yield Lake(Path(folder))


def _tables_of(spec: AuditSpec, lake: Lake) -> dict[str, pa.Table]:
    """The tables of the first stages: those of the lake where it holds all of them, else computed in memory."""
    check_decided(spec)
    check_columns(spec)
    check_limits(spec)
    steps = planned_in(lake, spec).steps
    names = {step.stage.name for step in steps}
    first_steps = [step for stage in STAGES if stage in names for step in until(steps, stage)]
    steps = tuple(step for step in steps if step in first_steps)
    done = held(lake, steps)
    if len(done) == len(steps):
        return _read(lake, done, [table.name for table in READ])
    return {name: pa.concat_tables(parts) for name, parts in call_plainly(steps).items()}


def _read(lake: Lake, partitions: Iterable[Partition], names: Sequence[str]) -> dict[str, pa.Table]:
    """Tables by name, those that some partition has."""
    parts: dict[str, list[pa.Table]] = {}
    for artifact in (artifact for partition in partitions for artifact in partition.tables):
        if artifact.table in names:
            parts.setdefault(artifact.table, []).append(lake.read(artifact))
    return {name: pa.concat_tables(of_name) for name, of_name in parts.items()}


# --------------------------------------------------------------------------------------------------------------------
# Stability: whether a state depends on how the effect was made.


WITHHELD = "withheld: it rests on few people"


def stability_of_run(root: str, name: str | None) -> tuple[str, list[Stability]]:
    """The run, and every judged group by 48 choices; a group that reports withhold has none.

    Raises:
        SpecError: the lake has no such run, or the run did not judge similar applicants by the lender's decisions.
    """
    lake, run = opened(root, name)
    spec = spec_of_run(read_manifest(lake, run), run)
    settings = adjust_settings(spec)
    if settings is None:
        raise SpecError(f"run {run} has no judged effect: its spec leaves the method `adjusted` out")
    if settings.ladder.judged != "expected":
        raise SpecError(f"run {run} judges the logit (`methods.adjusted.judged`); the choices are about `expected`")
    partitions = run_of(lake, run).partitions
    tables = _read(lake, partitions, [VERDICTS.name, PUBLISHED_VERDICTS.name, CHOICES.name])
    if VERDICTS.name not in tables:
        raise SpecError(f"run {run} has no verdicts; audit again to make them")
    choices = tables.get(CHOICES.name, CHOICES.empty())
    if not choices.num_rows:  # of many applications the run itself makes none
        choices = choices_of(_read(lake, partitions, [table.name for table in READ]), settings)
    hidden = {
        (row["protected_attribute"], row["group"])
        for row in tables[PUBLISHED_VERDICTS.name].to_pylist()
        if row["withheld"] and row["theory"] == Theory.SIMILAR_APPLICANTS
    }
    published = [
        Stability(of.protected_attribute, of.group, State.INCONCLUSIVE, 0, (), WITHHELD)
        if (of.protected_attribute, of.group) in hidden
        else of
        for of in stability_of(tables[VERDICTS.name], choices, spec.verdicts)
    ]
    return run, published
