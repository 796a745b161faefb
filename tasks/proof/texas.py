"""The applications of Texas in 2022, on which more than one method is timed."""

from pathlib import Path

TEXAS_SPEC = Path(__file__).parents[2] / "data" / "audits" / "hmda-tx-2022.yaml"
TEXAS_FILE = Path("data") / "hmda_2022_tx_50k" / "hmda_tx_2022_sample.csv.gz"
