"""The experiments of the CEC paper (Popoola and Sheppard, 2026)."""
