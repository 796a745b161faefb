"""Runs a bench of the whole product: PYTHONPATH=.:tests python -m benches NAME [--rows N] [--reps N] [--hours H] [--json]."""  # noqa: E501

import argparse
import json
from importlib import import_module

from flows.cli.terminal import console, print_rows

NAMES = ("graphs", "operations", "published", "rule_mutation", "serve", "verdicts", "years")


def main() -> None:
    """Print the rows of the bench beside their targets."""
    parser = argparse.ArgumentParser(prog="python -m benches", description="Simulations, a soak, and times of pages.")
    parser.add_argument("name", choices=NAMES)
    parser.add_argument("--rows", type=int, help="at most so many rows, for a quick look")
    parser.add_argument("--reps", type=int, help="repetitions of each scenario (200 or 1,000); operations: dates")
    parser.add_argument("--hours", type=float, help="operations: how long, with a date every two minutes")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = parser.parse_args()
    bench = import_module(f"benches.{options.name}").BENCH
    rows = bench.run(rows=options.rows, reps=options.reps, options={"--hours": options.hours})
    if options.json:
        console.print_json(json.dumps(rows))
    else:
        print_rows(console, f"bench {options.name}", rows)


if __name__ == "__main__":
    main()
