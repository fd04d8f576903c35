"""Processes that share device memory and events: torch.multiprocessing, whose children are new processes.
Each waits for the others by a queue or a barrier, so what it prints is the same in every run."""
import os
import re
import tempfile

import program as p
from program import program, show

p.environment({
    "expandable_segments": {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"},
    "two_ranks": {"NCCL_SOCKET_IFNAME": "lo"},
})
import torch
import torch.multiprocessing as mp

DEVICE = "cuda"
PATIENCE = 200   # seconds


def start(context, function, *arguments):
    child = context.Process(target=function, args=arguments)
    child.start()
    return child


def finish(*children):
    for child in children:
        child.join(PATIENCE)
        assert child.exitcode == 0, f"a child ended with {child.exitcode}"


def add(queue, done, step):
    tensor = queue.get(timeout=PATIENCE)
    tensor += step
    torch.cuda.synchronize()
    done.put(float(tensor.double().sum()))
    del tensor   # before its owner goes on
    done.put("released")


@program
def both_ways():
    """A child writes into its parent's tensor."""
    context = mp.get_context("spawn")
    queue, done = context.Queue(), context.Queue()
    tensor = torch.arange(1 << 20, device=DEVICE, dtype=torch.float32)
    child = start(context, add, queue, done, 3)
    queue.put(tensor)
    show("child", done.get(timeout=PATIENCE), done.get(timeout=PATIENCE))
    show("parent", float(tensor.double().sum()))
    finish(child)


@program
def several_children():
    """One tensor in three processes, one after the other."""
    context = mp.get_context("spawn")
    done = context.Queue()
    tensor = torch.zeros(1000, device=DEVICE)
    for step in range(3):
        queue = context.Queue()
        child = start(context, add, queue, done, step + 1)
        queue.put(tensor)
        show("child", step, done.get(timeout=PATIENCE), done.get(timeout=PATIENCE))
        finish(child)
    show("parent", float(tensor.sum()))


def views(queue, done):
    parts = [queue.get(timeout=PATIENCE) for _ in range(4)]
    for index, part in enumerate(parts):
        part.mul_(index + 1)
    torch.cuda.synchronize()
    done.put([float(part.sum()) for part in parts])
    del parts, part
    done.put("released")


@program
def small_and_views():
    """Small tensors of one segment, and views of one."""
    context = mp.get_context("spawn")
    queue, done = context.Queue(), context.Queue()
    whole = torch.ones(64, 64, device=DEVICE)
    parts = [whole[:8], whole[16:24, ::2], torch.ones(3, device=DEVICE), torch.ones(5, device=DEVICE)]
    child = start(context, views, queue, done)
    for part in parts:
        queue.put(part)
    show("child", done.get(timeout=PATIENCE), done.get(timeout=PATIENCE))
    show("parent", *(float(part.sum()) for part in parts), float(whole.sum()))
    finish(child)


def produce(queue, taken):
    for number in range(5):
        queue.put(torch.full((50_000,), float(number), device=DEVICE))
        assert taken.get(timeout=PATIENCE) == number


def consume(queue, taken, done):
    for number in range(5):
        tensor = queue.get(timeout=PATIENCE)
        done.put(float(tensor.sum()))
        del tensor
        taken.put(number)


@program
def between_children():
    """The parent uses no GPU: two children share, and it does not."""
    context = mp.get_context("spawn")
    queue, taken, done = context.Queue(), context.Queue(), context.Queue()
    children = [start(context, produce, queue, taken), start(context, consume, queue, taken, done)]
    show("sums", *(done.get(timeout=PATIENCE) for _ in range(5)))
    finish(*children)
    show("the parent has a context", torch.cuda.is_initialized())


def wait_for_event(queue, done):
    tensor, handle = queue.get(timeout=PATIENCE)
    event = torch.cuda.Event.from_ipc_handle(torch.device(DEVICE, 0), handle)
    event.wait()
    total = tensor.double().sum()
    done.put(float(total))
    del tensor, event
    done.put("released")


@program
def event_orders():
    """A child waits on its stream for work that its parent has enqueued and not waited for."""
    context = mp.get_context("spawn")
    queue, done = context.Queue(), context.Queue()
    tensor = torch.zeros(1 << 22, device=DEVICE)
    other = torch.ones(4096, 4096, device=DEVICE)
    event = torch.cuda.Event(interprocess=True)
    child = start(context, wait_for_event, queue, done)
    torch.cuda.synchronize()
    for _ in range(50):
        other = other @ other.clamp(max=1) / 4096
    tensor += other[0, 0] * 2
    event.record()
    queue.put((tensor, event.ipc_handle()))
    show("child", done.get(timeout=PATIENCE), done.get(timeout=PATIENCE))
    show("parent", float(tensor.double().sum()))
    finish(child)


@program
def expandable_segments():
    """Descriptors of cuMemCreate's memory in the place of cuIpc handles."""
    assert os.environ["PYTORCH_CUDA_ALLOC_CONF"] == "expandable_segments:True"
    both_ways()


def rank_of_two(rank, file, done):
    import torch.distributed as dist
    torch.cuda.set_device(0)
    values = torch.full((1 << 16,), float(rank + 1), device=DEVICE)
    try:
        dist.init_process_group("nccl", init_method=f"file://{file}", rank=rank, world_size=2)
        dist.all_reduce(values)
        done.put((rank, "sum", float(values.sum())))
        dist.destroy_process_group()
    except dist.DistBackendError as error:
        said = re.search(r"Duplicate GPU|invalid usage|unhandled \w+ error|internal error", str(error))
        done.put((rank, "refused", said[0] if said else str(error)))
    done.close()
    done.join_thread()
    os._exit(0)   # a communicator that is half made has threads that wait


@program
def two_ranks():
    """Two of NCCL's ranks on one GPU, where NCCL permits that; its refusal where it does not."""
    context = mp.get_context("spawn")
    done = context.Queue()
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "store")
        children = [start(context, rank_of_two, rank, file, done) for rank in range(2)]
        for answer in sorted(done.get(timeout=PATIENCE) for _ in children):
            show("rank", *answer)
        finish(*children)


if __name__ == "__main__":
    p.main()
