"""Timing of adjusted disparities: ``bench`` has the runs and targets, ``work`` what is timed in a process of its own.

What benches share is in ``tasks.proof``.
"""
