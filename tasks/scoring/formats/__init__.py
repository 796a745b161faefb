"""What the formats of model files need: archives judged by their directory, trees and graphs checked as data.

Which format a file is in, and what is made of it: ``tasks.scoring.models``. The process that reads a stranger's file:
``tasks.scoring.model_reader``.
"""
