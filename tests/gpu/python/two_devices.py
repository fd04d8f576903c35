"""One process with two GPUs: copies from one to the other, and NCCL over both.

    two_devices.py

Prints one JSON line: whether the results are right, and GB/s of large copies (torch enables peer access) and
of NCCL's all-reduce (bus bandwidth).
"""
import json
import time

import torch
from torch.cuda import nccl

LARGE_BYTES, ROUNDS = 256 << 20, 20


def synchronize():
    for device in (0, 1):
        torch.cuda.synchronize(device)


def rate(work):
    """Bytes of LARGE_BYTES a second."""
    for _ in range(3):
        work()
    synchronize()
    begin = time.monotonic()
    for _ in range(ROUNDS):
        work()
    synchronize()
    return LARGE_BYTES * ROUNDS / (time.monotonic() - begin) / 1e9


def copies():
    from_zero = torch.arange(LARGE_BYTES // 4, device="cuda:0", dtype=torch.int32)
    on_one = torch.zeros_like(from_zero, device="cuda:1")
    on_one.copy_(from_zero)
    back = on_one.to("cuda:0")
    strided = from_zero[::3].to("cuda:1")   # a kernel that reaches the other GPU, where it may
    right = bool(torch.equal(back, from_zero)) and bool(torch.equal(strided.cpu(), from_zero.cpu()[::3]))
    return right, rate(lambda: on_one.copy_(from_zero, non_blocking=True))


def all_reduce():
    each = [torch.arange(LARGE_BYTES // 4, device=f"cuda:{i}", dtype=torch.float32) % 1024 + i
            for i in (0, 1)]
    wanted = 2 * (torch.arange(LARGE_BYTES // 4, dtype=torch.float32) % 1024) + 1
    sums = [torch.empty_like(part) for part in each]
    nccl.all_reduce(each, sums)
    synchronize()
    right = all(bool(torch.equal(part.cpu(), wanted)) for part in sums)
    return right, rate(lambda: nccl.all_reduce(each, sums))


def main():
    row = {"reaches": torch.cuda.can_device_access_peer(0, 1), "nccl": list(nccl.version())}
    row["copies"], copied = copies()
    row["copy_gb_per_s"] = round(copied, 1)
    row["sums"], reduced = all_reduce()
    row["gb_per_s"] = round(reduced, 1)   # of two ranks: 2 (n - 1) / n = 1
    print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
