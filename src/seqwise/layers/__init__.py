"""The shared maths, one idea per file. Layers take plain arguments; only models see a config."""
