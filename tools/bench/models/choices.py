#!/usr/bin/env python3
"""What it is worth to go by the Markov model, of pairs that were measured side by side in several
combinations of CTAs.

    smt profile pairs --measured --json > FILE; choices.py FILE

Combinations whose rates are refused, because a pipe cannot be as busy, are left out. For each form of the
model: how far off its profit is, how far where it has its best combination, what is lost against the best
combination that was measured (a pair of which it expects less than slice asks for has none), and against the
best partner of each kernel.
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


def main():
    pairs = read(sys.argv[1])
    kernels = sorted(set(itertools.chain(*pairs)))
    print(f"{len(pairs)} pairs, {sum(map(len, pairs.values()))} combinations")
    print(f"{'':<6} {'profit off by':>13} {'median':>7} {'its best off by':>15} {'below best CTAs':>15} "
          f"{'worst':>6} {'below best partner':>18} {'worst':>6}")
    for form in ("R_m", "told"):
        off = [abs(predicted[form] - measured) for rows in pairs.values() for _, measured, predicted in rows]
        chosen = {pair: max(rows, key=lambda row: row[2][form]) for pair, rows in pairs.items()}
        best = {pair: max(0, *(measured for _, measured, _ in rows)) for pair, rows in pairs.items()}
        gets = {pair: row[1] if row[2][form] > LEAST_PROFIT else 0 for pair, row in chosen.items()}
        own_off = [abs(row[1] - row[2][form]) for row in chosen.values()]
        below = [best[pair] - gets[pair] for pair in pairs]
        partner = []
        for kernel in kernels:
            mine = [pair for pair in pairs if kernel in pair and pair[0] != pair[1]]
            if len(mine) > 2:
                partner.append(max(best[pair] for pair in mine) -
                               gets[max(mine, key=lambda pair: chosen[pair][2][form])])
        print(f"{form:<6} {statistics.mean(off):>13.3f} {statistics.median(off):>7.3f} "
              f"{statistics.mean(own_off):>15.3f} {statistics.mean(below):>15.3f} {max(below):>6.3f} "
              f"{statistics.mean(partner):>18.3f} {max(partner):>6.3f}")


if __name__ == "__main__":
    main()
