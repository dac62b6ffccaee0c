"""seqwise: every sequence model, from n-grams to Transformers.

    import seqwise
    run = seqwise.train("poems.txt", model="lstm", minutes=2)      # a TrainedRun, saved in runs/poems-lstm
    run.generate("Shall I ")
    run.evaluate()
    seqwise.load("runs/poems-lstm")
    seqwise.compare("poems.txt", minutes=10)

Mistakes in what was asked for, or in the data, raise a child of SeqwiseError with one sentence that says what to do.
torch is imported when one of these names is first used, not before.
"""

import os
from typing import TYPE_CHECKING, Any

__version__ = "0.3.0"

# Threads that wait for each other spin; on a machine with other work that costs many times the work itself. Spinning
# for a shorter while costs nothing measurable where the machine is free. Read by torch's OpenMP when it is loaded.
os.environ.setdefault("GOMP_SPINCOUNT", "20000")
__all__ = [
    "CheckpointError",
    "ConfigError",
    "DataError",
    "SeqwiseError",
    "TrainedRun",
    "TrainingError",
    "__version__",
    "compare",
    "connect",
    "continue_comparison",
    "continue_training",
    "load",
    "train",
]

if TYPE_CHECKING:
    from .api import TrainedRun, compare, continue_comparison, continue_training, load, train
    from .client import connect
    from .errors import CheckpointError, ConfigError, DataError, SeqwiseError, TrainingError


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'seqwise' has no attribute '{name}'")
    if name.endswith("Error"):
        from . import errors as module
    elif name == "connect":  # a client needs nothing that computes
        from . import client as module  # type: ignore[no-redef]
    else:
        from . import api as module  # type: ignore[no-redef]
    return getattr(module, name)


def __dir__() -> list[str]:
    """For completion and help(): what is imported when it is first used, too."""
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
