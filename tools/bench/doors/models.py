"""Models that keep a GPU busy, with the same bits in every run: models.py [--trials] [NAME...]

Each model runs a fixed number of steps. A JSON line of each: the median time of a step, and a hash of what
it computed. With --trials it does so again and again, from the same begin, with a line each time, until its
input ends. With --paced it waits for a line of input before it begins, with PyTorch loaded. Weights and data
are random, of a fixed seed; nothing is fetched. --device cpu tries all of it without a GPU, with tiny sizes
and one step; what needs a GPU is named as missing.
"""
import argparse
import hashlib
import json
import os
import pathlib
import select
import statistics
import sys
import time
import traceback

os.environ.update(XLA_PYTHON_CLIENT_PREALLOCATE="false",
                  XLA_FLAGS="--xla_gpu_deterministic_ops=true --xla_gpu_autotune_level=0")
os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "networks"))



def arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--trials", type=int, help="so many of each; 0: until the input ends")
    parser.add_argument("--paced", action="store_true", help="begins with a line of input")
    return parser.parse_args()


OPTIONS = arguments()   # its usage needs no library

import torch
import torch.nn.functional as F

from networks import bert, captured, decode, gpt2, resnet50, trained

MODELS = {}   # name: (make, steps, whether its bits are the same in every native run)
DEVICE = OPTIONS.device


class Missing(Exception):
    """Of a library, or of a GPU."""


def model(steps, same=True):
    """`make` returns a step, and what gives its results. A third function begins anew; where there is none,
    as for a training, a trial makes the model again."""
    def add(make):
        MODELS[make.__name__] = (make, steps, same)
        return make
    return add


def sized(size, tiny):
    return size if DEVICE == "cuda" else tiny


def needs_gpu():
    if DEVICE != "cuda":
        raise Missing("a GPU")


def hash_of(values):
    total = hashlib.sha256()
    for value in values:
        if isinstance(value, torch.Tensor):
            value = value.detach().cpu().contiguous().flatten().view(torch.uint8).numpy()
        total.update(value.tobytes())
    return total.hexdigest()[:16]


def pure(step, results):
    """Each step computes the same."""
    return step, results, lambda: None


def inferred(network, inputs):
    out = []

    def step():
        with torch.no_grad():
            out[:] = [network(inputs)]
    return pure(step, lambda: out)


@model(40)
def resnet50_inference():
    images = torch.randn(*sized((64, 3, 224, 224), (2, 3, 32, 32)), device=DEVICE, dtype=torch.half)
    return inferred(resnet50(DEVICE).half().eval(), images.to(memory_format=torch.channels_last))


@model(12)
def resnet50_training():
    images = torch.randn(*sized((64, 3, 224, 224), (2, 3, 32, 32)), device=DEVICE)
    images = images.to(memory_format=torch.channels_last)
    labels = torch.randint(0, 1000, (sized(64, 2),), device=DEVICE)
    return trained(resnet50(DEVICE), lambda network: F.cross_entropy(network(images), labels))


@model(12)
def bert_training():
    tokens = torch.randint(0, 30000, sized((32, 256), (1, 8)), device=DEVICE)
    network = bert(DEVICE, layers=sized(6, 1))
    return trained(network, lambda network: network(input_ids=tokens, labels=tokens).loss)


@model(6, same=False)   # near ties are decided by sums whose order changes
def gpt2_decode():
    network, out = gpt2(DEVICE), []
    tokens = torch.randint(0, 50000, sized((32, 128), (1, 4)), device=DEVICE)

    def step():
        with torch.no_grad():
            out[:] = [network.generate(tokens, max_new_tokens=16, min_new_tokens=16, do_sample=False,
                                       pad_token_id=0)]
    return pure(step, lambda: out)


