"""The years of a back-fill: their list, their states, attempts, forecasts and runners.

The flow that walks over them is ``flows.backfill``.
"""
