"""The methods, a folder each, whole: declaration, measures, arithmetic, own stages, report, bench, reproduction.

Methods do not import each other. What two of them share belongs to the step below it or to ``tasks.numerics``. A new
method is a folder here and its name in ``tasks.pipeline.registry``.
"""
