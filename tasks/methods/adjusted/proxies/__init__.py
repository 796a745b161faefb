"""Stage ``proxies``: probabilities of race from surname and place, and what they say of denials.

Names are read here alone, are looked up in memory, and reach no table.
"""
