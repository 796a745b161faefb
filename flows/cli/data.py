"""Commands ``evenhand data ...``: lists, fetches, adds, sorts and describes editions of HMDA, and draws a twin."""

import json
import sys
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from flows.cli.options import year_of
from flows.cli.terminal import show_progress, visible
from schemas.bounds import LARGEST_SEED

if TYPE_CHECKING:
    from schemas.vintages import Vintage
    from tasks.lake.store import Lake

app = typer.Typer(
    help="Editions of HMDA: list, fetch, take in, describe and imitate them.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

LakeOption = Annotated[
    str,
    typer.Option("--lake", envvar="EVENHAND_LAKE", help="Directory of the lake, made if it is not there, or its URI."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
YearOption = Annotated[
    int, typer.Option(parser=year_of, metavar="YEAR", help="Year that the applications were acted on.")
]
KindOption = Annotated[
    str,
    typer.Option(
        help="snapshot, one-year, three-year, historic, dynamic, data-browser, modified-lar; or twin, to add."
    ),
]
GeoOption = Annotated[
    str, typer.Option(help="nationwide, a state such as TX, county-48453, msa-12420, or the LEI of a lender.")
]
FrozenOption = Annotated[
    datetime | None,
    typer.Option(formats=["%Y-%m-%d"], metavar="YYYY-MM-DD", help="Day on which the publisher froze the data."),
]
KeepOption = Annotated[bool, typer.Option("--keep-raw", help="Keep the delivered file next to the converted rows.")]


@app.command("list", epilog="Example: evenhand data list --year 2022")
def list_(
    lake: LakeOption = "data/lake",
    year: Annotated[int | None, typer.Option(parser=year_of, metavar="YEAR", help="Only this year.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Print the vintages that the lake holds, and what is published, with its size."""
    from flows.cli.vintage_lists import held, offered

    lines = {"held": held(lake, year), "published": offered(year)}
    if as_json:
        _print_json(lines)
        return
    for title, rows in lines.items():
        _print_rows(title, rows)


@app.command(epilog="Example: evenhand data fetch --year 2022 --kind data-browser --geo DC --dry-run")
def fetch(
    year: YearOption,
    kind: KindOption = "snapshot",
    geo: GeoOption = "nationwide",
    lake: LakeOption = "data/lake",
    frozen: FrozenOption = None,
    base_url: Annotated[str | None, typer.Option(help="Fetch from here instead of the publisher's host.")] = None,
    sha256: Annotated[str | None, typer.Option(help="Refuse a file with another digest.")] = None,
    again: Annotated[bool, typer.Option("--again", help="Fetch and convert an edition that is held, too.")] = False,
    keep_raw: KeepOption = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be fetched and how large it is.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Download an edition from its official address, and make a vintage of it. A stopped download is gone on with."""
    from flows.cli.vintage_lists import plan_line
    from flows.partitions import editions
    from schemas.vintages import dataset_of
    from tasks.lake.store import Lake

    opened = Lake(lake)
    edition = editions.Edition(year, dataset_of(kind), geo, _day(frozen), base_url, sha256)
    plan = plan_line(editions.planned(opened, edition))
    if not as_json:
        show_progress()
        _print_facts("to be fetched; sizes are estimates", plan)
    if not dry_run:
        _print_vintage(editions.fetch(opened, edition, again=again, keep_raw=keep_raw), as_json)
    elif as_json:
        _print_json(plan)


@app.command(epilog="Example: evenhand data add lar-2022.csv lar-2023.csv --kind modified-lar --geo LEI")
def add(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE", help="Files of HMDA as they were delivered: plain, .gz or .zip.")
    ],
    year: Annotated[
        int | None,
        typer.Option(
            parser=year_of,
            metavar="YEAR",
            help="Year that the applications were acted on; what the file says if left out.",
        ),
    ] = None,
    frozen: FrozenOption = None,
    kind: Annotated[
        str | None,
        typer.Option(
            help="As in fetch, submission or twin; by the layout if left out: a lender's own files have kinds of "
            "their own, others are a snapshot."
        ),
    ] = None,
    geo: Annotated[
        str | None,
        typer.Option(
            help="As in fetch; if left out, the lender of its own file, or nationwide where the rows suffice."
        ),
    ] = None,
    lake: LakeOption = "data/lake",
    source: Annotated[str, typer.Option(help="Where it came from; its name if left out.")] = "",
    replace: Annotated[bool, typer.Option("--replace", help="Convert a file that is held once more.")] = False,
    keep_raw: KeepOption = False,
    panel: Annotated[
        bool,
        typer.Option("--panel", help="The files are panels or transmittal files: names, assets and agency of lenders."),
    ] = False,
    rename: Annotated[
        list[str] | None,
        typer.Option(metavar="OLD=NEW", help="Read a column of the file by its name in HMDA. May be repeated."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Make vintages of files that you have. A file that the lake holds already, under any name, is not added again.

    Without --frozen the freeze date is the one that the publisher gave for such an edition, else the date of the file.
    Unread cells are counted by column; above 5 % of one, the command ends with 4.
    """
    from flows.cli.vintage_lists import unread_lines
    from flows.supervision.presence import at_work, command_id
    from schemas.errors import DataQualityError
    from tasks.ingest.vintages import offers, store
    from tasks.lake.store import Lake

    if not as_json:
        show_progress()
    if panel:
        _add_panels(Lake(lake), files, year, as_json)
        return
    opened, added_vintages, emptied = Lake(lake), [], list[str]()
    names = _names(rename or [])
    with at_work(opened, command_id()):
        for file in files:
            outline = cache(partial(store.outline_of, file))  # reads the file, and only where something is left to ask
            of = year or store.year_of(file.name, outline())
            dataset = kind or offers.dataset_by_layout(outline().layout)
            if geo or not (existing := store.delivered(opened, file)):
                place = geo or offers.geography_by_rows(file.name, dataset, of, outline())
            else:  # it is not added again
                place = existing.geography
            day = _day(frozen) or offers.frozen_on(dataset, of, file)
            key: dict[str, Any] = {"year": of, "dataset": dataset, "geography": place, "frozen": day, "source": source}
            vintage = store.add(opened, file, **key, replace=replace, keep_raw=keep_raw, rename=names)
            added_vintages.append(vintage)
            if not as_json or len(files) == 1:
                _print_vintage(vintage, as_json)
            if report := store.report_of(opened, vintage):
                for line in unread_lines(report):
                    sys.stderr.write(visible(f"{file.name}: {line}\n"))
                columns = ", ".join(str(finding.column) for finding in report.findings if finding.emptied)
                emptied += [f"{file.name}: {columns}"] if columns else []
    if as_json and len(files) > 1:
        _print_vintages(added_vintages)
    if emptied:
        raise DataQualityError(
            f"more than 5 % of the cells were not read in {'; '.join(emptied)}: the vintage is held with these cells "
            "empty or their rows refused, and an audit that names such a column lacks the rows; correct or fetch the "
            "file and add it again"
        )


def _add_panels(lake: "Lake", files: Sequence[Path], year: int | None, as_json: bool) -> None:
    """Take in names of lenders, and say which lenders of the year's vintages they leave without one."""
    from tasks.ingest.vintages import panels
    from tasks.ingest.vintages.store import lenders_in

    added = [vars(panels.add(lake, file, year)) for file in files]
    for line in added:
        lenders = lenders_in(lake, line["year"])
        line["without_a_name"] = len(lenders - set(panels.lenders_of(lake, line["year"]))) if lenders else None
    if as_json:
        _print_json(added)
    else:
        for line in added:
            _print_facts("held", line)


@app.command(epilog="Example: evenhand data describe hmda_2017_nationwide_all-records_labels.zip")
def describe(
    file: Annotated[Path, typer.Argument(help="A file of HMDA: plain, .gz or .zip.")], as_json: JsonOption = False
) -> None:
    """Print the layout of a file, its rows by year, what could not be read, and how it departs from its layout.

    Every row is read and converted, into a temporary directory.
    """
    from flows.cli.vintage_lists import described, grouped_lines, report_lines
    from tasks.ingest.vintages.store import examine

    intake = examine(file)
    if as_json:
        _print_json({**described(intake), "findings": report_lines(intake)})
        return
    _print_facts("described", {"file": str(file), **described(intake)})
    _print_rows("departures from the layout", grouped_lines(intake))


@app.command(epilog="Example: evenhand data twin twins --year 2022 --rows 10000 --discrimination direct")
def twin(
    folder: Annotated[Path, typer.Argument(help="Directory for the file and its truth.")],
    year: YearOption,
    rows: Annotated[int, typer.Option(min=1, help="Applications to draw.")] = 10_000,
    discrimination: Annotated[Literal["none", "direct", "mediated"], typer.Option(help="What is planted.")] = "none",
    strength: Annotated[float, typer.Option(min=0.0, help="Of what is planted: logits, or times the shifts.")] = 1.0,
    seed: Annotated[int, typer.Option(min=0, max=LARGEST_SEED, help="The same seed gives the same bytes.")] = 482,
    as_json: JsonOption = False,
) -> None:
    """Write a synthetic year of HMDA in its published layout, and the truth about it. No person is in it.

    The layout is public_lar from 2018 and historic_codes before.
    """
    from tasks.ingest.synthetic.algorithm.twin import TwinSettings
    from tasks.ingest.synthetic.twin_files import write

    settings = TwinSettings(rows=rows, year=year, discrimination=discrimination, strength=strength)
    written = write(folder, settings, seed)
    summary = {"file": str(written.rows), "truth": str(written.truth), "rows": written.count}
    _print_json(summary) if as_json else _print_facts("written", summary)


@app.command(epilog="Example: evenhand data repack --year 2022")
def repack(year: YearOption, lake: LakeOption = "data/lake", as_json: JsonOption = False) -> None:
    """Rewrite the vintages of a year that lie in one file into files by state that are sorted by lender.

    An audit reads the same rows from both. A vintage that is sorted already is left as it is.
    """
    from flows.supervision.presence import at_work, command_id
    from schemas.errors import SpecError
    from tasks.ingest.vintages.store import repack as repacked
    from tasks.ingest.vintages.store import vintages
    from tasks.lake.storage import storage_at
    from tasks.lake.store import Lake

    vintages_of_year = vintages(opened := Lake(lake, write=False), year) if storage_at(lake).exists("vintages") else []
    if not vintages_of_year:
        raise SpecError(f"the lake {lake} holds no vintage of {year}; `evenhand data list` prints its years")
    repacked_vintages = []
    with at_work(opened, command_id()):
        for vintage in vintages_of_year:
            now = repacked(opened, vintage)
            repacked_vintages += [now] if now else []
            if now and not as_json:
                _print_vintage(now, as_json)
            elif not as_json:
                sys.stdout.write(f"{vintage} is sorted already: nothing to do\n")
    if as_json:
        _print_vintages(repacked_vintages)


def _names(pairs: Sequence[str]) -> dict[str, str]:
    """Names of `--rename`: that of the file, and that of HMDA."""
    from schemas.errors import SpecError

    names = {}
    for pair in pairs:
        before, mark, now = (part.strip() for part in pair.partition("="))
        if not (before and mark and now):
            raise SpecError(f"--rename {pair}: expected OLD=NEW, such as applicant_race=derived_race")
        names[before] = now
    return names


def _day(moment: datetime | None) -> date | None:
    return None if moment is None else moment.date()


def _print_vintage(vintage: "Vintage", as_json: bool) -> None:
    from flows.cli.vintage_lists import vintage_line
    from tasks.ingest.vintages.offers import incomplete

    _print_json(vintage_line(vintage)) if as_json else _print_facts("held", vintage_line(vintage))
    if remark := incomplete(vintage):
        sys.stderr.write(f"warning: {remark}\n")


def _print_vintages(vintages: "Sequence[Vintage]") -> None:
    from flows.cli.vintage_lists import vintage_line

    _print_json([vintage_line(vintage) for vintage in vintages])


def _print_json(value: object) -> None:
    sys.stdout.write(json.dumps(value, indent=1) + "\n")


def _print_rows(title: str, rows: Sequence[Mapping[str, Any]]) -> None:
    from flows.cli.vintage_lists import readable

    _print_table(title, [readable(row) for row in rows])


def _print_facts(title: str, facts: Mapping[str, Any]) -> None:
    """One thing, a line for each of its facts that is known."""
    from flows.cli.vintage_lists import readable

    shown_facts = {name: value for name, value in readable(facts).items() if value is not None}
    _print_table(title, [{"what": name, "is": value} for name, value in shown_facts.items()])


def _print_table(title: str, rows: list[dict[str, Any]]) -> None:
    from flows.cli.terminal import console, print_rows

    if rows:
        print_rows(console, title, rows)
    else:
        console.print(f"{title}: nothing", markup=False)
