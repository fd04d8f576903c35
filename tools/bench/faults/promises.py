"""What goes wrong, what the neighbour does meanwhile, and what it is promised: docs/usage.md, docs/design.md.

An outcome of a neighbour is one of
    goes on   its bits are right, and no call failed
    not held  of the state held: its launch came before the urgent program's, and it ended
    ends      its calls return an error, and what it had computed until then is not wrong
and beside these: wrong (bits), hangs, fails (no answer), not begun. They are never promised.
"""

CONTEXT = ("load", "store", "misaligned", "trap", "assert", "stack", "shared", "instruction")
TAKEN_OVER = (*CONTEXT, "endless")     # another process of the server goes on
HARMLESS = ("kill_client", "kill_keeper", "memory")
KINDS = (*TAKEN_OVER, *HARMLESS, "kill_server")
STATES = ("idle", "asking", "held", "computing", "copying", "repeatable", "managed", "unmanaged", "graph",
          "waiting", "printing", "starting", "array", "strict", "beside_strict", "quarantine",
          "beside_quarantine")
GOES_ON = ("idle", "asking", "held")   # has nothing under way: it must go on
AGAIN = ("repeatable",)                # what is under way can be executed again: it must go on
ENDS = ("array", "graph")              # cannot be carried over: it must end
STRICT = ("strict", "beside_strict")   # the two have no context in common: it must go on
TURNS = ("quarantine", "beside_quarantine")   # the two are never under way together: it must go on

ADDRESS, FAILURE = "cudaErrorIllegalAddress", "cudaErrorLaunchFailure"
ERRORS = {"load": (ADDRESS,), "store": (ADDRESS,), "misaligned": ("cudaErrorMisalignedAddress",),
          "trap": (FAILURE, "cudaErrorIllegalInstruction"), "assert": ("cudaErrorAssert",),
          "stack": (ADDRESS, FAILURE, "cudaErrorHardwareStackError"),
          "shared": (ADDRESS, FAILURE, "cudaErrorInvalidAddressSpace", "cudaErrorIllegalInstruction"),
          "instruction": ("cudaErrorIllegalInstruction",),
          "endless": ("cudaErrorLaunchTimeout",), "memory": ("cudaErrorMemoryAllocation",),
          "kill_keeper": ("cudaSuccess",), "kill_server": ("cudaError", "cudaSuccess"), "kill_client": ("",)}


def promised_after_a_kill(state, keeper):
    """Of the shared server. A neighbour that is idle goes on in the standby, one that calls all the time does
    if it is between two calls and has made nothing since its state was written."""
    if state == "strict":
        return {"goes on"}
    if state == "starting" or (keeper == "takeover" and state not in ("idle", *ENDS)):
        return {"goes on", "ends"}
    return {"goes on"} if keeper == "takeover" and state == "idle" else {"ends"}


def promised(kind, state, keeper):
    """The outcomes that are right; `keeper`: the server's SMT_KEEPER."""
    if kind in HARMLESS:   # a wait in a stream ends if the next program's start has to wait for it
        return {"goes on", "ends"} if state == "waiting" else {"goes on"}
    if kind == "kill_server":
        return promised_after_a_kill(state, keeper)
    if state in STRICT or (state in TURNS and keeper == "takeover"):
        return {"goes on"}
    if state == "starting":
        return {"goes on", "ends"}
    if keeper != "takeover" or state in ENDS:
        return {"ends"}
    if state == "held":
        return {"goes on", "not held"}
    if state in GOES_ON or (state in AGAIN and kind in CONTEXT):
        return {"goes on"}
    return {"goes on", "ends"}


def table(rows, keeper):
    """A line for each cell of kind and state, with the promise and what was seen; broken ones are marked."""
    cells = {}
    for row in rows:
        cells.setdefault((row["kind"], row["state"]), []).append(row)
    lines = [f"{'kind':12} {'neighbour':14} {'promised':20} {'runs':>4} {'kept':>4}  seen"]
    for kind in dict.fromkeys(kind for kind, _ in cells):
        for state in dict.fromkeys(state for _, state in cells):
            if not (cell := cells.get((kind, state))):
                continue
            outcomes = [row["outcome"] for row in cell]
            seen = ", ".join(f"{outcomes.count(name)} {name}" for name in dict.fromkeys(outcomes))
            kept = sum(row["ok"] for row in cell)
            promise = " or ".join(sorted(promised(kind, state, keeper)))
            lines.append(f"{kind:12} {state:14} {promise:20} {len(cell):4} {kept:4}  {seen}"
                         + ("" if kept == len(cell) else "   BROKEN"))
    return "\n".join(lines)
