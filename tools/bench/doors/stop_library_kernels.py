"""The kernels of stop_kernels.py, of PyTorch, cuBLAS, cuBLASLt, cuDNN and Triton, and what is known of them
natively: by the profiler of PyTorch, their grids and times.

Each kernel is made in a size of at least ten waves of an H100, and in smaller ones, of which the largest that
runs the same kernel with a grid of one wave says how long a block takes. On the CPU all sizes are tiny.
"""
import hashlib
import json
import os
import statistics
import time

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")

import torch
import torch.nn.functional as F

from stop_kernels import fits, product_of

KERNELS = {}   # name: (make, sizes, the first one that is measured)
LAUNCHES = 20
MOST_SECONDS = 15   # for what is known of a kernel


def kernel(*sizes):
    def add(make):
        KERNELS[make.__name__] = (make, sizes)
        return make
    return add


def gemms(rows, columns, inner):
    """The size itself, and down to a wave: rows and columns are halved in turns."""
    found = [(rows, columns, inner)]
    while rows * columns > 512 * 512:
        rows, columns = (rows // 2, columns) if rows >= columns else (rows, columns // 2)
        found.append((rows, columns, inner))
    return found


def batches(most):
    return [(most >> i,) for i in range(12) if most >> i]


def random(place, *shape, dtype=torch.bfloat16):
    return torch.randn(*shape, device=place.device, dtype=dtype)


def product(place, size, dtype):
    rows, columns, inner = size
    first, second = random(place, rows, inner, dtype=dtype), random(place, inner, columns, dtype=dtype)
    return lambda: first @ second


@kernel(*gemms(8192, 8192, 8192))
def gemm_bf16(place, size):
    return product(place, size, torch.bfloat16)


@kernel(*gemms(16384, 16384, 2048))
def gemm_bf16_wide(place, size):
    return product(place, size, torch.bfloat16)


@kernel(*gemms(16384, 16384, 256))
def gemm_bf16_flat(place, size):
    return product(place, size, torch.bfloat16)


@kernel(*gemms(8192, 8192, 2048))
def gemm_fp32(place, size):
    return product(place, size, torch.float32)


@kernel(*gemms(16384, 8192, 512))
def gemm_fp32_flat(place, size):
    return product(place, size, torch.float32)


@kernel(*gemms(16384, 16384, 1024))
def lt_gelu_bf16(place, size):
    """cuBLASLt with bias and GELU behind the product."""
    rows, columns, inner = size
    first, second, bias = (random(place, *shape) for shape in ((rows, inner), (inner, columns), (columns,)))
    return lambda: torch._addmm_activation(bias, first, second, use_gelu=True)


@kernel(*gemms(16384, 16384, 1024))
def lt_bias_bf16(place, size):
    rows, columns, inner = size
    first, weight, bias = (random(place, *shape) for shape in ((rows, inner), (columns, inner), (columns,)))
    return lambda: F.linear(first, weight, bias)


def convolution(place, size, dtype, channels):
    images = random(place, size[0], channels, 56, 56, dtype=dtype).to(memory_format=torch.channels_last)
    weights = random(place, channels, channels, 3, 3, dtype=dtype).to(memory_format=torch.channels_last)
    return lambda: F.conv2d(images, weights, padding=1)


@kernel(*batches(512))
def conv_nhwc_bf16(place, size):
    return convolution(place, size, torch.bfloat16, 128)


@kernel(*batches(256))
def conv_nhwc_fp32(place, size):
    return convolution(place, size, torch.float32, 64)


@kernel(*gemms(8192, 8192, 2048))
def triton_matmul(place, size):
    import triton_kernel
    rows, columns, inner = size
    first, second = random(place, rows, inner), random(place, inner, columns)
    return lambda: triton_kernel.matmul(first, second)


@kernel(*batches(65536))
def triton_softmax(place, size):
    import triton_kernel
    rows = random(place, size[0], 2048, dtype=torch.float32)
    return lambda: triton_kernel.softmax(rows)


@kernel(*batches(65536))
def triton_elementwise(place, size):
    import triton_kernel
    values = random(place, size[0], 4096)
    return lambda: triton_kernel.gelu(values)


@kernel(*batches(64))
def flash_attention(place, size):
    query, key, value = (random(place, size[0], 16, 2048, 128) for _ in range(3))
    return lambda: F.scaled_dot_product_attention(query, key, value, is_causal=True)


def tiny(size):
    return tuple(min(each, 64) for each in size) if len(size) == 3 else (2,)


class Kernel:
    def __init__(self, step):
        self.run, self.out = step, None
        self.step()

    def step(self):
        with torch.no_grad():
            self.out = self.run()

    def result(self):
        values = self.out.detach().flatten().view(torch.uint8)
        return hashlib.sha256(values.cpu().numpy().tobytes()).hexdigest()[:16]


class Place:
    def __init__(self, device):
        self.device, self.batch = device, 6 if device == "cuda" else 1
        torch.backends.cudnn.benchmark = False
        torch.backends.cudnn.deterministic = True
        torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False

    def names(self):
        return list(KERNELS)

    def make(self, name, size=None):
        make, sizes = KERNELS[name]
        size = size or sizes[0]
        torch.manual_seed(1)
        return Kernel(make(self, size if self.device == "cuda" else tiny(size)))

    def wait(self):
        if self.device == "cuda":
            torch.cuda.synchronize()

    def measured(self, name, size, folder):
        """The kernel that takes longest: its name, grid, block, registers, shared bytes, and times in us."""
        made = self.make(name, size)
        self.wait()
        activities = [torch.profiler.ProfilerActivity.CUDA] if self.device == "cuda" else \
            [torch.profiler.ProfilerActivity.CPU]
        with torch.profiler.profile(activities=activities) as profile:
            for _ in range(LAUNCHES):
                made.step()
            self.wait()
        path = os.path.join(folder, f"profile-{os.getpid()}.json")
        profile.export_chrome_trace(path)
        with open(path) as file:
            events = json.load(file)["traceEvents"]
        os.unlink(path)
        return longest([each for each in events if each.get("cat") == "kernel"])

    def step_us(self, kernel):
        """By events, median of 20; the profiler is not needed for it."""
        if self.device != "cuda":
            return 1.0
        events = [[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(LAUNCHES)]
        for begin, end in events:
            begin.record()
            kernel.step()
            end.record()
        self.wait()
        return 1e3 * statistics.median(begin.elapsed_time(end) for begin, end in events)

    def facts(self, name, folder):
        if self.device != "cuda":
            return {"kernel": name, "grid": [1, 1, 1], "ctas_per_sm": 1, "kernel_us": 1.0, "waves": 1.0,
                    "block_us": 1.0, "block_by": "kernel"}
        sms = torch.cuda.get_device_properties(0).multi_processor_count
        sizes, begun = KERNELS[name][1], time.monotonic()
        whole = self.measured(name, sizes[0], folder)
        places = sms * fits(product_of(whole["block"]), whole["registers"], whole["shared"])
        found = {"kernel": whole["name"], "grid": whole["grid"], "block": whole["block"],
                 "ctas_per_sm": places // sms, "kernel_us": statistics.median(whole["us"]),
                 "waves": product_of(whole["grid"]) / places}
        found.update(block_us=found["kernel_us"] / max(1, found["waves"]),
                     block_by="waves" if found["waves"] > 1 else "kernel")
        if found["waves"] <= 1:
            return found
        wave = product_of(sizes[0]) / found["waves"]   # about: its grid is in proportion to a size
        for size in sizes[1:]:
            if not wave / 16 < product_of(size) < 1.05 * wave:
                continue
            if time.monotonic() - begun > MOST_SECONDS:
                break
            small = self.measured(name, size, folder)
            torch.cuda.empty_cache()
            if small["name"] == whole["name"] and product_of(small["grid"]) <= places:
                found.update(block_us=statistics.median(small["us"]), block_by="one wave",
                             wave_grid=small["grid"], wave_us=[min(small["us"]), max(small["us"])],
                             waves_block_us=found["block_us"])
                break
        return found


def longest(events):
    """Of a profile's kernels the one that took most time in all."""
    times = {}
    for each in events:
        times.setdefault(each["name"], []).append(each)
    if not times:
        raise RuntimeError("the profile has no kernels")
    name, runs = max(times.items(), key=lambda item: sum(run["dur"] for run in item[1]))
    arguments = runs[0]["args"]
    return {"name": name, "us": [run["dur"] for run in runs], "grid": arguments["grid"],
            "block": arguments["block"], "registers": arguments.get("registers per thread", 0),
            "shared": arguments.get("shared memory", 0)}
