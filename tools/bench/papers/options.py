"""The options that papers.py, schedules.py and pair_study.py have in common."""
import argparse
import os
import pathlib

CHECKSUMS = pathlib.Path(__file__).resolve().parents[3] / "examples/checksums.txt"


def parser_of(description, budget, rounds, length):
    """With the script's own defaults: seconds for all, rounds at most, and half of the seconds that a program
    takes alone."""
    parser = argparse.ArgumentParser(description=description,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build")
    parser.add_argument("--preload")
    parser.add_argument("--programs", help="the folder of the examples (default: BUILD/examples/shared)")
    parser.add_argument("--checksums", default=str(CHECKSUMS))
    parser.add_argument("--device", help="sim: to try this script, at size trivial")
    parser.add_argument("--size", default="large")
    parser.add_argument("--budget", type=float, default=budget, help="seconds for all")
    parser.add_argument("--rounds", type=int, default=rounds, help="at most")
    parser.add_argument("--length", type=float, default=length,
                        help="half of what a program takes alone, seconds")
    parser.add_argument("--profiles", help="the folder of what smt profile finds (default: --out)")
    parser.add_argument("--out", default=".")
    return parser


def parse(parser, needs_programs=lambda options: True):
    options = parser.parse_args()
    options.programs = options.programs or os.path.join(options.build, "examples/shared")
    if options.device == "sim":
        options.size, options.length = "trivial", 0.05
    if needs_programs(options) and not os.path.isdir(options.programs):
        parser.error(f"there is no folder {options.programs}: build the target examples_shared, or name "
                     "another folder with --programs")
    return options
