"""One iteration of Baum-Welch against hmmlearn, from the same start: symbols per second and the likelihood found.

pip install hmmlearn==0.3.3
python -m benchmarks.hmm
"""

from __future__ import annotations

import logging
import math
import time

import numpy as np
from hmmlearn.hmm import CategoricalHMM

from benchmarks.measure import say_load, take_turns
from seqwise.data.schema import text_schema
from seqwise.models.hmm import HMM, HMMConfig
from seqwise.text.symbols import SymbolTokenizer

NUM_SYMBOLS, NUM_STATES, VOCAB_SIZE = 200_000, 16, 27
REPEATS = 7


def main() -> None:
    say_load()
    logging.getLogger("hmmlearn").setLevel(logging.ERROR)  # one iteration has not converged: we know
    config, schema = HMMConfig(num_states=NUM_STATES, smoothing=0.0), text_schema(SymbolTokenizer(VOCAB_SIZE))
    truth, ours = HMM(config, schema), HMM(config, schema)
    random = np.random.default_rng(0)
    truth.transition = random.dirichlet(np.full(NUM_STATES, 0.2), size=NUM_STATES)
    truth.emission = random.dirichlet(np.full(VOCAB_SIZE, 0.2), size=NUM_STATES)
    text = truth.sample(NUM_SYMBOLS, seed=1)[1]
    ours.initialise([text], seed=2)
    theirs = CategoricalHMM(NUM_STATES, n_iter=1, tol=-math.inf, init_params="", implementation="scaling")
    theirs.startprob_, theirs.transmat_, theirs.emissionprob_ = ours.initial, ours.transition, ours.emission
    found: dict[str, list[float]] = {"ours": [], "theirs": []}

    def iterate_ours() -> float:
        began = time.perf_counter()
        found["ours"].append(ours.em_step([text]))
        return NUM_SYMBOLS / (time.perf_counter() - began)

    def iterate_theirs() -> float:
        began = time.perf_counter()
        theirs.fit(text[:, None])
        found["theirs"].append(theirs.monitor_.history[-1])
        return NUM_SYMBOLS / (time.perf_counter() - began)

    ratio = take_turns(iterate_ours, iterate_theirs, REPEATS)
    apart = max(abs(a - b) / abs(b) for a, b in zip(found["ours"], found["theirs"], strict=True))
    print(f"{NUM_SYMBOLS:,} symbols of {VOCAB_SIZE}, {NUM_STATES} states; symbols per second: ours, hmmlearn, ratio")
    print(ratio)
    print(
        f"log-likelihood of {len(found['ours'])} iterations from the same start: apart by {apart:.1e} at most, relative"
    )
    assert apart < 1e-6, "ours and hmmlearn disagree"


if __name__ == "__main__":
    main()
