"""``docs/reproduction.md``: every table and figure of the papers, and how ours stands to it.

Scope: the form of the page. Its rows: ``tasks.proof.ledger``.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from flows.reproduce.parts import Done
from tasks.pipeline.registry import METHODS
from tasks.proof.ledger import Row, Status
from tasks.proof.lines import Line, Verdict

COLUMNS = ("table or figure", "shows", "data sets", "status", "figures", "agree", "explained", "information", "not run")

HEAD = """\
# Reproduction: every table and figure of the papers

Written by `evenhand reproduce all --data DIR{quick} --markdown docs/reproduction.md`, in {seconds} CPU seconds. A test
holds its rows against `data/published`. Figure by figure: `evenhand reproduce METHOD --data DIR --every-cell`; what is
drawn: `--charts FILE`.

- **met**: every figure agrees within its tolerance, or the reason why it cannot is told. **beside**: published and
  obtained stand side by side without a verdict. **drawn**: the paper prints no numbers; ours are drawn. **cannot**:
  data or definition cannot be had. **not run**: not at this size. **differs**, **missing**: what they say.
- *figures* are those that were compared. *agree* lie within their tolerance. *explained* were judged and are not the
  paper's, for a reason that the command prints beside each. *information* have no tolerance, and count as no agreement.
"""


def page(ledgers: Mapping[str, Sequence[Row]], found: Sequence[Done]) -> str:
    """The page as Markdown."""
    quick = " --quick" if found and found[0].part.quick else ""
    head = HEAD.format(quick=quick, seconds=f"{sum(each.seconds for each in found):,.0f}")
    parts = [_paper(name, rows, found) for name, rows in ledgers.items()]
    return "\n".join([head, *parts, "## In all\n\n" + totals(ledgers).replace("\n", "\n\n").rstrip() + "\n"])


def _paper(name: str, rows: Sequence[Row], found: Sequence[Done]) -> str:
    said = [f"## {METHODS[name].title} (`evenhand reproduce {name}`)\n", _table(map(cells, rows))]
    cannot = [f"- {row.entry.what}: {reason}." for row in rows for reason in _reasons(row)]
    differs = [_differing(line) for each in found if each.part.paper == name for line in each.lines if _differs(line)]
    if cannot:
        said += ["Why not:\n", *cannot, ""]
    if differs:
        said += ["Beyond their tolerance:\n", *differs, ""]
    return "\n".join(said)


def _reasons(row: Row) -> tuple[str, ...]:
    """Why a table or figure cannot be had, or was not run."""
    return tuple(sorted(row.tally.why)) if row.status == (Status.NOT_RUN,) else row.entry.reasons


def cells(row: Row) -> tuple[str, ...]:
    """The cells of a row of the page, or of the terminal."""
    tally = row.tally
    counts = (tally.figures, tally.agree, tally.explained, tally.information, tally.not_run)
    status = ", ".join(each.value for each in row.status)
    return (
        row.entry.what,
        row.entry.shows,
        ", ".join(row.entry.datasets),
        status,
        *(f"{count:,}" if count else "" for count in counts),
    )


def _differs(line: Line) -> bool:
    return line.verdict is Verdict.DIFFERS


def _differing(line: Line) -> str:
    cell, figure = line.figure.cell, line.figure
    at = "".join(f", {each}" for each in cell.at)
    where = f"{line.dataset}, {figure.source}: {cell.quantity} of {cell.group}{at}"
    return f"- {where}: {figure.value} printed, {line.obtained} obtained."


def _table(rows: Iterator[tuple[str, ...]]) -> str:
    lines = [" | ".join(("", *(cell.replace("|", "\\|") for cell in row), "")).strip() for row in rows]
    return "\n".join([" | ".join(("", *COLUMNS, "")).strip(), "| --- " * len(COLUMNS) + "|", *lines, ""])


def totals(ledgers: Mapping[str, Sequence[Row]]) -> str:
    """Two lines: tables and figures by status, and printed figures by how they came out."""
    rows = [row for several in ledgers.values() for row in several]
    by_status = Counter(row.status[0] for row in rows)
    said = ", ".join(f"{by_status[status]} {status.value}" for status in Status if by_status[status])
    counted = ("figures", "agree", "explained", "information", "not_run", "differ")
    sums = {name: sum(getattr(row.tally, name) for row in rows) for name in counted}
    judged = sums["agree"] + sums["explained"] + sums["differ"]
    return (
        f"{len(rows)} tables and figures: {said}.\n"
        f"{sums['figures']:,} figures: {judged:,} judged ({sums['agree']:,} agree, {sums['explained']:,} explained, "
        f"{sums['differ']:,} differ), {sums['information']:,} for information, {sums['not_run']:,} not run.\n"
    )
