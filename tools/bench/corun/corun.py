#!/usr/bin/env python3
"""Programs side by side on a GPU, under each policy and without smt. One JSON line a run in corun.jsonl;
tables at the end, with the number of runs and their spread. Exit code 0 when every result was right; figures
are for people to judge.

  pairs     two examples at once, in both orders of arrival: what both get done while both work, in units of
            what each does alone and natively (weighted speedup; 1 is what one after the other gives), the
            native time of both one after the other over the time until both are done (makespan speedup, the
            papers' STP), and how much longer each takes (ANTT)
  priority  a small urgent program beside a large one, and the same two as equals: how long its requests take,
            and what the large one loses
  shares    a program twice under fair, with weights: what each gets of the time, and what both together lose
  queue     four programs at once: until all are done, and the same four pair by pair
  sms       a program on fewer and fewer multiprocessors: where does it become slower?
  compact   programs under compact, with what `smt profile --sweep` says of them: multiprocessors used, and
            time
  headroom  a service beside a neighbour that leaves it so many multiprocessors: how long requests take, and
            what the neighbour loses
  starts    a small program, from its start to its end, beside one that has launched seconds of work and waits
            for it
"""
import argparse
import gzip
import os
import pathlib
import sys
import time
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "harness"))
import corun_pairs  # noqa: E402
import corun_places  # noqa: E402
from stage import Stage  # noqa: E402

PARTS = {"pairs": corun_pairs.Pairs, "priority": corun_pairs.Priority, "shares": corun_pairs.Shares,
         "starts": corun_pairs.Starts,
         "queue": corun_places.Queue, "sms": corun_places.Sms, "compact": corun_places.Compact,
         "headroom": corun_places.Headroom}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build")
    parser.add_argument("--preload")
    parser.add_argument("--programs", default="build/examples/shared")
    parser.add_argument("--arrivals", default="build/bin/gpu/shared/arrivals")
    parser.add_argument("--checksums", default="examples/checksums.txt")
    parser.add_argument("--device", help="sim: to try this script, at size trivial")
    parser.add_argument("--size", default="large")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--length", type=float, default=0.3, help="seconds that a program takes alone")
    parser.add_argument("--launches", type=int, default=40, help="of the small program, in part priority")
    parser.add_argument("--select", default="", help="pairs, by a regular expression")
    parser.add_argument("--pairs", choices=sorted(corun_pairs.Pairs.PAIRS), default="four",
                        help="which, in part pairs")
    parser.add_argument("--profiles", help="the folder of what smt profile finds (default: --out)")
    parser.add_argument("--known", action="store_true", help="parts that begin with smt profile do without: "
                        "it was done before, into --profiles")
    parser.add_argument("--sweep", action="store_true",
                        help="their programs are measured by smt profile --sweep first")
    parser.add_argument("--modes", help="of every part that has some")
    parser.add_argument("--parts", default="pairs,priority,shares,queue,sms,compact,headroom")
    parser.add_argument("--seconds", default="120,110,25,40,25,30,30", help="for each part")
    parser.add_argument("--computing", type=int, default=0,
                        help="so many other processes compute on the host's cores meanwhile")
    parser.add_argument("--log", action="store_true", help="keep the server's journal behind each part")
    parser.add_argument("--out", default=".")
    options = parser.parse_args()
    if options.device == "sim":
        options.size, options.length = "trivial", 0.05
    with Stage(options, "corun.jsonl") as stage:
        stage.compute(options.computing)
        for name, seconds in zip(options.parts.split(","), options.seconds.split(",")):
            begin = time.monotonic()
            print(f"== {name}", flush=True)
            part = PARTS[name](stage)
            try:
                part.measure(begin + float(seconds))
                part.show()
            except Exception:   # the other parts are measurements, too
                traceback.print_exc(file=sys.stdout)
                stage.wrong += 1
            if options.log:
                with gzip.open(os.path.join(options.out, f"log-{name}.jsonl.gz"), "wt") as file:
                    file.write(stage.smt("log", "--json", timeout=120))
            print(f"   {time.monotonic() - begin:.0f} s", flush=True)
        print(f"{stage.wrong} wrong results")
        return 1 if stage.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
