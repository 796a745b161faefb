"""The experiments of the FGCE paper (Fragkathoulas, Papanikou, Pitoura and Terzi)."""
