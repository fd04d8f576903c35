#!/usr/bin/env python3
"""What it is worth to go by the Markov model, of pairs that were measured side by side in several
combinations of CTAs, beside two null baselines: no profit is expected, and every pair runs half and half.

    smt profile pairs --measured --json > FILE; choices.py FILE

Combinations whose rates are refused, because a pipe cannot be as busy, are left out. For each form of the
model: how far off its profit is, how far where it has its best combination, what is lost against the best
combination that was measured (a pair of which it expects less than slice asks for has none), and against the
best partner of each kernel. Half and half expects the mean profit of all pairs: the first partner is taken.
"""
import itertools
import json
import statistics
import sys

LEAST_PROFIT = 0.05   # SliceKnobs::least_profit


def identity(kernel):
    """Kernels of one name differ by image, block shape or class of grids."""
    return kernel["symbol"], kernel["image"], tuple(kernel["block"]), kernel["grid_class"]


def read(path):
    """{pair of kernels: [(CTAs, measured, {form: predicted})]}, of pairs that were counted; profits."""
    pairs = {}
    with open(path) as file:
        for row in json.load(file):
            if "paper" in row and "told" in row and "refused" not in row:   # both were counted
                pair = identity(row["first"]), identity(row["second"])
                pairs.setdefault(pair, []).append((tuple(row["blocks"]), row["profit"],
                                                   {"R_m": row["paper"], "told": row["told"]}))
    return {pair: rows for pair, rows in pairs.items() if len(rows) > 1}


def halves(rows):
    """The combination in the middle of those that were measured, by the first kernel's CTAs: about half of an
    SM for each."""
    ordered = sorted(rows, key=lambda row: (row[0][0], -row[0][1]))
    return ordered[len(ordered) // 2]


def judged(pairs, profit, choose=None):
    """What a form is worth that expects `profit(row)`, and takes the combination that it likes best, or that
    `choose` takes of a pair's rows whatever it expects."""
    kernels = sorted(set(itertools.chain(*pairs)))
    off = [abs(profit(row) - row[1]) for rows in pairs.values() for row in rows]
    chosen = {pair: choose(rows) if choose else max(rows, key=profit) for pair, rows in pairs.items()}
    best = {pair: max(0, *(row[1] for row in rows)) for pair, rows in pairs.items()}
    gets = {pair: row[1] if choose or profit(row) > LEAST_PROFIT else 0 for pair, row in chosen.items()}
    below = [best[pair] - gets[pair] for pair in pairs]
    partner = []
    for kernel in kernels:
        mine = [pair for pair in pairs if kernel in pair and pair[0] != pair[1]]
        if len(mine) > 2:
            partner.append(max(best[pair] for pair in mine) -
                           gets[max(mine, key=lambda pair: profit(chosen[pair]))])
    own_off = [abs(row[1] - profit(row)) for row in chosen.values()]
    return {"off": off, "own_off": own_off, "below": below, "partner": partner}


def forms(pairs):
    """The model's two, and two that know nothing: no profit is expected, so that nothing is paired; and every
    pair runs, half and half, with the mean profit of all combinations expected."""
    mean = statistics.mean(row[1] for rows in pairs.values() for row in rows)
    return {"R_m": judged(pairs, lambda row: row[2]["R_m"]),
            "told": judged(pairs, lambda row: row[2]["told"]),
            "none": judged(pairs, lambda row: 0), "halves": judged(pairs, lambda row: mean, halves)}


def main():
    pairs = read(sys.argv[1])
    if not pairs:
        sys.exit(f"{sys.argv[1]}: no pair that was measured in several combinations and counted; "
                 "smt profile --sweep and smt profile --pair measure them")
    print(f"{len(pairs)} pairs, {sum(map(len, pairs.values()))} combinations")
    print(f"{'':<6} {'profit off by':>13} {'median':>7} {'its best off by':>15} {'below best CTAs':>15} "
          f"{'worst':>6} {'below best partner':>18} {'worst':>6}")
    for form, found in forms(pairs).items():
        partner = found["partner"] or [float("nan")]
        print(f"{form:<6} {statistics.mean(found['off']):>13.3f} {statistics.median(found['off']):>7.3f} "
              f"{statistics.mean(found['own_off']):>15.3f} {statistics.mean(found['below']):>15.3f} "
              f"{max(found['below']):>6.3f} {statistics.mean(partner):>18.3f} {max(partner):>6.3f}")


if __name__ == "__main__":
    main()
