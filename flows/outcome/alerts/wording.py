"""Words of an alert: subject, text, report and what to do. Published figures only, as the ending has them."""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from flows.outcome.ending import Ending, Name

_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
_MOST_TEXT: Final = 2000
"""Characters of a message."""

STEPS: Mapping[Name, str] = {
    Name.WITHIN: "Nothing. `evenhand verdicts RUN` prints the state of every group.",
    Name.BREACH: "`evenhand verdicts RUN`; an analyst reads the report and signs it: `evenhand signoff RUN --as NAME "
    "--role prepared --note TEXT`.",
    Name.INSUFFICIENT: "`evenhand verdicts RUN`; then fewer groups, more rows, or a sign-off that accepts it.",
    Name.SPEC: "Mend the spec where the message says; `evenhand plan SPEC` lists the stages of a sound one.",
    Name.DATA_QUALITY: "`evenhand audit SPEC` at a terminal prints the whole message, with the rows; a corrected file "
    "is a new vintage.",
    Name.INFRASTRUCTURE: "`evenhand doctor` and `evenhand status` name disk, memory or server; mend it and run again: "
    "finished stages are kept.",
    Name.INTEGRITY: "Stop the worker. `evenhand verify RUN` and `evenhand log verify` name the files; restore them.",
    Name.CRASHED: "Nothing if a worker takes the run up again. Else run it again: finished stages are kept. Twice at "
    "one stage: more memory, or fewer stages at a time (EVENHAND_JOBS=1); the message says what it held.",
    Name.CANCELLED: "Nothing if you know who cancelled it. Else run it again: finished stages are kept.",
    Name.OVERDUE: "`evenhand schedules`; then look for a server or worker that is down, a paused schedule, or a file "
    "that did not come.",
}
"""First step of the runbook (deployments/README.md) for each ending."""


def subject_of(ending: Ending) -> str:
    """The subject line: ``Evenhand: breach in loans 2024``."""
    joined = ":" if ending.name is Name.OVERDUE else " in"
    return line(f"Evenhand: {ending.name.lower()}{joined} {ending.subject}")


def text_of(ending: Ending) -> str:
    """The text of one alert."""
    return "\n".join([*_facts(ending), f"What to do: {_step(ending)}"])


def digest_of(endings: Sequence[Ending], day: str) -> tuple[str, str]:
    """Subject and text of the message about all endings of a day."""
    if len(endings) == 1:
        return subject_of(endings[0]), text_of(endings[0])
    counts = {name: sum(each.name is name for each in endings) for name in Name}
    told = ", ".join(f"{count} {name.lower()}" for name, count in counts.items() if count)
    parts = ["\n".join([subject_of(each), *_facts(each), f"What to do: {_step(each)}"]) for each in endings]
    return f"Evenhand: {told} on {day}", "\n\n".join(parts)


def line(text: str) -> str:
    """A text without control characters, in one line."""
    return _CONTROL.sub(" ", text).strip()[:_MOST_TEXT]


def _facts(ending: Ending) -> list[str]:
    named = {"Run": ending.run, "Report": ending.report}
    message = "\n".join(line(each) for each in ending.message.split("\n"))[:_MOST_TEXT]
    return [message, *(f"{name}: {line(value)}" for name, value in named.items() if value)]


def _step(ending: Ending) -> str:
    step = STEPS[ending.name]
    return step.replace("RUN", ending.run) if ending.run else step
