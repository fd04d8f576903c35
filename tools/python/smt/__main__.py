"""The command smt of this package: python -m smt COMMAND ..., or smt COMMAND ...

`run` takes a Python program as it takes others, and runs it by this Python."""

import os
import pathlib
import sys

SMT = pathlib.Path(__file__).resolve().parent / "bin" / "smt"


def with_python(arguments):
    """run [--OPTION VALUE]... [--] X.py ... -> run ... -- PYTHON X.py ...

    Each option of smt run has a value."""
    at = 1
    while at < len(arguments) and arguments[at].startswith("-") and arguments[at] != "--":
        at += 1 if "=" in arguments[at] or arguments[at] in ("-h", "--help") else 2
    program = at + (arguments[at:at + 1] == ["--"])
    if not "".join(arguments[program:program + 1]).endswith(".py"):
        return arguments
    return [*arguments[:at], "--", sys.executable, *arguments[program:]]


def main():
    arguments = sys.argv[1:]
    if arguments[:1] == ["run"]:
        arguments = with_python(arguments)
    try:
        os.execv(SMT, [str(SMT), *arguments])
    except OSError as error:
        sys.exit(f"smt: cannot run {SMT}: {error.strerror}")


if __name__ == "__main__":
    main()