@model(40)
def gpt2_graph():
    needs_gpu()
    network, tokens, out = gpt2(), torch.randint(0, 50000, (16, 256), device=DEVICE), []
    with torch.no_grad():
        replay = captured(lambda: (network(tokens).logits for _ in range(1)), 1)

    def step():
        out[:] = [replay()]
    return pure(step, lambda: out)


@model(60)
def attention():
    shape = sized((8, 16, 2048, 128), (1, 1, 16, 16))
    query, key, value = (torch.randn(*shape, device=DEVICE, dtype=torch.bfloat16) for _ in range(3))
    out = []

    def step():
        with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.FLASH_ATTENTION):
            out[:] = [F.scaled_dot_product_attention(query, key, value, is_causal=True)]
    return pure(step, lambda: out)


@model(30)
def attention_backward():
    """Forward and backward."""
    shape = sized((8, 16, 2048, 128), (1, 1, 16, 16))
    inputs = [torch.randn(*shape, device=DEVICE, dtype=torch.bfloat16, requires_grad=True) for _ in range(3)]
    wanted, out = torch.randn(*shape, device=DEVICE, dtype=torch.bfloat16), []

    def step():
        with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.FLASH_ATTENTION):
            found = F.scaled_dot_product_attention(*inputs, is_causal=True)
        out[:] = [found, *torch.autograd.grad(found, inputs, wanted)]
    return pure(step, lambda: out)


@model(40)
def bert_inference():
    tokens = torch.randint(0, 30000, sized((32, 256), (1, 8)), device=DEVICE)
    network = bert(DEVICE, layers=sized(12, 1)).to(torch.bfloat16).eval()
    out = []

    def step():
        with torch.no_grad():
            out[:] = [network(input_ids=tokens).logits]
    return pure(step, lambda: out)


@model(6, same=False)
def gpt2_decode_graph():
    """16 tokens, a graph for each pass of the network."""
    needs_gpu()
    network, tokens, out = gpt2(DEVICE), torch.randint(0, 50000, (32, 128), device=DEVICE), []
    with torch.no_grad():
        replay = captured(lambda: decode(network, tokens, 16), 16)

    def step():
        out[:] = [replay()]
    return pure(step, lambda: out)


@model(40)
def compiled_layers():
    """Of torch.compile: kernels of Triton between products of cuBLAS, forward and backward."""
    width = sized(4096, 32)
    layers = torch.nn.Sequential(torch.nn.LayerNorm(width), torch.nn.Linear(width, width), torch.nn.GELU(),
                                 torch.nn.Linear(width, width), torch.nn.Softmax(-1)).to(DEVICE)
    inputs, out = torch.randn(width, width, device=DEVICE), []
    compiled = torch.compile(layers)

    def step():
        with torch.autocast(DEVICE, torch.bfloat16):
            found = compiled(inputs)
        loss = (found.float() * inputs).sum(-1).mean()
        out[:] = [found, *torch.autograd.grad(loss, list(layers.parameters()))]
    return pure(step, lambda: out)


@model(60)
def matmul():
    shape = sized((6144, 6144), (64, 64))
    first, second = (torch.randn(*shape, device=DEVICE, dtype=torch.bfloat16) for _ in range(2))
    out = []

    def step():
        out[:] = [first @ second]
    return pure(step, lambda: out)


@model(40)
def scans_and_sorts():
    values = torch.randint(0, 1 << 30, (1 << sized(24, 10),), device=DEVICE)
    out = []

    def step():
        out[:] = [torch.cumsum(values, 0), *torch.sort(values), torch.unique(values & 0xffff)]
    return pure(step, lambda: out)


@model(40)
def triton_softmax():
    import triton_kernel
    rows = torch.randn(sized(65536, 2), 2048, device=DEVICE)
    out = []

    def step():
        out[:] = [triton_kernel.softmax(rows)]
    return pure(step, lambda: out)


@model(40)
def triton_matmul():
    import triton_kernel
    first, second = (torch.randn(sized(4096, 64), sized(4096, 64), device=DEVICE, dtype=torch.bfloat16)
                     for _ in range(2))
    out = []

    def step():
        out[:] = [triton_kernel.matmul(first, second)]
    return pure(step, lambda: out)


