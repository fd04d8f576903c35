#!/usr/bin/env python3
"""Draws which tenant ran on which SM when, from what `smt trace` wrote: trace_svg.py TRACE.json [FROM_MS
TO_MS] > PICTURE.svg

A row for each multiprocessor, a colour for each tenant, a mark above for each decision. Several tenants on
one multiprocessor at a time share its row.
"""
import json
import sys
from xml.sax.saxutils import escape

LEFT, TOP, WIDTH, ROW_MOST, HEIGHT = 46, 46, 900, 14, 330
COLOURS = ["#3b7dd8", "#e08a2c", "#3f9b57", "#a45bb8", "#c9504b", "#5f6b76", "#9a8f2f", "#2f9a97"]


def read(path):
    with open(path) as file:
        events = json.load(file)["traceEvents"]
    names = {(event["pid"], event.get("tid")): event["args"]["name"] for event in events
             if event["ph"] == "M" and event["name"] == "thread_name"}
    spans = [(event["ts"] / 1e3, event["dur"] / 1e3, int(names[event["pid"], event["tid"]].split()[1]),
              event["args"]["tenant"])
             for event in events if event["ph"] == "X" and
             names.get((event["pid"], event["tid"]), "").startswith("SM ")]
    decisions = [(event["ts"] / 1e3, event["args"].get("tenant", ""), event["name"]) for event in events
                 if event["ph"] == "i" and
                 names.get((event["pid"], event["tid"]), "").startswith("decisions")]
    return spans, decisions


def draw(spans, decisions, begin, end):
    tenants = sorted({tenant for _, _, _, tenant in spans})
    rows = max(sm for _, _, sm, _ in spans) + 1
    row = min(ROW_MOST, HEIGHT / rows)
    height = TOP + row * rows + 34
    at = lambda ms: LEFT + (min(max(ms, begin), end) - begin) / (end - begin) * WIDTH
    print(f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + 14}" height="{height:.0f}" '
          'font-family="sans-serif" font-size="12">')
    print(f'<rect width="100%" height="100%" fill="white"/>')
    for index, tenant in enumerate(tenants):
        print(f'<rect x="{LEFT + 150 * index}" y="8" width="12" height="12" '
              f'fill="{COLOURS[index % len(COLOURS)]}"/>'
              f'<text x="{LEFT + 150 * index + 17}" y="18">{escape(tenant)}</text>')
    for ms, tenant, text in decisions:
        if begin <= ms <= end:
            colour = COLOURS[tenants.index(tenant) % len(COLOURS)] if tenant in tenants else "black"
            print(f'<path d="M{at(ms):.1f} 28v12" stroke="{colour}" '
                  f'stroke-width="2"><title>{escape(f"{ms:.3f} ms, {tenant}: {text}")}</title></path>')
    each = row / len(tenants)
    for ms, lasts, sm, tenant in spans:
        if ms + lasts < begin or ms > end:
            continue
        index = tenants.index(tenant)
        alone = not any(s == sm and t != tenant and a < ms + lasts and a + d > ms for a, d, s, t in spans)
        y, tall = (TOP + row * sm, row) if alone else (TOP + row * sm + each * index, each)
        print(f'<rect x="{at(ms):.1f}" y="{y:.1f}" width="{max(0.4, at(ms + lasts) - at(ms) - 0.3):.1f}" '
              f'height="{tall * 0.9:.1f}" '
              f'fill="{COLOURS[index % len(COLOURS)]}"/>')
    for sm in range(0, rows, max(1, rows // 8)):
        print(f'<text x="4" y="{TOP + row * sm + row * 0.8:.0f}">SM {sm}</text>')
    for part in range(6):
        ms = begin + (end - begin) * part / 5
        print(f'<text x="{at(ms):.0f}" y="{height - 12:.0f}" text-anchor="middle">{ms:.3g} ms</text>')
    print("</svg>")


def main():
    if len(sys.argv) not in (2, 4):
        sys.exit(__doc__)
    try:
        window = [float(each) for each in sys.argv[2:]]
    except ValueError:
        sys.exit(f"trace_svg.py: FROM_MS and TO_MS are numbers, not {' '.join(sys.argv[2:])}")
    if window and not window[0] < window[1]:
        sys.exit(f"trace_svg.py: nothing is between {window[0]:g} and {window[1]:g} ms")
    try:
        spans, decisions = read(sys.argv[1])
    except OSError as problem:
        sys.exit(f"trace_svg.py: {sys.argv[1]}: {problem.strerror}")
    except (ValueError, KeyError, TypeError):
        sys.exit(f"trace_svg.py: {sys.argv[1]} is not what `smt trace -o` writes")
    if not spans:
        sys.exit("no kernel has a place in it: was the server started with SMT_JOURNAL=mapping?")
    first, last = min(span[0] for span in spans), max(span[0] + span[1] for span in spans)
    draw(spans, decisions, *(window or (first, last)))


if __name__ == "__main__":
    main()
