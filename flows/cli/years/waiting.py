"""What waits for a person, as ``evenhand status`` prints it: disk, locks, alerts, signatures, remediations, damage."""

from typing import TYPE_CHECKING, Any

from flows.cli.summary import print_rows
from flows.cli.terminal import console

if TYPE_CHECKING:
    from flows.operations.overview import Overview
    from tasks.lake.store import Lake

_NAMED = 3
"""Of what waits; --json has all."""
_FILES = 5
"""Of the files that cannot be read; --json has all."""


def print_waiting(whole: "Overview") -> None:
    """Print what else an operator has to know, a line each; nothing of what is in order."""
    free = f"{whole.disk_free / 2**30:.1f} of {whole.disk / 2**30:.1f} GB free"
    lines = [("disk", free), *([("server", whole.server)] if whole.server else [])]
    lines += [("at work", f"{lock.lock} {lock.who}".rstrip()) for lock in whole.locks]
    for title, names in (
        ("alerts not delivered", whole.undelivered),
        ("runs nobody signed", whole.unsigned),
        ("remediations overdue", whole.remediations_overdue),
        ("to come, as they say; look at the clock that they ran by", whole.future),
    ):
        if names:
            lines.append((title, f"{len(names)} ({'; '.join(names[:_NAMED])}{_more(len(names), _NAMED)})"))
    if whole.unreadable:
        lines.append(("records that cannot be read, and are left out above", str(len(whole.unreadable))))
        lines += [("  cannot be read", each.reason) for each in whole.unreadable[:_FILES]]
        lines += (
            [("  cannot be read", f"{left} more; --json names all")]
            if (left := len(whole.unreadable) - _FILES) > 0
            else []
        )
    for title, said in lines:
        console.print(f"{title}: {said}", markup=False, soft_wrap=True)


def in_review(lake: "Lake") -> dict[str, list[dict[str, Any]]]:
    """Valid runs that nobody approved, unsigned ones first, and remediations that are open, the first due first.

    Raises:
        IntegrityError: an entry of the log was altered.
    """
    from flows.runs.trust.chain import sound_entries
    from flows.runs.trust.review import outstanding, reviews

    every = sound_entries(lake)
    runs = [
        {"run": each.run, "state": each.state, "by": "; ".join(f"{e.role} by {e.by}" for e in each.signatures)}
        for each in reviews(lake, every)
        if each.state != "approved"
    ]
    left = [
        {
            **{"due": each.due, "state": "overdue" if each.overdue() else "open", "owner": each.owner},
            **{"run": each.run, "entry": each.n, "text": each.text},
        }
        for each in outstanding(lake, every).open
    ]
    return {
        "runs": sorted(runs, key=lambda row: (row["state"] != "unsigned", row["run"])),
        "remediations": sorted(left, key=lambda row: (row["due"], row["entry"])),
    }


def print_review(lake: "Lake") -> None:
    """Print what is in review.

    Raises:
        IntegrityError: an entry of the log was altered.
    """
    found = in_review(lake)
    for title, none, rows in (
        ("valid runs that nobody approved", "every valid run is approved", found["runs"]),
        ("remediations that are open", "no remediation is open", found["remediations"]),
    ):
        if rows:
            print_rows(console, title, rows)
        else:
            console.print(none, markup=False)


def _more(count: int, shown: int) -> str:
    return f" and {count - shown} more" if count > shown else ""
