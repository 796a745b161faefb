"""Charts as Vega-Lite specifications, and the rows behind them.

Charts of one method are in its folder, under ``report``.
"""
