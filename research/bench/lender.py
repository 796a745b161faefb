"""Times the audit of one lender by the shipped spec of HMDA, and the screening of all lenders of a year.

The lender is drawn: some 1,320 usable rows in the layout of 2022, with all groups of the spec but those that no row
belongs to. Stages are plain function calls in a process of their own, without GCFN, after a yardstick.

The year is drawn, too: lenders by Zipf's law, each in areas of its own, and nothing is planted. Screening is that of
`evenhand peers --all`: places of every lender with its peers, and its rate spreads.
"""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import yaml

from flows.partitions.part_spec import shortened
from research.benchmark import Bench, Room, Row, answer, apart, at_most, peak_mb, row, timed, yardstick
from research.figures import shipped
from tasks.in_memory import call_plainly
from tasks.ingest.synthetic.twin_files import write_nation
from tasks.ingest.vintages.peers import screened
from tasks.lake.storage import connected
from tasks.pipeline.registry import read_spec
from tasks.plan import plan

ROWS, YEAR, SEED = 1_790, 2022, 23
DRAWN = 10_000
"""Rows of a year of three lenders, the first of which has nine tenths."""
MOST_STAGES_S, MOST_TOLD_S, MOST_MEASURES = 20.0, 3.0, 3_000
TOLD = ("measure", "publish")
_RARE = {"derived_race": {"Joint": 29, "2 or more minority races": 61}, "derived_ethnicity": {"Joint": 31}}
"""Groups that the drawn year lacks: one row of so many is of them."""
_DECIDED = pa.array(["1", "2", "3"])
LENDER = "a lender, drawn"
NATION, LENDERS, AREAS, TRACTS = 12_200_000, 4_900, 400, 200
"""Rows and lenders of a national year; areas, and tracts of an area."""
MOST_SCREEN_S, MOST_SCREEN_MB = 60.0, 2_000.0


def _lines(room: Room) -> Iterator[Row]:
    yield from lender_rows(room.place, room.rows or ROWS)
    yield from nation_rows(room)


def lender_rows(place: Path, rows: int) -> Iterator[Row]:
    """Stages and measures of a lender with so many rows, against their targets; totals of its short report, too."""
    record = apart("research.bench.lender", "stages", place, rows)
    usable, steps = record["usable"], record["steps"]
    yield row(LENDER, None, "yardstick", cpu_s=record["yardstick"]["cpu_s"], seconds=record["yardstick"]["seconds"])
    stage_seconds = sum(steps.values())
    ratio = stage_seconds / record["yardstick"]["cpu_s"]
    words = {"ratio": ratio, "peak_mb": record["peak_mb"], "found": "the ratio is in yardsticks"}
    yield row(
        LENDER, usable, "all stages", cpu_s=stage_seconds, **words, **at_most(stage_seconds, MOST_STAGES_S, " CPU s")
    )
    for name, cpu_s in steps.items():
        yield row(LENDER, usable, f"  {name}", cpu_s=cpu_s)
    output_seconds = sum(steps[name] for name in TOLD)
    yield row(
        LENDER, usable, "measure and publish", cpu_s=output_seconds, **at_most(output_seconds, MOST_TOLD_S, " CPU s")
    )
    measures, curves = record["measures"], record["curves"]
    text = f"{measures:,} measures, {curves:,} curves with {record['points']:,} points"
    yield row(LENDER, usable, "measures", found=text, **at_most(measures, MOST_MEASURES))
    record = apart("research.bench.lender", "stages", place, rows, "short")
    stage_seconds, measures = sum(record["steps"].values()), record["measures"]
    words = {"ratio": stage_seconds / record["yardstick"]["cpu_s"], "peak_mb": record["peak_mb"]}
    words |= {"found": f"{measures:,} measures", **at_most(stage_seconds, MOST_STAGES_S, " CPU s")}
    yield row(LENDER, usable, "all stages, short report of a back-fill", cpu_s=stage_seconds, **words)


def nation_rows(room: Room) -> Iterator[Row]:
    """Places and prices of all lenders of a drawn national year, against time and memory."""
    year = room.place / "nation.parquet"
    draw_nation(year, NATION if room.rows is None else room.rows)
    screening = apart("research.bench.lender", "screen", year)
    times = {"cpu_s": screening["cpu_s"], "seconds": screening["seconds"]}
    words = f"{screening['lenders']:,} lenders with 500 applications or more, {screening['priced']:,} with prices"
    name = "a year of lenders, drawn"
    target = at_most(screening["seconds"], MOST_SCREEN_S, " s")
    yield row(name, screening["rows"], "places and prices of all", **times, found=words, **target)
    memory = at_most(screening["peak_mb"], MOST_SCREEN_MB, " MB")
    yield row(name, screening["rows"], "its memory", peak_mb=screening["peak_mb"], **memory)


