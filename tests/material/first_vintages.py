"""Vintages of version 1, as releases before the sorted rows wrote them: one file of rows in no order."""

import json
import random
import shutil

import pyarrow.parquet as pq

from schemas.artifact import Artifact, Partition
from schemas.vintages import Vintage
from tasks.ingest.vintages.store import file_of
from tasks.lake.store import Lake, sha256_of


def as_first_version(lake: Lake, vintage: Vintage) -> Vintage:
    """Turn a vintage of a lake in a directory into one of version 1, in its place."""
    rows = pq.read_table(sorted(file_of(lake, vintage).rglob("*.parquet")), partitioning=None)
    folder = lake.root / vintage.folder
    order = list(range(rows.num_rows))
    random.Random(7).shuffle(order)
    pq.write_table(rows.take(order), folder / "applications.parquet")
    shutil.rmtree(folder / "applications")
    (folder / "lenders.parquet").unlink()
    said = vintage.model_copy(update={"rows_sha256": sha256_of(folder / "applications.parquet"), "version": 1})
    (folder / "vintage.json").write_text(json.dumps(said.model_dump(mode="json", exclude={"version"})))
    (folder / "partition.json").unlink()
    digests = {f"{vintage.folder}/{path.name}": sha256_of(path) for path in folder.iterdir()}
    tables = tuple(
        Artifact(table=name, path=path, sha256=digests.pop(path), rows=count)
        for name, count in (("applications", vintage.rows), ("refusals", vintage.refused))
        for path in (f"{vintage.folder}/{name}.parquet",)
    )
    record = Partition(stage="vintages", key=vintage.sha256[:12], tables=tables, files=digests)
    (folder / "partition.json").write_text(record.model_dump_json())
    return said
