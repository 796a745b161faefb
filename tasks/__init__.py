"""The pipeline of an audit, a folder a step; ``plan`` puts the steps in order.

A step has its tables in ``stage`` and its arithmetic in ``algorithm``. Prefect, the command line and processes are in
``flows``.
"""
