"""CEC above the own group: its randomization test (``relabelled``), and its interval by refits (``refits``).

The arithmetic of one relabelling is in ``pairing``, its neighbour search in ``neighbours``.
"""
