#!/usr/bin/env python3
"""Compares what bench_timing_shape printed on the simulated device and on a GPU.

    timing_shape.py SIMULATED.jsonl GPU.jsonl [PICTURE.svg]

For each kernel: Spearman's rank correlation of the time against the blocks resident on a multiprocessor, as measured,
and with times that differ by less than 2 % counted as equal (where a kernel is saturated the order is noise on a GPU
and exact on the simulator). The picture shows both curves, each relative to its own time with one block.
"""

import json
import statistics
import sys

TOLERANCE = 0.02
WIDTH, HEIGHT, MARGIN = 420, 300, 52
COLOURS = {"simulated": "#c0392b", "GPU": "#2c3e50"}


def read(path):
    curves, device = {}, ""
    with open(path) as lines:
        for line in lines:
            row = json.loads(line)
            device = row["device"]
            curves.setdefault(row["kernel"], {})[row["ctas_per_sm"]] = statistics.median(row["us"])
    return curves, device


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
    parts = [f'<text x="{left + WIDTH / 2}" y="{top + 22}" text-anchor="middle" font-weight="bold">{kernel}</text>',
             f'<text x="{left + WIDTH / 2}" y="{top + 38}" text-anchor="middle" font-size="11">{note}</text>']
    for part in (0, 0.25, 0.5, 0.75, 1):
        parts.append(f'<line x1="{x(1)}" x2="{x(most)}" y1="{y(part)}" y2="{y(part)}" stroke="#ddd"/>'
                     f'<text x="{x(1) - 6}" y="{y(part) + 4}" text-anchor="end" font-size="10">{part:g}</text>')
    for blocks in range(1, most + 1):
        parts.append(f'<text x="{x(blocks)}" y="{y(0) + 14}" text-anchor="middle" font-size="9">{blocks}</text>')
    parts.append(f'<text x="{left + WIDTH / 2}" y="{y(0) + 30}" text-anchor="middle" font-size="11">CTAs per SM</text>')
    for i, (name, curve) in enumerate(curves.items()):
        base = curve[1]
        parts.append(line([(x(blocks), y(curve[blocks] / base)) for blocks in sorted(curve)], COLOURS[name]))
        parts.append(f'<text x="{x(most)}" y="{y(1) + 14 + 14 * i}" text-anchor="end" font-size="11" fill="{COLOURS[name]}">'
                     f'{name}</text>')
    return "".join(parts)


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    (simulated, simulated_device), (real, real_device) = read(sys.argv[1]), read(sys.argv[2])
    panels = []
    print(f"{'kernel':<12} {'as measured':>12} {'2 % equal':>12}   times relative to one CTA per SM, simulated / GPU")
    for i, kernel in enumerate(simulated):
        common = sorted(set(simulated[kernel]) & set(real.get(kernel, {})))
        if len(common) < 3:
            print(f"{kernel:<12} not measured on both")
            continue
        a, b = [simulated[kernel][n] for n in common], [real[kernel][n] for n in common]
        raw, equal = rank_correlation(a, b), rank_correlation(a, b, TOLERANCE)
        pairs = " ".join(f"{n}:{x / a[0]:.2f}/{y / b[0]:.2f}" for n, x, y in zip(common, a, b))
        print(f"{kernel:<12} {raw:>12.3f} {equal:>12.3f}   {pairs}")
        curves = {"simulated": simulated[kernel], "GPU": real[kernel]}
        panels.append(panel(WIDTH * (i % 2), 24 + HEIGHT * (i // 2), kernel, curves,
                            f"rank correlation {raw:.3f}; {equal:.3f} with 2 % counted as equal"))
    if len(sys.argv) == 4:
        height = 24 + HEIGHT * ((len(panels) + 1) // 2)
        with open(sys.argv[3], "w") as picture:
            picture.write(f'<svg xmlns="http://www.w3.org/2000/svg" width="{2 * WIDTH}" height="{height}" '
                          f'font-family="sans-serif" font-size="13"><rect width="100%" height="100%" fill="white"/>'
                          f'<text x="{WIDTH}" y="18" text-anchor="middle">Time against resident CTAs, relative to one: '
                          f'{simulated_device}; {real_device}</text>{"".join(panels)}</svg>\n')


if __name__ == "__main__":
    main()
