"""What stop_times.py says of stops: beyond a block of each kernel, and of groups of kernels."""
import sys
import pathlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "harness"))
from printed import quantile  # noqa: E402

QUANTILES = (0.1, 0.5, 0.9, 0.99)
PERSISTENT = "persistent"


def spread(values):
    return {f"p{int(100 * q)}": round(quantile(values, q), 2) for q in QUANTILES} if values else None


def beyond_of(stops, block_us):
    """Of each stop (an entry of the journal) what it took beyond a block, in us: a block of the longest
    ticket that it waited for, where the kernel's workers told that, else `block_us`; none where neither is
    known."""
    found = []
    for stop in stops:
        told = block_us
        if stop.get("ticket_blocks"):
            told = (stop["end_ns"] - stop["start_ns"]) / stop["ticket_blocks"] / 1e3
        if told is not None:
            found.append(stop["value"] / 1e3 - told)
    return found


def group_of(name, kernel, waves):
    """By whose kernel it is; persistent kernels are a group: their block is all of the launch."""
    if name.startswith(("own_", "stub_")):
        return "own"
    if waves is not None and waves <= 1:
        return PERSISTENT
    if name.startswith("triton_"):
        return "Triton"
    if "cudnn" in kernel or name.startswith("conv_"):
        return "cuDNN"
    return "cuBLAS" if name.startswith(("gemm_", "lt_")) else "other"


def weighted(values_of_kernels, q):
    """Each kernel counts the same, however often it was stopped."""
    pairs = sorted((value, 1 / len(values)) for values in values_of_kernels if values for value in values)
    total, want = 0, q * sum(weight for _, weight in pairs)
    for value, weight in pairs:
        total += weight
        if total >= want - 1e-9:
            return value
    return float("nan")


def groups_of(rows):
    """Rows of kernels, each with `beyond` (of every stop, us), by group and kind of stop."""
    found = {}
    for row in rows:
        if row.get("beyond"):
            found.setdefault((row["group"], row["by"]), []).append(row)
    groups = []
    for (group, by), members in sorted(found.items()):
        beyond = [row["beyond"] for row in members]
        worst = max(members, key=lambda row: row["beyond_us"]["p99"])
        groups.append({
            "group": group, "by": by, "kernels": sorted({row["name"] for row in members}),
            "stops": sum(map(len, beyond)), "block_by": sorted({row["block_by"] for row in members}),
            "beyond_us": {f"p{int(100 * q)}": round(weighted(beyond, q), 2) for q in QUANTILES},
            "p50_of": {row["name"]: row["beyond_us"]["p50"] for row in members},
            "p99_of": {row["name"]: row["beyond_us"]["p99"] for row in members},
            "worst": worst["name"]})
    return groups
