"""A rank of several, one for each GPU: RANK, WORLD_SIZE and LOCAL_RANK are torchrun's.

    rank.py DEVICE     DEVICE: the device of this rank, as it sees devices

Prints one JSON line: the UUID of its GPU, what an all-reduce of small tensors and a training of a few steps
came to, and the bus bandwidth of a large all-reduce in GB/s. With WORLD_SIZE=1 no library of NCCL is used.
"""
import json
import os
import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional

SMALL, LARGE_BYTES, ROUNDS, STEPS = 1 << 16, 256 << 20, 20, 10


def train(device, rank, world):
    """Each rank has its part of one batch, so the model is the same whatever the number of ranks."""
    torch.manual_seed(7)
    model = nn.Sequential(nn.Linear(64, 128), nn.Tanh(), nn.Linear(128, 8)).to(device)
    inputs, targets = torch.randn(128, 64), torch.randn(128, 8)
    part = slice(rank * 128 // world, (rank + 1) * 128 // world)
    inputs, targets = inputs[part].to(device), targets[part].to(device)
    trained = nn.parallel.DistributedDataParallel(model, device_ids=[device]) if world > 1 else model
    optimizer = torch.optim.SGD(trained.parameters(), lr=0.05)
    for _ in range(STEPS):
        optimizer.zero_grad(set_to_none=True)
        functional.mse_loss(trained(inputs), targets).backward()
        optimizer.step()
    return sum(float(parameter.detach().double().abs().sum()) for parameter in model.parameters())


def bandwidth(device, world):
    values = torch.ones(LARGE_BYTES // 4, device=device)
    for _ in range(3):
        dist.all_reduce(values)
    torch.cuda.synchronize(device)
    begin = time.monotonic()
    for _ in range(ROUNDS):
        dist.all_reduce(values)
    torch.cuda.synchronize(device)
    seconds = (time.monotonic() - begin) / ROUNDS
    return 2 * (world - 1) / world * LARGE_BYTES / seconds / 1e9


def main():
    device = int(sys.argv[1])
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.cuda.set_device(device)
    row = {"rank": rank, "uuid": str(torch.cuda.get_device_properties(device).uuid)}
    if world > 1:
        dist.init_process_group("nccl", device_id=torch.device("cuda", device))
        values = torch.arange(SMALL, device=device, dtype=torch.float32) + rank
        dist.all_reduce(values)
        wanted = world * torch.arange(SMALL, device=device, dtype=torch.float32) + sum(range(world))
        row["sums"] = bool(torch.equal(values, wanted))
    row["trained"] = round(train(device, rank, world), 3)
    if world > 1:
        row["gb_per_s"] = round(bandwidth(device, world), 1)
        dist.barrier()
        dist.destroy_process_group()
    print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
