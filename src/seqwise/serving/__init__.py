"""Runs over HTTP: requests of one run are answered side by side.

rows.py       states of rows that come and go
prompts.py    prompts are read in blocks, and what was left after their beginnings is kept
batching.py   one thread for each run: rows enter and leave while others go on
pieces.py     tokens -> text bit by bit: half characters and beginnings of stop strings are held back
"""
