"""seqwise: every sequence model, from n-grams to Transformers."""

__version__ = "0.1.0"
