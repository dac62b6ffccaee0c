"""File -> parts -> ids on disk -> batches: readers, splits, stores, checks, and the data sets that have a name."""
