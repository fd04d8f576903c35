#!/usr/bin/env python3
"""Turns the API table (*.api of this folder) into the generated sources.

    generate.py OUTPUT_FOLDER        writes the files below, those that changed only
    generate.py --list               prints their names
    generate.py --coverage           prints symbol, area and treatment, one entry point a line
    generate.py --check-lookups TSV  every (name, version, per_thread) of TSV must resolve
    generate.py --check-exports TXT  every symbol of TXT must be exported
"""

import pathlib
import sys

import client
import listings
import server
import table

FOLDER = pathlib.Path(__file__).parent

FILES = {
    "exact_names.gen.h": listings.exact_names,
    "driver_api.gen.h": listings.driver_api,
    "driver_functions.gen.h": listings.driver_functions,
    "opcodes.gen.h": listings.opcodes,
    "driver.gen.h": listings.driver,
    "resolve.gen.h": listings.resolve,
    "coverage.gen.h": listings.coverage,
    "exports.gen.map": listings.exports_map,
    "signature_check.gen.cpp": listings.signature_check,
    "stubs.gen.cpp": client.stubs,
    "served.gen.h": server.served,
    "handlers.gen.cpp": server.handlers,
}


def write(folder, entries):
    folder.mkdir(parents=True, exist_ok=True)
    for name, make in FILES.items():
        path, text = folder / name, make(entries)
        if not path.exists() or path.read_text() != text:
            path.write_text(text)


def find(rows, name, version, per_thread):
    """As cuGetProcAddress looks it up."""
    def newest(twin):
        found = [r for r in rows if r[0] == name and r[1] <= version and r[2] == twin]
        return found[-1] if found else None
    return (per_thread and newest(True)) or newest(False)


def check_lookups(entries, path):
    rows, missing = table.resolvable(entries), []
    for line in path.read_text().splitlines():
        fields = line.split("\t")
        if line.startswith("#") or len(fields) < 3 or not fields[0] or not fields[1].isdigit():
            continue
        if not find(rows, fields[0], int(fields[1]), fields[2] == "1"):
            missing.append(" ".join(fields[:3]))
    return missing


def check_exports(entries, path):
    exported = {s for e in entries for s in e.exports()}
    return sorted(set(path.read_text().split()) - exported)


def main(arguments):
    if not arguments or arguments[0] in ("-h", "--help"):
        print(__doc__)
        return 2
    if arguments[0] == "--list":
        print("\n".join(FILES))
        return 0
    entries = table.read(FOLDER)
    if arguments[0] == "--coverage":
        print("\n".join(f"{e.symbol} {e.area} {e.treatment}" for e in entries))
        return 0
    checks = {"--check-lookups": check_lookups, "--check-exports": check_exports}
    if arguments[0] in checks:
        missing = checks[arguments[0]](entries, pathlib.Path(arguments[1]))
        print("\n".join(f"missing: {m}" for m in missing) or "complete")
        return 1 if missing else 0
    write(pathlib.Path(arguments[0]), entries)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
