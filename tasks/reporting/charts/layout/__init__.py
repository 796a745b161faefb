"""Layout of drawings: axes, shapes, rows and panels in the units of a sheet.

What is drawn (numbers, marks, kinds of chart) is a floor above: ``tasks.reporting.charts``.
"""
