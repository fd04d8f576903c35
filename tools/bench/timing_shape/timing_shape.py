#!/usr/bin/env python3
"""Compares what bench_timing_shape printed on the simulated device and on a GPU.

    timing_shape.py SIMULATED.jsonl GPU.jsonl [FOLDER [MACHINE.json [COMMAND.txt]]]

For each kernel: Spearman's rank correlation of the time against the blocks resident on a multiprocessor, as
measured, and with times that differ by less than 2 % counted as equal (where a kernel is saturated the order
is noise on a GPU and exact on the simulator). FOLDER has then: both files' rows, a README.md, a picture of
each kernel with both curves, each relative to its own time with one block, and what is known of the machine
and the commands.
"""

import json
import pathlib
import shutil
import statistics
import subprocess
import sys

TOLERANCE = 0.02
WIDTH, HEIGHT, MARGIN = 420, 300, 52
COLOURS = {"simulated": "#c0392b", "GPU": "#2c3e50"}


class Run:
    """The rows of one device: medians by kernel and number of blocks, and how far samples lie apart at
    most."""

    def __init__(self, path):
        self.curves, self.spread = {}, {}
        for line in pathlib.Path(path).read_text().splitlines():
            row = json.loads(line)
            self.device, self.multiprocessors, self.samples = row["device"], row["sms"], len(row["us"])
            median = statistics.median(row["us"])
            self.curves.setdefault(row["kernel"], {})[row["ctas_per_sm"]] = median
            apart = (max(row["us"]) - min(row["us"])) / median
            self.spread[row["kernel"]] = max(apart, self.spread.get(row["kernel"], 0))


def ranks(values, tolerance):
    """From 1; values within the tolerance of the smallest of their group share the mean of their places."""
    order = sorted(range(len(values)), key=lambda i: values[i])
    result = [0.0] * len(values)
    at = 0
    while at < len(order):
        end = at
        while end < len(order) and values[order[end]] <= values[order[at]] * (1 + tolerance):
            end += 1
        for i in order[at:end]:
            result[i] = (at + 1 + end) / 2
        at = end
    return result


def correlation(a, b):
    mean_a, mean_b = statistics.fmean(a), statistics.fmean(b)
    top = sum((x - mean_a) * (y - mean_b) for x, y in zip(a, b))
    bottom = (sum((x - mean_a) ** 2 for x in a) * sum((y - mean_b) ** 2 for y in b)) ** 0.5
    return top / bottom if bottom else 0.0


def rank_correlation(a, b, tolerance=0.0):
    return correlation(ranks(a, tolerance), ranks(b, tolerance))


def line(points, colour):
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    dots = "".join(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5" fill="{colour}"/>' for x, y in points)
    return f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.5"/>{dots}'


def panel(left, top, kernel, curves, note):
    most = max(max(curve) for curve in curves.values())
    inner_width, inner_height = WIDTH - 2 * MARGIN, HEIGHT - 2 * MARGIN
    x = lambda blocks: left + MARGIN + inner_width * (blocks - 1) / (most - 1)
    y = lambda part: top + MARGIN + inner_height * (1 - part)
    parts = [f'<text x="{left + WIDTH / 2}" y="{top + 22}" text-anchor="middle" '
             f'font-weight="bold">{kernel}</text>',
             f'<text x="{left + WIDTH / 2}" y="{top + 38}" text-anchor="middle" font-size="11">{note}</text>']
    for part in (0, 0.25, 0.5, 0.75, 1):
        parts.append(f'<line x1="{x(1)}" x2="{x(most)}" y1="{y(part)}" y2="{y(part)}" stroke="#ddd"/>'
                     f'<text x="{x(1) - 6}" y="{y(part) + 4}" text-anchor="end" '
                     f'font-size="10">{part:g}</text>')
    for blocks in range(1, most + 1):
        parts.append(f'<text x="{x(blocks)}" y="{y(0) + 14}" text-anchor="middle" '
                     f'font-size="9">{blocks}</text>')
    parts.append(f'<text x="{left + WIDTH / 2}" y="{y(0) + 30}" text-anchor="middle" font-size="11">CTAs per '
                 'SM</text>')
    for i, (name, curve) in enumerate(curves.items()):
        base = curve[1]
        parts.append(line([(x(blocks), y(curve[blocks] / base)) for blocks in sorted(curve)], COLOURS[name]))
        parts.append(f'<text x="{x(most)}" y="{y(1) + 14 + 14 * i}" text-anchor="end" font-size="11" '
                     f'fill="{COLOURS[name]}">'
                     f'{name}</text>')
    return "".join(parts)


def compare(simulated, real):
    """For each kernel that both have: its name, both correlations, and the curves."""
    for kernel, curve in simulated.curves.items():
        other = real.curves.get(kernel, {})
        common = sorted(set(curve) & set(other))
        if len(common) < 3:
            print(f"{kernel:<12} not measured on both")
            continue
        a, b = [curve[n] for n in common], [other[n] for n in common]
        yield kernel, rank_correlation(a, b), rank_correlation(a, b,
                                                               TOLERANCE), dict(zip(common,
                                                                                    a)), dict(zip(common, b))


def picture(kernel, raw, equal, curves, devices):
    note = f"rank correlation {raw:.3f}; {equal:.3f} with 2 % counted as equal"
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT + 24}" '
            'font-family="sans-serif" '
            'font-size="13"><rect width="100%" height="100%" '
            f'fill="white"/>{panel(0, 0, kernel, curves, note)}'
            f'<text x="{WIDTH / 2}" y="{HEIGHT + 12}" text-anchor="middle" font-size="9">Time against '
            'resident CTAs, '
            f'relative to one. {devices}</text></svg>\n')


