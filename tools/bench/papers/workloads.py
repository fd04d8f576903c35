"""What runs side by side: the programs of the four papers' evaluations, and some that nothing was tuned on.

The seeds were fixed before anything was measured with them. What is drawn by them is the same on every
machine."""
import itertools
import random

from corun_pairs import Pairs, Priority
from corun_places import Compact, Queue

# Adaptive Simultaneous Multi-tenancy, its figures 10 and 11.
LOW_ISU, HIGH_ISU = Pairs.PAIRS["paper"], Pairs.PAIRS["high"]

# FLEP, its table 1, and its figures 8 (a small program of high priority behind a large one) and 10 (the same
# priority). "hpf=": as equals, as in corun.py.
FLEP = ("cfd", "nearest_neighbour", "pathfinder", "particle_filter", "molecular_dynamics", "spmv",
        "matrix_multiply", "vector_add")
URGENT = [(small, large) for large in FLEP[:4] for small in FLEP if small != large]
EQUAL = [(small, large) for small in FLEP[4:] for large in FLEP if small != large]

# FLEP's figure 12: large, and two small ones behind it.
TRIPLES, TRIPLES_SEED = 14, 20261127

# fair, FLEP's figure 13 with all its programs, and with three: the first program's weight first.
WEIGHTS = {2: (2, 1), 3: (3, 2, 1)}

# Kernelet, its table 5.
MIXES = {"CI": ("black_scholes", "matrix_multiply", "tea", "mri_q"),
         "MI": ("pointer_chase", "spmv", "stencil3d", "sad"),
         "MIX": ("pointer_chase", "black_scholes", "tea", "sad"),
         "ALL": ("pointer_chase", "spmv", "stencil3d", "black_scholes", "matrix_multiply", "tea", "mri_q",
                 "sad")}

# smCompactor, its figures 11 and 12, and the third pair of these programs; its eight cases are two pairs
# under four systems.
COMPACTED = [("fdtd3d", "lavamd"), ("black_scholes", "lavamd"), ("fdtd3d", "black_scholes"),
             ("fdtd3d", "lavamd", "black_scholes")]

ALL = ("binomial_options", "black_scholes", "cfd", "fdtd3d", "lavamd", "matrix_multiply", "md5_hash",
       "molecular_dynamics", "mri_q", "nbody", "nearest_neighbour", "particle_filter", "pathfinder",
       "pointer_chase", "sad", "spmv", "stencil3d", "string_match", "tea", "tpacf", "vector_add")

# What policies were tuned and judged on before: pairs of programs, and all pairs within groups. The figures
# of pairs, queue, compact and priority in docs/results.md are of these.
def within(groups):
    return [pair for group in groups for pair in itertools.combinations(group, 2)]


TUNED = {"four pairs (corun.py)": Pairs.FOUR, "fifteen pairs": LOW_ISU,
         "pairs of high utilisation": HIGH_ISU, "the queue": within([Queue.PROGRAMS]),
         "groups under compact": within(Compact.GROUPS), "smCompactor's": within(COMPACTED),
         "urgent programs": [pair for pair in Priority.PAIRS if set(pair) <= set(ALL)]}
DRAWN_SEED, DRAWN_PAIRS, DRAWN_QUEUES = 20261127, 12, 4


def tuned_pairs():
    return {frozenset(pair) for pairs in TUNED.values() for pair in pairs}


def drawn_triples():
    every = [(large, *small) for large in FLEP
             for small in itertools.combinations([name for name in FLEP if name != large], 2)]
    return random.Random(TRIPLES_SEED).sample(every, TRIPLES)


def drawn_pairs():
    """Of all pairs of the examples, less the tuned ones."""
    tuned = tuned_pairs()
    left = [pair for pair in itertools.combinations(ALL, 2) if frozenset(pair) not in tuned]
    return random.Random(DRAWN_SEED).sample(left, DRAWN_PAIRS)


def drawn_queues():
    """Four programs each, no two of which are a tuned pair."""
    tuned = tuned_pairs()
    left = [names for names in itertools.combinations(ALL, 4)
            if not any(frozenset(pair) in tuned for pair in itertools.combinations(names, 2))]
    return random.Random(DRAWN_SEED).sample(left, DRAWN_QUEUES)


def in_drawn_order(workloads):
    """So that those that a budget has no time for are not chosen by what they show."""
    return random.Random(DRAWN_SEED).sample(workloads, len(workloads))
