"""Scores that say how they were computed."""
