#!/usr/bin/env python3
"""Puts what models.py measured beside what `smt profile` predicted: tables, mean errors, and Kernelet's
figures 7, 8 and 12 drawn anew.

    models_figures.py MODELS.jsonl PAIRS.json PROFILES.json FOLDER

PAIRS.json is what `smt profile pairs --json` says of the store, PROFILES.json what `smt profile show --json`
does. FOLDER gets three pictures.
"""
import json
import pathlib
import statistics
import sys

# The kernel that an iteration of the program is, and its block.
KERNELS = {"pointer_chase": ("chase", [256, 1, 1]), "sad": ("compare", [32, 1, 1]),
           "spmv": ("multiply", [256, 1, 1]), "stencil3d": ("update", [32, 4, 1]),
           "matrix_multiply": ("multiply", [16, 16, 1]), "mri_q": ("compute_q", [256, 1, 1]),
           "black_scholes": ("price", [128, 1, 1]),
           "tea": ("encrypt", [128, 1, 1])}
FORMS = {"paper": ("#c0392b", "R_m alone, as in the paper"),
         "told": ("#2c3e50", "told of waits, of pairs also of times with fewer CTAs")}
SIDE, MARGIN = 360, 56


def scatter(path, title, axis, points, band, limits):
    """points: {form: [(measured, predicted, label)]}"""
    low, high = limits
    place = lambda value: MARGIN + (min(max(value, low), high) - low) / (high - low) * SIDE
    size = SIDE + 2 * MARGIN
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{size}" height="{size + 24}" '
           'font-family="sans-serif" font-size="12">',
           f'<rect width="{size}" height="{size + 24}" fill="white"/><text x="{size / 2}" y="20" '
           f'text-anchor="middle" font-size="14">{title}</text>',
           f'<rect x="{MARGIN}" y="{MARGIN}" width="{SIDE}" height="{SIDE}" fill="none" stroke="black"/>']
    for shift, dash in ((0, ""), (band, "4 3"), (-band, "4 3")):
        begin, end = (max(low, low - shift), min(high, high - shift))
        out.append(f'<line x1="{place(begin)}" y1="{size - place(begin + shift)}" x2="{place(end)}" '
                   f'y2="{size - place(end + shift)}" stroke="grey" stroke-dasharray="{dash}"/>')
    for i in range(5):
        value = low + (high - low) * i / 4
        out.append(f'<text x="{place(value)}" y="{MARGIN + SIDE + 16}" '
                   f'text-anchor="middle">{value:.2g}</text>'
                   f'<text x="{MARGIN - 6}" y="{size - place(value) + 4}" '
                   f'text-anchor="end">{value:.2g}</text>')
    for form, those in points.items():
        for measured, predicted, label in those:
            out.append(f'<circle cx="{place(measured):.1f}" cy="{size - place(predicted):.1f}" r="3.5" '
                       f'fill="{FORMS[form][0]}" fill-opacity="0.75"><title>{label}: '
                       f'measured {measured:.3f}, predicted {predicted:.3f}</title></circle>')
    out.append(f'<text x="{size / 2}" y="{size - 18}" text-anchor="middle">{axis}, measured</text>'
               f'<text x="14" y="{size / 2}" text-anchor="middle" transform="rotate(-90 14 '
               f'{size / 2})">{axis}, predicted</text>')
    for i, form in enumerate(points):
        colour, text = FORMS[form]
        out.append(f'<circle cx="{16 + i * 165}" cy="{size + 6}" r="4" fill="{colour}"/><text '
                   f'x="{24 + i * 165}" y="{size + 10}">{text}</text>')
    path.write_text("\n".join([*out, "</svg>"]) + "\n")


def ranks(values):
    order = sorted(range(len(values)), key=lambda i: values[i])
    return [order.index(i) for i in range(len(values))]


def choices(points):
    """What a policy goes by: are profits in the right order, and how far below the best partner's is that of
    the one that would be chosen?"""
    for form, those in points.items():
        if len(those) < 3:
            continue
        names = sorted({name for _, _, label in those for name in label.split(" + ")})
        below = []
        for name in names:
            mine = [(measured, predicted) for measured, predicted, label in those
                    if name in label.split(" + ")]
            below.append(max(mine)[0] - max(mine, key=lambda each: each[1])[0])
        rank = statistics.correlation(ranks([each[0] for each in those]), ranks([each[1] for each in those]))
        print(f"profits in their order, {FORMS[form][1]}: rank correlation {rank:.2f}; the partner chosen "
              f"for each program gains {statistics.mean(below):.3f} "
              f"less than the best, {max(below):.3f} at worst")


def told(what, errors, measured):
    """Beside what a guess is off that knows nothing of kernels: the mean of all that were measured."""
    if measured:
        mean = statistics.mean(measured)
        guess = [abs(each - mean) for each in measured]
        print(f"{what}, by the mean of all, {mean:.3f}: mean absolute error {statistics.mean(guess):.3f}, "
              f"worst {max(guess):.3f}, of {len(guess)}")
    for form, those in ((form, those) for form, those in errors.items() if those):
        print(f"{what}, {FORMS[form][1]}: mean absolute error {statistics.mean(those):.3f}, median "
              f"{statistics.median(those):.3f}, worst {max(those):.3f}, of {len(those)}")


