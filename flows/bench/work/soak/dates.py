"""The dates of a soak: a deployment for each of some specs in turn, whose data are drawn anew before its next date."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from flows.bench.work.soak.services import POOL
from flows.partitions.year_audit import audit_year
from flows.runs.index import Run, runs_of
from schemas.audit.spec import AuditSpec
from tasks.ingest.synthetic.twin import write
from tasks.ingest.synthetic.twin.algorithm.settings import TwinSettings
from tasks.lake.store import Lake
from tasks.pipeline.specs import read_spec

if TYPE_CHECKING:
    from prefect.client.orchestration import SyncPrefectClient
    from prefect.client.schemas.objects import FlowRun

EVERY = timedelta(minutes=2)
SLOTS = 10
"""Specs that take turns: the file of one is drawn anew while the others have theirs."""
YEAR, ROWS = 2022, 400
FLOW = "audit"
SPEC = """\
name: soak-SLOT
year: 2022
source: {kind: hmda, path: 'FOLDER/soak-SLOT-{year}.csv'}
decision: {column: action_taken, favourable: [1, 2, 8], unfavourable: [3, 7]}
protected:
  - name: race
    columns: [derived_race]
    groups: {White: [White], Black: [Black or African American]}
    reference: White
    unlisted: not available
columns:
  income_usd: {type: continuous, constraint: up}
  loan_amount_usd: {type: continuous, constraint: down}
  loan_purpose: {type: nominal, constraint: immutable}
causal_graph: {edges: [[race, income_usd], [income_usd, loan_amount_usd]]}
model: {kind: logistic_regression, folds: 3}
methods:
  fgce: null
  cst: {ks: [5], k: 5, null_permutations: 1, null_complainants: 5, sensitivity: false}
thresholds:
  - {measure: approval_rate_ratio, decision_maker: lender, minimum: 0.9}
disclosure: {profile: public}
bootstrap: {draws: 100}
"""


@dataclass(frozen=True)
class Dates:
    """So many dates, two minutes apart, and where their files are."""

    place: Path
    count: int
    first: datetime

    def at(self, number: int) -> datetime:
        """When a date is due."""
        return self.first + number * EVERY

    @property
    def every(self) -> list[datetime]:
        """All of them."""
        return [self.at(number) for number in range(self.count)]

    def draw(self, number: int) -> None:
        """Write the rows of a date into the file of its slot, in one step: a run may just begin."""
        slot = number % SLOTS
        drawn = write(self.place / "drawn", TwinSettings(rows=ROWS, year=YEAR, discrimination="direct"), seed=number)
        drawn.rows.replace(self.place / f"soak-{slot}-{YEAR}.csv")

    def spec(self, number: int) -> Path:
        """The file of the spec of a date's slot; written if it is not there."""
        slot = number % SLOTS
        file = self.place / f"soak-{slot}.yaml"
        if not file.exists():
            file.write_text(SPEC.replace("SLOT", str(slot)).replace("FOLDER", str(self.place)))
        return file

    def register(self, client: "SyncPrefectClient", lake: Path) -> None:
        """A deployment a slot on the server, each with its dates alone."""
        from prefect.client.schemas.actions import DeploymentScheduleCreate, WorkPoolCreate
        from prefect.client.schemas.schedules import RRuleSchedule

        client.create_work_pool(WorkPoolCreate(name=POOL, type="process"))
        flow = client.create_flow_from_name(FLOW)
        for slot in range(min(SLOTS, self.count)):
            self.draw(slot)
            turns = len(range(slot, self.count, SLOTS))
            begin = f"DTSTART:{self.at(slot):%Y%m%dT%H%M%S}"
            step = int(EVERY.total_seconds() // 60) * SLOTS
            rule = f"{begin}\nRRULE:FREQ=MINUTELY;INTERVAL={step};COUNT={turns}"
            client.create_deployment(
                flow,
                f"soak-{slot}",
                schedules=[DeploymentScheduleCreate(schedule=RRuleSchedule(rrule=rule, timezone="UTC"))],
                parameters={"spec": str(self.spec(slot)), "lake": str(lake)},
                entrypoint="flows.audit.audit",
                work_pool_name=POOL,
                pull_steps=[],
                concurrency_limit=1,
            )

    def number_of(self, run: "FlowRun") -> int | None:
        """Which date a run is of; None of one that no schedule made."""
        if run.expected_start_time is None or not run.auto_scheduled:
            return None
        return round((run.expected_start_time.timestamp() - self.first.timestamp()) / EVERY.total_seconds())

    def left_alone(self, number: int, lake: Lake) -> Run:
        """The run of a date that nothing disturbs, on another lake; the date's rows are drawn again."""
        self.draw(number)
        read: AuditSpec = read_spec(self.spec(number).read_text(), self.spec(number).name).spec
        record = audit_year(read, YEAR, lake)
        return next(run for run in runs_of(lake) if run.run == record.run)


def digests(run: Run) -> dict[str, str]:
    """Stage and table -> sha256 of every table of a run."""
    return {f"{part.stage} {table.table}": table.sha256 for part in run.partitions for table in part.tables}
