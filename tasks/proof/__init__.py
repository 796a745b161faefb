"""What benches and reproductions share: published figures, specs, lines of comparison, processes, plain calls.

What one method alone is held against is in its folder, under ``bench`` and ``reproduction``.
"""
