"""What the examples print with --times, and the few statistics that every table has."""
import re

TIMES = re.compile(r"^times_ms (.*)$", re.MULTILINE)
ENDS = re.compile(r"^ends_s (.*)$", re.MULTILINE)
ARRIVALS = re.compile(r"^arrivals_s (.*)$", re.MULTILINE)
CHECKSUM = re.compile(r"^checksum (\w+)$", re.MULTILINE)


def numbers(pattern, text):
    found = pattern.search(text)
    return [float(each) for each in found[1].split()] if found else []


def quantile(values, q):
    values = sorted(values)
    return values[min(len(values) - 1, int(q * len(values)))] if values else float("nan")


def read_checksums(path):
    """{(program, size): checksum} of examples/checksums.txt."""
    with open(path) as file:
        rows = [line.split() for line in file if line.strip() and not line.startswith("#")]
    return {(name, size): checksum for name, size, checksum in rows}
