"""seqwise: every sequence model, from n-grams to Transformers.

    import seqwise
    seqwise.train("poems.txt", model="lstm", minutes=2).generate("Shall I ")
    seqwise.compare("poems.txt", minutes=10)

torch is imported when one of these names is first used, not before.
"""

import os
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

# Threads that wait for each other spin; on a machine with other work that costs many times the work itself. Spinning
# for a shorter while costs nothing measurable where the machine is free. Read by torch's OpenMP when it is loaded.
os.environ.setdefault("GOMP_SPINCOUNT", "20000")
__all__ = ["__version__", "compare", "continue_comparison", "continue_training", "load", "train"]

if TYPE_CHECKING:
    from .api import compare, continue_comparison, continue_training, load, train


def __getattr__(name: str) -> Any:
    if name in __all__:
        from . import api

        return getattr(api, name)
    raise AttributeError(f"module 'seqwise' has no attribute '{name}'")