def main():
    lines = [json.loads(line) for line in pathlib.Path(sys.argv[1]).read_text().splitlines()]
    pairs = json.loads(pathlib.Path(sys.argv[2]).read_text())
    profiles = json.loads(pathlib.Path(sys.argv[3]).read_text())
    folder = pathlib.Path(sys.argv[4])
    named = {(kernel, tuple(block)): name for name, (kernel, block) in KERNELS.items()}
    program = lambda row: named.get((row["kernel"], tuple(row["block"])))
    counted = {program(row): row for row in profiles if program(row) and "ipc" in row}

    print(f"{'program':<16} {'IPC':>6} {'paper':>6} {'told':>6}   half of the CTAs: rate measured, "
          "paper, told")
    by_pair = {frozenset((program(p["first"]), program(p["second"]))): p for p in pairs
               if program(p["first"]) and program(p["second"])}
    half_rate = {row["program"]: row["rate"] for row in lines
                 if row["part"] == "alone" and row["kind"] == "half"}
    whole_rate = {row["program"]: row["rate"] for row in lines
                  if row["part"] == "alone" and row["kind"] == "all"}
    figure7, errors7 = {form: [] for form in FORMS}, {form: [] for form in FORMS}
    for name, row in sorted(counted.items()):
        print(f"{name:<16} {row['ipc']:>6.2f} {row['predicted_ipc']:>6.2f} "
              f"{row['told_ipc']:>6.2f}   {half_rate[name] / whole_rate[name]:.3f}" if name in half_rate
              else name)
        for form, field in (("paper", "predicted_ipc"), ("told", "told_ipc")):
            figure7[form].append((row["ipc"], row[field], name))
            errors7[form].append(abs(row[field] - row["ipc"]))
    told("IPC of one kernel, of 4", errors7, [measured for measured, _, _ in figure7["paper"]])
    scatter(folder / "figure7.svg", "One kernel (Kernelet's figure 7)", "instructions a cycle of an SM",
            figure7, 0.8, (0, 4))

    figure8, errors8 = ({form: [] for form in FORMS} for _ in range(2))
    figure12, errors12 = ({form: [] for form in FORMS} for _ in range(2))
    measured_pairs = {}
    for row in (row for row in lines if row["part"] == "pair" and row["profit"] is not None):
        measured_pairs.setdefault(frozenset(row["pair"]), []).append(row)
    print(f"\n{'pair':<34} {'of alone':>13} {'profit':>7} {'paper':>7} {'told':>7}")
    for pair, rows in measured_pairs.items():
        names = rows[0]["pair"]
        found = by_pair.get(pair)
        if not found or "told" not in found:
            print(f"{' + '.join(names)}: nothing was predicted")
            continue
        of_alone = [statistics.mean(row["of_alone"][i] for row in rows) for i in range(2)]
        profit = statistics.mean(row["profit"] for row in rows)
        ipc = sum(share * counted[name]["ipc"] for share, name in zip(of_alone, names))
        print(f"{' + '.join(names):<34} {of_alone[0]:>6.3f} {of_alone[1]:>6.3f} {profit:>7.3f} "
              f"{found['paper']['profit']:>7.3f} {found['told']['profit']:>7.3f}")
        for form in FORMS:
            figure8[form].append((ipc, sum(found[form]["together"]), " + ".join(names)))
            errors8[form].append(abs(sum(found[form]["together"]) - ipc))
            figure12[form].append((profit, found[form]["profit"], " + ".join(names)))
            errors12[form].append(abs(found[form]["profit"] - profit))
    if not figure8["paper"]:
        return
    told("IPC of a pair, of 4", errors8, [measured for measured, _, _ in figure8["paper"]])
    told("profit", errors12, [measured for measured, _, _ in figure12["paper"]])
    zero = [abs(measured) for measured, _, _ in figure12["paper"]]
    small = [abs(measured) for measured, _, label in figure12["paper"] if "mri_q" not in label]
    print(f"profit, if none were predicted: mean absolute error {statistics.mean(zero):.3f}, without mri_q "
          f"{statistics.mean(small):.3f}")
    for form, those in ((form, those) for form, those in figure12.items() if those):
        without = [abs(measured - predicted) for measured, predicted, label in those if "mri_q" not in label]
        print(f"profit, {FORMS[form][1]}, without mri_q: mean absolute error {statistics.mean(without):.3f} "
              f"of {len(without)}")
        # what slice asks for
        right = sum((measured > 0.05) == (predicted > 0.05) for measured, predicted, _ in those)
        print(f"worth it or not (0.05), {FORMS[form][1]}: right for {right} of {len(those)}")
    choices(figure12)
    scatter(folder / "figure8.svg", "Two kernels (Kernelet's figure 8)", "instructions a cycle of an SM",
            figure8, 0.8, (0, 4))
    scatter(folder / "figure12.svg", "Co-scheduling profit (Kernelet's figure 12)", "profit",
            figure12, 0.1, (-0.4, 0.8))


if __name__ == "__main__":
    main()
