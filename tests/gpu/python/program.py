"""What the files *_programs.py share: named programs in one file, one run at a time.

    python3 torch_programs.py NAME      # runs one; frameworks.py finds their names in the text

A program prints what it computed, the same in every run, and ends with an exception when that is wrong.
"""
import os
import sys

PROGRAMS = {}


def environment(settings):
    """What a program needs in its environment. Libraries read some of it when they are imported: call this
    before."""
    os.environ.update(settings.get(sys.argv[1] if len(sys.argv) > 1 else "", {}))


def program(function):
    PROGRAMS[function.__name__] = function
    return function


def show(label, *values):
    """Floating-point numbers to six digits: libraries add in an order of their own."""
    print(f"{label}:", *(f"{value:.6g}" if isinstance(value, float) else value for value in values),
          flush=True)


def main():
    if len(sys.argv) != 2 or sys.argv[1] not in PROGRAMS:
        sys.exit(f"usage: {sys.argv[0]} NAME, one of: " + " ".join(PROGRAMS))
    PROGRAMS[sys.argv[1]]()
    print("done", flush=True)
