#!/usr/bin/env python3
"""Claims for tools/bench/results.json of what watched.py measured:

    claims.py OUT... --run NAME --commit C --machine M --raw PLACE [--note N] [--write]

prints the run and its claims, a line each. --write puts them into results.json, in place of those with the
same names; tools/bench/report.py then writes the page. Of several folders the last that has a case counts.
"""
import argparse
import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import results_file  # noqa: E402
from results_file import between, ordered  # noqa: E402

HOME = {"title": "What it costs to be watched",
        "text": ["Programs that do nothing but launch, with `smt metrics` scraped once a second, or with a "
                 "page of `smt ui` open, ten frames a second, between times in which nothing watches "
                 "(`tools/bench/watched`). The same with nothing in place of a reader says what is chance."]}
BY = {"metrics": "`smt metrics` is scraped once a second", "page": "a page of `smt ui` is open"}
FIGURES = {"launches": ("Launches a second", "higher"),
           "server_cpu": ("The server’s CPU time a launch", "lower")}


def read(folders):
    """{(programs, way): its row}"""
    rows = {}
    for folder in map(pathlib.Path, folders):
        for row in map(json.loads, (folder / "watched.jsonl").read_text().splitlines()):
            if row["part"] == "way":
                rows[row["programs"], row["way"]] = row
    return rows


def claims_of(rows, run):
    for (programs, way), row in rows.items():
        chance = rows.get((programs, "nothing"))
        for figure, (words, better) in FIGURES.items():
            if way not in BY or not row[figure]:
                continue
            what = f"kernels of some {row['work_us']} us" if row.get("work_us") else "empty kernels"
            launch = "programs that launch" if programs > 1 else "program that launches"
            of = f"{programs} {launch} {what} without end"
            found = {"id": f"watched-{way}-{programs}-{figure.replace('_', '-')}", "run": run,
                     "claim": f"{words} of {of} while {BY[way]}, to those while nothing watches",
                     **between(row[figure]["median"], row[figure]["low"], row[figure]["high"]),
                     "statistic": "median", "n": row["n"], "of": f"rounds of {row['seconds']:g} s",
                     "spread": "min and max", "unit": "of unwatched", "better": better}
            if chance and chance[figure]:
                again = (chance[figure][key] for key in ("median", "low", "high"))
                found["baselines"] = [{"name": "nothing watches, again", **between(*again)}]
            yield ordered(found)


def commands_of(folders):
    paths = [pathlib.Path(folder) / "watched.command" for folder in folders]
    return "; ".join(dict.fromkeys(path.read_text().strip() for path in paths if path.exists()))


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    options = results_file.add_options(parser).parse_args()
    return results_file.put(options, HOME, commands_of(options.folders),
                            list(claims_of(read(options.folders), options.run)))


if __name__ == "__main__":
    sys.exit(main())