README = """# The shape of time: a kernel's time against the CTAs on an SM

Does the simulated device get faster and slower with occupancy as a GPU does? Four kernels
(`tools/bench/timing_shape/kernels.cu`), each in a grid of 48 CTAs an SM, with 1 to 16 CTAs of 128 threads
resident on an SM: dynamic shared memory keeps the others out. Simulated: {simulated}, {simulated_samples}
sample(s) a row (it repeats itself exactly); real: {real} with {real_sms} SMs, {real_samples} samples a row,
the first launch not counted. [command.txt](command.txt) has the lines, [machine.json](machine.json) the
machine.

Spearman's rank correlation of the medians, as measured, and with times less than 2 % apart counted as
equal: where a kernel is saturated the order is noise on a GPU and exact on the simulator. Spread: the
largest (maximum - minimum) / median of a GPU's row.

| kernel | as measured | 2 % equal | spread | 16 CTAs against 1, simulated / GPU |
|---|---|---|---|---|
{rows}

{pictures}

What could be wrong: the simulator has no caches and the GPU's array is larger than its L2, but neighbours
in a row share sectors; the clocks of the GPU; the numbers of CTAs that do not divide 48 leave a last wave
that is not full, on both.
"""


def write_folder(folder, paths, simulated, real, results, machine, command):
    folder.mkdir(parents=True, exist_ok=True)
    for source, name in zip(paths, ("simulated.jsonl", "gpu.jsonl")):
        if pathlib.Path(source).resolve() != (folder / name).resolve():
            shutil.copyfile(source, folder / name)
    rows = []
    for kernel, raw, equal, a, b in results:
        curves = {"simulated": a, "GPU": b}
        (folder / f"{kernel}.svg").write_text(picture(kernel, raw, equal, curves,
                                                      f"{simulated.device}; {real.device}"))
        rows.append(f"| {kernel} | {raw:.3f} | {equal:.3f} | {100 * real.spread[kernel]:.1f} % | "
                    f"{a[max(a)] / a[1]:.3f} / {b[max(b)] / b[1]:.3f} |")
    (folder / "README.md").write_text(README.format(
        simulated=simulated.device, simulated_samples=simulated.samples, real=real.device,
        real_sms=real.multiprocessors,
        real_samples=real.samples, rows="\n".join(rows),
        pictures="\n".join(f"![{kernel}]({kernel}.svg)" for kernel, *_ in results)))
    known = {"gpu": real.device, "sms": real.multiprocessors}
    if machine:
        known.update(json.loads(pathlib.Path(machine).read_text()))
    (folder / "machine.json").write_text(json.dumps(known) + "\n")
    commit = subprocess.run(["git", "rev-parse", "--short",
                             "HEAD"], capture_output=True, text=True).stdout.strip()
    lines = pathlib.Path(command).read_text() if command else ""
    (folder / "command.txt").write_text(
        f"{lines}{' '.join(['tools/bench/timing_shape/timing_shape.py', *sys.argv[1:]])}    commit "
        f"{commit}\n")


def main():
    if not 3 <= len(sys.argv) <= 6:
        sys.exit(__doc__)
    simulated, real = Run(sys.argv[1]), Run(sys.argv[2])
    print(f"{'kernel':<12} {'as measured':>12} {'2 % equal':>12}   times relative to one CTA per SM, "
          "simulated / GPU")
    results = list(compare(simulated, real))
    for kernel, raw, equal, a, b in results:
        pairs = " ".join(f"{n}:{a[n] / a[1]:.2f}/{b[n] / b[1]:.2f}" for n in a)
        print(f"{kernel:<12} {raw:>12.3f} {equal:>12.3f}   {pairs}")
    if len(sys.argv) > 3:
        machine, command = (sys.argv[4:] + [None, None])[:2]
        write_folder(pathlib.Path(sys.argv[3]), sys.argv[1:3], simulated, real, results, machine, command)


if __name__ == "__main__":
    main()
