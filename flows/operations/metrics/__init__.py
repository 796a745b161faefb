"""Metrics of a worker for Prometheus, read from the lake: what its runs cost and how they ended.

No label holds a group, a lender or a value of a row, and counts of rows are told to two digits.
"""
