"""Graph of an audit's steps, by the tables that their stages declare: what each step waits for, what a step needs.

Nothing is listed by hand: a step waits for every earlier step that writes a table it reads.
"""

from collections.abc import Sequence

from schemas.errors import SpecError, nearest
from schemas.tables.applications import REFUSALS
from schemas.tables.validations import VALIDATIONS
from tasks.plan import Step

_OF_EVERY_STAGE = {REFUSALS.name, VALIDATIONS.name}


def waits_for(steps: Sequence[Step]) -> list[frozenset[int]]:
    """For each step, the places in ``steps`` of the earlier ones that write a table it reads."""
    written = [{table.name for table in step.stage.writes} | _OF_EVERY_STAGE for step in steps]
    return [
        frozenset(earlier for earlier in range(at) if written[earlier] & _read(step)) for at, step in enumerate(steps)
    ]


def until(steps: Sequence[Step], name: str) -> list[Step]:
    """A step and those that it needs, in order.

    Args:
        steps: of an audit.
        name: of a step, such as "detect cst", or of a stage: then of all its steps.

    Raises:
        SpecError: the audit has no such step.
    """
    asked = [at for at, step in enumerate(steps) if name in (step.name, step.stage.name)]
    if not asked:
        known = list(dict.fromkeys(each for step in steps for each in (step.name, step.stage.name)))
        raise SpecError(f"--until {name}: this audit has no such stage; {nearest(name, known)}")
    before = waits_for(steps)
    needed: set[int] = set()
    left = list(asked)
    while left:
        at = left.pop()
        if at not in needed:
            needed.add(at)
            left += before[at]
    return [steps[at] for at in sorted(needed)]


def _read(step: Step) -> set[str]:
    return {table.name for table in step.stage.reads} - {table.name for table in step.unread}