def stages(place: str, rows: str, report: str = "full") -> dict[str, Any]:
    """Draws the lender, and runs every stage: CPU seconds by step, and the size of what is measured."""
    folder = Path(place)
    groups = draw(folder / "lender.txt", int(rows))
    content = yaml.safe_load(shipped("audits/hmda.yaml").read_text(encoding="utf-8"))
    content["source"] |= {"path": str(folder / "lender.txt")}
    del content["source"]["vintage"]
    content |= {"year": YEAR, "methods": {**content["methods"], "gcfn": None}}
    for attribute in content["protected"]:
        present = groups[attribute["columns"][0]]
        attribute["groups"] = {name: codes for name, codes in attribute["groups"].items() if present & set(codes)}
    spec = read_spec(yaml.safe_dump(content, sort_keys=False), "hmda.yaml").spec
    spec = spec if report == "full" else shortened(spec)
    import flows.concurrency.preload  # noqa: F401 what workers are forked from: libraries are no cost of a stage

    timings, cpu, began = yardstick(), dict[str, float](), 0.0

    def keep(step: Any, produced: Any, _: int) -> Any:
        nonlocal began
        cpu[step.name] = time.process_time() - began
        began = time.process_time()
        return produced.unheld()

    began = time.process_time()
    tables = call_plainly(plan(spec).steps, keep)
    curves = [table for name in ("fgce_curves", "method_curves") for table in tables[name]]
    points = sum(pc.sum(pc.list_value_length(table["value"])).as_py() or 0 for table in curves)
    [measures], [features] = tables["measures"], tables["features"]
    return {
        "usable": features.num_rows,
        "steps": cpu,
        "yardstick": timings,
        "peak_mb": peak_mb(),
        "measures": measures.num_rows,
        "curves": sum(table.num_rows for table in curves),
        "points": points,
    }


def draw(file: Path, rows: int) -> dict[str, set[str]]:
    """Writes so many rows of one lender; gives the groups that they have, by column."""
    year = write_nation(file.with_name("year.txt"), max(DRAWN, 2 * rows), YEAR, SEED)
    texts = pacsv.ConvertOptions(column_types=dict.fromkeys(_columns(year), pa.string()), strings_can_be_null=False)
    table = pacsv.read_csv(year, parse_options=pacsv.ParseOptions(delimiter="|"), convert_options=texts)
    largest = max(pc.value_counts(table["lei"]).to_pylist(), key=lambda lender: lender["counts"])
    table = table.filter(pc.equal(table["lei"], largest["values"])).slice(0, rows)
    for column, rare in _RARE.items():
        values = table[column].to_pylist()
        for group, every in rare.items():
            values[every // 2 :: every] = [group] * len(values[every // 2 :: every])
        table = table.set_column(table.column_names.index(column), column, pa.array(values))
    options = pacsv.WriteOptions(delimiter="|", quoting_style="none", quoting_header="none")
    pacsv.write_csv(table, file, options)
    decided = table.filter(pc.is_in(table["action_taken"], _DECIDED))
    columns = ("derived_race", "derived_ethnicity", "derived_sex")
    return {name: set(decided[name].unique().to_pylist()) for name in columns}


def draw_nation(file: Path, rows: int) -> None:
    """Writes so many rows with the columns that screening reads."""
    u = [f"(hash(i, {place}) % 1000003) / 1000003.0" for place in range(10)]
    races = "['White', 'White', 'White', 'Black or African American', 'Asian', 'Race Not Available']"
    origins = "['Not Hispanic or Latino', 'Not Hispanic or Latino', 'Hispanic or Latino', 'Ethnicity Not Available']"
    query = f"""
        WITH drawn AS (
            SELECT i, floor(pow({LENDERS + 1}, {u[0]}))::INT AS lender, floor({u[2]} * {TRACTS})::INT AS tract,
                ['1', '1', '1', '2', '3', '3', '4', '6'][1 + floor(8 * {u[3]})::INT] AS action_taken
            FROM range({rows}) AS t(i)
        ), placed AS (
            -- the smaller a lender, the fewer are its areas
            SELECT *, hash(lender, floor({u[1]} * greatest(1, {AREAS} / lender))::INT) % {AREAS} AS area FROM drawn
        )
        SELECT 'LEI' || lpad(lender::VARCHAR, 17, '0') AS lender_id, 10000 + area AS msa_md, 'TX' AS state_code,
            ['1', '1', '31', '4'][1 + floor(4 * {u[4]})::INT] AS loan_purpose,
            ['1', '1', '1', '2'][1 + floor(4 * {u[5]})::INT] AS lien_status, '2' AS open_end_line_of_credit,
            ['1', '1', '2', '3'][1 + floor(4 * {u[6]})::INT] AS loan_type, action_taken,
            ((tract * 37 + area) % 100)::DOUBLE AS tract_minority_pct,
            CASE WHEN action_taken = '1' THEN 3 * {u[8]} - 1 END AS rate_spread,
            {races}[1 + floor(6 * {u[7]})::INT] AS derived_race,
            {origins}[1 + floor(4 * {u[9]})::INT] AS derived_ethnicity
        FROM placed
    """  # noqa: S608 numbers of ours
    with connected() as connection:
        connection.execute(f"COPY ({query}) TO '{file}' (FORMAT parquet, COMPRESSION zstd)")


def screen(file: str) -> dict[str, Any]:
    """Screens every lender of the year: seconds, memory, and how many lenders there are."""
    with connected() as connection, timed() as timings:
        lenders = screened(connection, f"read_parquet('{file}')")
    priced = len(lenders) - lenders["black_spread"].null_count
    rows = pq.read_metadata(file).num_rows
    return {**timings, "peak_mb": peak_mb(), "lenders": len(lenders), "priced": priced, "rows": rows}


def _columns(file: Path) -> list[str]:
    with file.open(encoding="utf-8") as opened:
        return opened.readline().rstrip("\n").split("|")


BENCH = Bench("lender", _lines, fewest=600, why="a lender with fewer has groups too small to compare", memory_mb=1_500)

if __name__ == "__main__":
    answer(stages, screen)
