"""smt for programs in Python: many CUDA programs share one GPU, unmodified.

    python -m smt run train.py               # as smt run -- python train.py

A program that runs so can say what it is, before its first CUDA call:

    import smt
    smt.tenant("chat", priority="high")
"""

import os

__all__ = ["tenant"]


def tenant(name=None, *, priority=None, weight=None, p99=None, slowdown=None, sms=None, memory=None,
           memory_wait=None, kernel_limit=None, isolation=None):
    """Sets the environment of this process, and of those that it starts from now on, as smt run does.

    What is None stays as it is. Values are those of docs/settings.md: priority="high", memory="4G",
    p99="8ms". libsmt.so reads them at the first CUDA call; a wrong one is refused there.
    """
    given = {"SMT_TENANT": name, "SMT_PRIORITY": priority, "SMT_WEIGHT": weight, "SMT_P99": p99,
             "SMT_SLOWDOWN": slowdown, "SMT_SMS": sms, "SMT_MEMORY_LIMIT": memory,
             "SMT_MEMORY_WAIT": memory_wait, "SMT_KERNEL_LIMIT": kernel_limit, "SMT_ISOLATION": isolation}
    os.environ.update((variable, str(value)) for variable, value in given.items() if value is not None)
