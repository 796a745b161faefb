"""The experiments of the CST paper (Alvarez and Ruggieri, EAAMO 2023)."""
