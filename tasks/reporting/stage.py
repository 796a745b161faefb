"""Report: the published tables of a run as pages that a reviewer can read offline, as JSON and as a workbook.

Chapters make sections and sentences of them, ``pages`` makes files that need neither network nor script, ``exports``
the files for machines and spreadsheets.
"""

from collections.abc import Sequence

import pyarrow as pa

from schemas.tables import verdicts
from tasks.pipeline.registry import tables_shown
from tasks.pipeline.stage import Produced, stage
from tasks.reporting.material import Material, ReportSettings

__all__ = ["ReportSettings", "report"]

READ = (
    *(
        verdicts.PUBLISHED_MEASURES,
        *verdicts.PUBLISHED_CURVES,
        verdicts.PUBLISHED_VERDICTS,
        verdicts.PUBLISHED_AGREEMENT,
        verdicts.PUBLISHED_AGREEMENT_PAIRS,
        verdicts.PUBLISHED_WATERFALL,
        verdicts.PUBLISHED_MISSINGNESS,
    ),
    *(verdicts.PUBLISHED_MERGED, *verdicts.PUBLISHED_FACTS, *(verdicts.published(table) for table in tables_shown())),
)


@stage(
    reads=READ,
    writes=(verdicts.REPORT_INDEX,),
    resources=(
        "reporting/templates/*",
        *("reporting/*.yaml", "reporting/*/*.yaml", "methods/*/report.yaml"),
    ),
    balanced=False,
)
def report(*tables: pa.Table, settings: ReportSettings) -> Produced:
    """The files of a report, and their list; those of the short one where the run is about one of many partitions."""
    from tasks.reporting.pages import files, short  # loads what makes pages, and a plan makes none

    material = material_of(tables, settings)
    report_files = (short if material.part else files)(material)
    index = verdicts.REPORT_INDEX.build(
        file=list(report_files), bytes=[len(content) for content in report_files.values()]
    )
    return Produced({verdicts.REPORT_INDEX.name: index}, files=report_files)


def material_of(tables: Sequence[pa.Table], settings: ReportSettings) -> Material:
    """What a report is made of, from the tables that its stage reads, in their order."""
    return Material.of(settings, {declared.name: table for declared, table in zip(READ, tables, strict=True)})
