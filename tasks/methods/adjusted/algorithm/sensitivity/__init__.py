"""What an unseen column could do to an adjusted difference: robustness values, benchmarks and E-values.

Scope: numbers of fits that are made already. The fits: ``tasks.methods.adjusted.algorithm.ladder``, which imports this.
"""
