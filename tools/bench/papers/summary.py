"""What rows of papers.py come to: over the workloads of a group, medians of their runs. Tables, and what
claims are made of."""
import statistics

import workloads

METRICS = ("makespan_stp", "eyerman_stp", "antt")
LATE_S = 0.02   # of about half a second that a program computes
HIGH = {"+".join(pair) for pair in workloads.HIGH_ISU}
URGENT = {f"{small} behind {large}" for small, large in workloads.URGENT}
EQUAL = {f"{small} behind {large}" for small, large in workloads.EQUAL}


def groups_of(row):
    """One run of a pair under MPS counts where the small one has a priority, and where it has none."""
    part, name, mode = row["part"], row["workload"], row["mode"]
    if part == "pairs":
        return ["pairs of high utilisation" if name in HIGH else "fifteen pairs"]
    if part == "behind":
        return [group for group, names, own in (("small ones first", URGENT, "hpf"),
                                                ("small ones as equals", EQUAL, "hpf="))
                if name in names and mode in (own, "mps", "time-sliced")]
    return [f"{part} {name}" if part in ("mixes", "compact") else part]


def by_group(lines):
    """{group: {mode: {workload: rows}}}; rows without a figure, because a program failed or not all were at
    work long enough, are left out, and those in which a program came late to the others."""
    found = {}
    for row in lines:
        if row.get("workload") and row["figures"].get("antt") and row.get("late_s", 0) <= LATE_S:
            for group in groups_of(row):
                of_mode = found.setdefault(group, {}).setdefault(row["mode"], {})
                of_mode.setdefault(row["workload"], []).append(row)
    return found


def medians(of_mode, figure):
    """{workload: the median of its runs}"""
    return {name: statistics.median(figure(row["figures"]) for row in rows) for name, rows in of_mode.items()}


def mean_of(metric, values):
    """Over workloads: of throughputs the geometric mean, of times the arithmetic one."""
    if metric.endswith("stp"):
        return statistics.geometric_mean(max(1e-9, each) for each in values)
    return statistics.fmean(values)


def small_slower(figures):
    """What a small launch takes, in units of what it takes alone: the mean over the small programs."""
    return statistics.fmean(figures["slower"]["small"])


def ratios(modes, policy, baseline, figure):
    """{workload: the baseline's figure over the policy's}, of workloads that both have."""
    mine, other = medians(modes.get(policy, {}), figure), medians(modes.get(baseline, {}), figure)
    return {name: other[name] / mine[name] for name in mine if name in other}


def print_tables(lines):
    groups = by_group(lines)
    print(f"{'group':<44} {'mode':<12} {'makespan STP':>12} {'Eyerman STP':>11} {'ANTT':>7} {'workloads':>9} "
          f"{'runs':>5}")
    for group, modes in groups.items():
        for mode, of_mode in modes.items():
            each = [mean_of(metric, medians(of_mode, lambda found, m=metric: found[m]).values())
                    for metric in METRICS]
            print(f"{group:<44} {mode:<12} {each[0]:>12.3f} {each[1]:>11.3f} {each[2]:>7.2f} "
                  f"{len(of_mode):>9} {sum(map(len, of_mode.values())):>5}")
    for group, policy in (("small ones first", "hpf"), ("small ones as equals", "hpf="), ("triples", "hpf=")):
        for what, figure in (("turnaround of small launches", small_slower), ("ANTT", lambda f: f["antt"])):
            found = ratios(groups.get(group, {}), policy, "mps", figure)
            if found:
                print(f"{group}: {what} under MPS, to under {policy}: mean "
                      f"{statistics.fmean(found.values()):.2f}, {min(found.values()):.2f} to "
                      f"{max(found.values()):.2f}, {len(found)} workloads")
    late = [row["late_s"] for row in lines if row.get("late_s", 0) > LATE_S]
    if late:
        print(f"{len(late)} runs in which a program was set up late, by {max(late):.2f} s at most")
