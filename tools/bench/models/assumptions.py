#!/usr/bin/env python3
"""Kernelet's figures 7 and 9 to 11: instructions a cycle that its model predicts of recorded profiles, beside
measured ones, also where the model is not told of uncoalesced accesses, or of more than one warp scheduler;
its table 4 and figure 4: PUR and MUR, and profits of pairs by how far these are apart; and profits that each
form of the model expects of pairs (figure 12). Needs no GPU: it takes what models.py left in OUT (parts
counters, alone and pairs).

    models.py --parts counters,alone,pairs --out OUT; assumptions.py OUT

Rows go to OUT/papers.jsonl, for tools/bench/papers/claims.py; it refuses where rows of another script are
there. Each assumption is a copy of the store: in "coalesced" no access of any kernel is uncoalesced (figure
10, of the two kernels that the paper has there, alone), in "one scheduler" the device issues one instruction
a cycle on each multiprocessor (figure 11, of pairs). Pairs have half of the CTAs each (figure 9); what is
measured of a pair is the sum of both kernels' instructions a cycle alone, times the rate that each keeps
beside the other.
"""
import argparse
import contextlib
import json
import os
import pathlib
import sqlite3
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "harness")]
from measurement import note_command  # noqa: E402
from models_figures import KERNELS  # noqa: E402

PROGRAMS = {(kernel, tuple(block)): name for name, (kernel, block) in KERNELS.items()}
ASSUMPTIONS = {
    "": "",
    "coalesced": "UPDATE profile SET uncoalesced_instructions = 0",
    "one scheduler": "UPDATE coefficient SET value = (SELECT value FROM coefficient AS own WHERE "
                     "own.profile = coefficient.profile AND own.name = 'device.multiprocessors') "
                     "WHERE name = 'peak.instructions_per_cycle'"}


def program(kernel):
    return PROGRAMS.get((kernel["kernel"], tuple(kernel["block"])))


def asked(smt, store, *words):
    done = subprocess.run([smt, "profile", *words, "--json"], env={**os.environ, "SMT_PROFILES": str(store)},
                          capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"smt profile {' '.join(words)} of {store}: {done.stderr.strip() or done.returncode}")
    return json.loads(done.stdout)


def under(smt, store, assumption):
    """What smt profile show and pairs say of the store, under an assumption."""
    with tempfile.TemporaryDirectory() as folder:
        copy = os.path.join(folder, "profiles.db")
        with contextlib.closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True)) as database:
            database.execute("VACUUM INTO ?", (copy,))
        if ASSUMPTIONS[assumption]:
            with contextlib.closing(sqlite3.connect(copy)) as database, database:
                database.execute(ASSUMPTIONS[assumption])
        return asked(smt, copy, "show"), asked(smt, copy, "pairs")


def of_alone(lines):
    """{pair of programs: the rate that each keeps beside the other}, means over rounds."""
    found = {}
    for row in lines:
        if row["part"] == "pair" and row["of_alone"]:
            found.setdefault(tuple(sorted(row["pair"])), []).append(dict(zip(row["pair"], row["of_alone"])))
    return {pair: {name: statistics.mean(each[name] for each in runs) for name in pair}
            for pair, runs in found.items()}


def singles(shown, form, field):
    for row in shown:
        if program(row) and row.get("ipc") and row.get(field):
            yield {"what": "one kernel", "form": form, "programs": program(row), "measured": row["ipc"],
                   "predicted": row[field], "uncoalesced": row.get("uncoalesced_ratio", 0)}


def pairs_of(shown, predicted, rates, form, field):
    ipc = {program(row): row["ipc"] for row in shown if program(row) and row.get("ipc")}
    for row in predicted:
        pair = tuple(sorted(map(str, (program(row["first"]), program(row["second"])))))
        if pair in rates and field in row and set(pair) <= set(ipc):
            yield {"what": "two kernels", "form": form, "programs": " + ".join(pair),
                   "measured": sum(rates[pair][name] * ipc[name] for name in pair),
                   "predicted": sum(row[field]["together"])}


def counted(shown):
    """PUR, MUR and occupancy (Kernelet's table 4)."""
    for row in shown:
        if program(row) and "pur" in row:
            yield {"what": "counted", "form": "counted", "programs": program(row), "pur": row["pur"],
                   "mur": row["mur"], "occupancy": row.get("occupancy")}


def profits(shown, rates):
    """Co-scheduling profits of pairs, and how far PUR and MUR of the two are apart (Kernelet's figure 4)."""
    kernels = {row["programs"]: row for row in counted(shown)}
    for pair, each in rates.items():
        if set(pair) <= set(kernels) and sum(each.values()) > 0:
            first, second = (kernels[name] for name in pair)
            yield {"what": "profit", "form": "counted", "programs": " + ".join(pair),
                   "profit": 1 - 1 / sum(each.values()),
                   **{ratio: abs(first[ratio] - second[ratio]) for ratio in ("pur", "mur")}}


def expected(predicted, rates):
    """Profits of pairs by each form of the model, beside the measured ones."""
    for row in predicted:
        pair = tuple(sorted(map(str, (program(row["first"]), program(row["second"])))))
        for form in ("paper", "told"):
            if sum(rates.get(pair, {}).values()) > 0 and "profit" in row.get(form, {}):
                yield {"what": "expected profit", "form": form, "programs": " + ".join(pair),
                       "measured": 1 - 1 / sum(rates[pair].values()), "predicted": row[form]["profit"]}


def rows_of(said, rates):
    """said: {assumption: (show, pairs)}"""
    shown, predicted = said[""]
    rows = []
    for form, single, pair in (("paper", "predicted_ipc", "paper"), ("told", "told_ipc", "told")):
        rows += singles(shown, form, single)
        rows += pairs_of(shown, predicted, rates, form, pair)
    rows += counted(shown)
    rows += profits(shown, rates)
    rows += expected(predicted, rates)
    rows += singles(said["coalesced"][0], "coalesced", "predicted_ipc")
    rows += pairs_of(shown, said["one scheduler"][1], rates, "one scheduler", "paper")
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build")
    parser.add_argument("out", metavar="OUT")
    options = parser.parse_args()
    out = pathlib.Path(options.out)
    for name in ("models.jsonl", "profiles.db"):
        if not (out / name).exists():
            parser.error(f"{out / name} is not there; models.py --out {out} writes it")
    others = out / "papers.jsonl"
    if others.exists() and any('"part": "models"' not in line for line in others.read_text().splitlines()):
        parser.error(f"{others} has rows of another script; move it away, or copy models.jsonl and "
                     "profiles.db into a folder of their own")
    lines = [json.loads(line) for line in (out / "models.jsonl").read_text().splitlines()]
    smt = os.path.join(options.build, "bin", "smt")
    rows = rows_of({each: under(smt, out / "profiles.db", each) for each in ASSUMPTIONS}, of_alone(lines))
    if not rows:
        sys.exit(f"{out / 'profiles.db'}: no kernel of Kernelet's eight was counted; models.py --parts "
                 "counters does that")
    note_command(options.out, "papers.jsonl")
    with open(out / "papers.jsonl", "w") as file:
        for row in rows:
            file.write(json.dumps({"part": "models", **row}) + "\n")
            numbers = ", ".join(f"{key} {value:.3f}" for key, value in row.items()
                                if isinstance(value, (int, float)))
            print(f"{row['what']:<12} {row['form']:<14} {row['programs']:<34} {numbers}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
