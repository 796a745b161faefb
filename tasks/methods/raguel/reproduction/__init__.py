"""The experiments of the RAGUEL paper (Haldar, Cunningham and Ferhatosmanoglu, 2022)."""
