"""What each rule of the graph costs: searches without it, connectivity, groups of equal size.

Tables of it are written by the stage in ``tasks.methods.fgce.ablate``.
"""
