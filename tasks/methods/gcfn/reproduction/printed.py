"""Names the rows of the GCFN paper's tables: generators of mediators, and models."""

PAPER, DEFAULT, QUANTILES, MEAN = "GAN, paper's settings", "GAN, default settings", "quantile map", "conditional mean"
"""Generators; the last one is what a regression would find with endless data."""

SCORE, FAIR = "COMPAS score", "GCFN"
WHOLE_FILE = ", whole file"
"""Follows the name of the score where it is of all rows, and not of held-out rows."""

TITLES = {
    "cfua": "CFUA",
    "cfan": "CFAN",
    "hscic": "HSCIC",
    "mcevae": "mCEVAE",
    "dcevae": "DCEVAE",
    "advae": "ADVAE",
}
"""The systems that the paper compares itself with, by their names in the registry of baselines."""
