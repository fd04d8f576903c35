"""Models that keep a GPU busy, with the same bits in every run: models.py [NAME...]

Each model runs a fixed number of steps. A JSON line of each: the median time of a step, and a hash of what it
computed. Weights and data are random, of a fixed seed; nothing is fetched.
"""
import hashlib
import json
import os
import pathlib
import statistics
import sys
import time

os.environ.update(XLA_PYTHON_CLIENT_PREALLOCATE="false",
                  XLA_FLAGS="--xla_gpu_deterministic_ops=true --xla_gpu_autotune_level=0")
os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "networks"))

import torch
import torch.nn.functional as F

from networks import bert, captured, gpt2, resnet50, trained

MODELS = {}   # name: (make, steps, whether its bits are the same in every native run)


def model(steps, same=True):
    def add(make):
        MODELS[make.__name__] = (make, steps, same)
        return make
    return add


def hash_of(values):
    total = hashlib.sha256()
    for value in values:
        if isinstance(value, torch.Tensor):
            value = value.detach().cpu().contiguous().flatten().view(torch.uint8).numpy()
        total.update(value.tobytes())
    return total.hexdigest()[:16]


def inferred(network, inputs):
    out = []

    def step():
        with torch.no_grad():
            out[:] = [network(inputs)]
    return step, lambda: out


@model(40)
def resnet50_inference():
    images = torch.randn(64, 3, 224, 224, device="cuda", dtype=torch.half)
    return inferred(resnet50().half().eval(), images.to(memory_format=torch.channels_last))


@model(12)
def resnet50_training():
    images = torch.randn(64, 3, 224, 224, device="cuda").to(memory_format=torch.channels_last)
    labels = torch.randint(0, 1000, (64,), device="cuda")
    return trained(resnet50(), lambda network: F.cross_entropy(network(images), labels))


@model(12)
def bert_training():
    tokens = torch.randint(0, 30000, (32, 256), device="cuda")
    return trained(bert(layers=6), lambda network: network(input_ids=tokens, labels=tokens).loss)


@model(6, same=False)   # near ties are decided by sums whose order changes
def gpt2_decode():
    network, tokens = gpt2(), torch.randint(0, 50000, (32, 128), device="cuda")
    out = []

    def step():
        with torch.no_grad():
            out[:] = [network.generate(tokens, max_new_tokens=16, min_new_tokens=16, do_sample=False,
                                       pad_token_id=0)]
    return step, lambda: out


@model(40)
def gpt2_graph():
    network, tokens, out = gpt2(), torch.randint(0, 50000, (16, 256), device="cuda"), []
    with torch.no_grad():
        replay = captured(lambda: (network(tokens).logits for _ in range(1)), 1)

    def step():
        out[:] = [replay()]
    return step, lambda: out


@model(60)
def attention():
    query, key, value = (torch.randn(8, 16, 2048, 128, device="cuda", dtype=torch.bfloat16) for _ in range(3))
    out = []

    def step():
        with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.FLASH_ATTENTION):
            out[:] = [F.scaled_dot_product_attention(query, key, value, is_causal=True)]
    return step, lambda: out


@model(60)
def matmul():
    first, second = (torch.randn(6144, 6144, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    out = []

    def step():
        out[:] = [first @ second]
    return step, lambda: out


@model(40)
def scans_and_sorts():
    values = torch.randint(0, 1 << 30, (1 << 24,), device="cuda")
    out = []

    def step():
        out[:] = [torch.cumsum(values, 0), *torch.sort(values), torch.unique(values & 0xffff)]
    return step, lambda: out


@model(40)
def triton_softmax():
    import triton_kernel
    rows = torch.randn(65536, 2048, device="cuda")
    out = []

    def step():
        out[:] = [triton_kernel.softmax(rows)]
    return step, lambda: out


@model(30)
def cupy_transforms():
    import cupy
    values = cupy.random.RandomState(3).rand(256, 1 << 16).astype(cupy.float32)
    out = []

    def step():
        spectrum = cupy.fft.rfft(values, axis=1)
        out[:] = [cupy.fft.irfft(spectrum * 0.5, axis=1).sum(axis=0), cupy.sort(values, axis=1)[:, ::997]]
        cupy.cuda.Device().synchronize()
    return step, lambda: [each.get() for each in out]


@model(30)
def jax_layers():
    import jax
    import jax.numpy as jnp
    import numpy
    keys = jax.random.split(jax.random.PRNGKey(0), 5)
    weights = [jax.random.normal(key, (4096, 4096), jnp.bfloat16) * 0.02 for key in keys[:4]]
    inputs = jax.random.normal(keys[4], (2048, 4096), jnp.bfloat16)

    def loss(weights):
        value = inputs
        for each in weights:
            value = jax.nn.gelu(value @ each)
        return (value.astype(jnp.float32) ** 2).mean()
    update = jax.jit(lambda weights: [w - 0.1 * g for w, g in zip(weights, jax.grad(loss)(weights))])
    state = [weights]

    def step():
        state[0] = jax.block_until_ready(update(state[0]))
    return step, lambda: [numpy.asarray(each.astype(jnp.float32)) for each in state[0]]


def run(name, make, steps, same):
    torch.manual_seed(1)
    begin = time.perf_counter()
    step, results = make()
    for _ in range(2):
        step()
    torch.cuda.synchronize()
    ready, times = time.perf_counter() - begin, []
    for _ in range(steps):
        start = time.perf_counter()
        step()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    print(json.dumps({"model": name, "ms": statistics.median(times) * 1e3, "all_s": sum(times),
                      "ready_s": round(ready, 2),
                      "hash": hash_of(results()) if same else "not the same natively"}), flush=True)


def main():
    torch.backends.cudnn.benchmark = False
    torch.backends.cudnn.deterministic = True
    torch.use_deterministic_algorithms(True, warn_only=True)
    names = sys.argv[1:] or list(MODELS)
    for name in names:
        try:
            run(name, *MODELS[name])
        except ImportError as missing:
            print(json.dumps({"model": name, "missing": str(missing)}), flush=True)
        torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
