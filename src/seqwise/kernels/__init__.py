"""Loops compiled by numba: arrays in, arrays out. They know numbers alone, so every stage may use them.

What they compile is kept beside them (`__pycache__`) or, where that cannot be written, in the user's cache folder.
"""
