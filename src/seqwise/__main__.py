"""python -m seqwise: the command line."""

from .cli import main

main()
