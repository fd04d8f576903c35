"""Which part of a program's GPU time is in launches that can be stopped, out of `smt log --kernels --json` of
a server with SMT_JOURNAL=gpu_time."""

KERNELS = 5   # that are named
NAME = 100    # characters of a kernel's name


def share_of(rows):
    """Of the rows of one tenant; None where no GPU time is known. Parts of all of it:

      within     in launches that can be stopped between two blocks
      one_wave   in such launches whose blocks all run at once: a stop takes no effect before their end
      not_at_all in launches that cannot be stopped; `reasons` has the parts of that
    """
    rows = [row for row in rows if row.get("gpu_ns")]
    total = sum(row["gpu_ns"] for row in rows)
    if not total:
        return None
    stoppable = [row for row in rows if row["stoppable"]]
    one_wave = sum(row["gpu_ns_one_wave"] for row in stoppable)
    reasons = {}
    for row in rows:
        if not row["stoppable"]:
            why = row["reason"] or row["how"]
            reasons[why] = reasons.get(why, 0) + row["gpu_ns"]
    part = lambda ns: round(ns / total, 4)
    longest = sorted(rows, key=lambda row: -row["gpu_ns"])[:KERNELS]
    return {"gpu_ms": round(total / 1e6, 3),
            "within": part(sum(row["gpu_ns"] for row in stoppable) - one_wave), "one_wave": part(one_wave),
            "not_at_all": part(sum(reasons.values())),
            "reasons": {why: part(ns) for why, ns in sorted(reasons.items(), key=lambda item: -item[1])},
            "longest": [{"kernel": row["kernel"][:NAME], "how": row["how"], "part": part(row["gpu_ns"]),
                         "one_wave": part(row["gpu_ns_one_wave"])} for row in longest]}
