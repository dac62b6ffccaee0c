"""Other people's formats, one per file."""