@model(30)
def cupy_transforms():
    needs_gpu()
    import cupy
    values = cupy.random.RandomState(3).rand(256, 1 << 16).astype(cupy.float32)
    out = []

    def step():
        spectrum = cupy.fft.rfft(values, axis=1)
        out[:] = [cupy.fft.irfft(spectrum * 0.5, axis=1).sum(axis=0), cupy.sort(values, axis=1)[:, ::997]]
        cupy.cuda.Device().synchronize()
    return pure(step, lambda: [each.get() for each in out])


@model(30)
def jax_layers():
    import jax
    import jax.numpy as jnp
    import numpy
    keys = jax.random.split(jax.random.PRNGKey(0), 5)
    weights = [jax.random.normal(key, (sized(4096, 32),) * 2, jnp.bfloat16) * 0.02 for key in keys[:4]]
    inputs = jax.random.normal(keys[4], (sized(2048, 32), sized(4096, 32)), jnp.bfloat16)

    def loss(weights):
        value = inputs
        for each in weights:
            value = jax.nn.gelu(value @ each)
        return (value.astype(jnp.float32) ** 2).mean()
    update = jax.jit(lambda weights: [w - 0.1 * g for w, g in zip(weights, jax.grad(loss)(weights))])
    state = [weights]

    def begin():
        state[0] = weights

    def step():
        state[0] = jax.block_until_ready(update(state[0]))
    return step, lambda: [numpy.asarray(each.astype(jnp.float32)) for each in state[0]], begin


def wait():
    if DEVICE == "cuda":
        torch.cuda.synchronize()


def begun(make):
    torch.manual_seed(1)
    made = make()
    for _ in range(2):
        made[0]()
    wait()
    return made


def run(name, make, steps, same):
    begin = time.perf_counter()
    step, results, *_ = begun(make)
    ready, times = time.perf_counter() - begin, []
    for _ in range(steps):
        start = time.perf_counter()
        step()
        wait()
        times.append(time.perf_counter() - start)
    print(json.dumps({"model": name, "ms": statistics.median(times) * 1e3, "all_s": sum(times),
                      "ready_s": round(ready, 2),
                      "hash": hash_of(results()) if same else "not the same natively"}), flush=True)


def input_ended():
    return select.select([sys.stdin], [], [], 0)[0] and not sys.stdin.readline()


def trials(name, make, steps, most):
    """Steps are waited for together: so launches follow one another. `most`: trials, 0: any number."""
    step, results, *again = begun(make)
    trial = 0
    while True:
        if trial and not again:
            step = results = None
            step, results = begun(make)
        if again:
            again[0]()
        for _ in range(steps):
            step()
        wait()
        trial += 1
        print(json.dumps({"model": name, "trial": trial, "hash": hash_of(results())}), flush=True)
        if trial == most or (not most and input_ended()):
            return


def main():
    torch.backends.cudnn.benchmark = False
    torch.backends.cudnn.deterministic = True
    torch.use_deterministic_algorithms(True, warn_only=True)
    if OPTIONS.paced:
        sys.stdin.readline()
    for name in OPTIONS.names or list(MODELS):
        make, steps, same = MODELS[name]
        steps = steps if DEVICE == "cuda" else 1
        try:
            if OPTIONS.trials is None:
                run(name, make, steps, same)
            else:
                trials(name, make, steps, OPTIONS.trials)
        except (ImportError, Missing) as missing:
            print(json.dumps({"model": name, "missing": str(missing)}), flush=True)
        except Exception as error:   # of one model must not end the others; the exit code says it
            traceback.print_exc()
            print(json.dumps({"model": name, "failed": f"{type(error).__name__}: {error}"[:300]}), flush=True)
            if OPTIONS.trials is None:
                raise
        if DEVICE == "cuda":
            torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
