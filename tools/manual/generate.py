#!/usr/bin/env python3
"""Writes man pages and completions from what the built commands say of themselves:

    generate.py SMT SMTD VERSION FOLDER
"""

import pathlib
import sys

import completions
import pages
import usage


def main(smt, smtd, version, folder):
    commands = usage.read_commands(smt)
    policies = [line.split()[0] for line in usage.output_of(smt, "policy", "list").splitlines()]
    files = {f"man/{name}": text for name, text in
             pages.all_pages(commands, usage.read_server(smtd), usage.output_of(smt, "config", "--markdown"),
                             version).items()}
    files.update(completions.all_files(commands, policies))
    for name, text in files.items():
        path = pathlib.Path(folder) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


if __name__ == "__main__":
    main(*sys.argv[1:])
