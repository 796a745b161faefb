"""Predictors from a variational autoencoder whose latent noise is made independent of the category.

One autoencoder with two switches stands for three systems: mCEVAE (Pfohl et al. 2019), DCEVAE (Kim et al. 2021) and
ADVAE (Grari et al. 2023). Scope: ``settings`` has the switches, ``networks`` the autoencoder, ``penalties`` what makes
noise and category independent, ``training`` the loop and ``predictor`` what is trained on the noise.
"""
