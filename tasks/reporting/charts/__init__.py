"""Drawings: charts of five kinds as static SVG, each with a description and a table of the same numbers.

Forest, steps, trend, matrix and curves take plain numbers and text and give HTML. They use no charting library and no
script, and read no table and no file of a run. The caller decides what is drawn. Pages: ``tasks.reporting.pages``.
"""
