"""The kernels of stop_kernels.py, of PyTorch, cuBLAS, cuBLASLt, cuDNN and Triton, and what is known of them
natively: by the profiler of PyTorch, their grids and times. Two of ours are among them.

Each kernel is made in a size of at least ten waves of an H100, and in sizes of one full wave, of which the
fullest that runs the same kernel says how long a block takes; those of Triton tell it by the GPU's clock. On
the CPU all sizes are tiny.
"""
import hashlib
import json
import os
import statistics
import time
import traceback

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")

import torch
import torch.nn.functional as F

from blocks import WHOLE, block_by_waves, ctas_of, longest_in_flight, product_of, wave_sizes

KERNELS = {}   # name: (make, size, what tells times of its blocks or None)
# name: kernel of driver.py, blocks, ns of each, threads
OWN = {"own_long": ("spend_0", 8192, 40_000, 256), "own_wide": ("spend_1", 262144, 2_000, 64)}
LAUNCHES, CLOCKED = 20, 3
MOST_SECONDS = 15   # for what is known of a kernel


def kernel(*size, clocked=None):
    def add(make):
        KERNELS[make.__name__] = (make, size, clocked)
        return make
    return add


def random(place, *shape, dtype=torch.bfloat16):
    return torch.randn(*shape, device=place.device, dtype=dtype)


def product(place, size, dtype):
    rows, columns, inner = size
    first, second = random(place, rows, inner, dtype=dtype), random(place, inner, columns, dtype=dtype)
    return lambda: first @ second


@kernel(8192, 8192, 8192)
def gemm_bf16(place, size):
    return product(place, size, torch.bfloat16)


@kernel(16384, 16384, 2048)
def gemm_bf16_wide(place, size):
    return product(place, size, torch.bfloat16)


@kernel(16384, 16384, 256)
def gemm_bf16_flat(place, size):
    return product(place, size, torch.bfloat16)


@kernel(8192, 8192, 2048)
def gemm_fp32(place, size):
    return product(place, size, torch.float32)


@kernel(16384, 8192, 512)
def gemm_fp32_flat(place, size):
    return product(place, size, torch.float32)


@kernel(16384, 16384, 1024)
def lt_gelu_bf16(place, size):
    """cuBLASLt with bias and GELU behind the product."""
    rows, columns, inner = size
    first, second, bias = (random(place, *shape) for shape in ((rows, inner), (inner, columns), (columns,)))
    return lambda: torch._addmm_activation(bias, first, second, use_gelu=True)


@kernel(16384, 16384, 1024)
def lt_bias_bf16(place, size):
    rows, columns, inner = size
    first, weight, bias = (random(place, *shape) for shape in ((rows, inner), (columns, inner), (columns,)))
    return lambda: F.linear(first, weight, bias)


def convolution(place, size, dtype, channels):
    images = random(place, size[0], channels, 56, 56, dtype=dtype).to(memory_format=torch.channels_last)
    weights = random(place, channels, channels, 3, 3, dtype=dtype).to(memory_format=torch.channels_last)
    return lambda: F.conv2d(images, weights, padding=1)


@kernel(512)
def conv_nhwc_bf16(place, size):
    return convolution(place, size, torch.bfloat16, 128)


@kernel(256)
def conv_nhwc_fp32(place, size):
    return convolution(place, size, torch.float32, 64)


def triton_inputs(place, name, size):
    if name == "matmul":
        rows, columns, inner = size
        return random(place, rows, inner), random(place, inner, columns)
    if name == "softmax":
        return (random(place, size[0], 2048, dtype=torch.float32),)
    return (random(place, size[0], 4096),)


def triton_step(place, name, size):
    import triton_kernel
    inputs = triton_inputs(place, name, size)
    return lambda: getattr(triton_kernel, name)(*inputs)


@kernel(8192, 8192, 2048, clocked="matmul")
def triton_matmul(place, size):
    return triton_step(place, "matmul", size)


@kernel(65536, clocked="softmax")
def triton_softmax(place, size):
    return triton_step(place, "softmax", size)


@kernel(65536, clocked="gelu")
def triton_elementwise(place, size):
    return triton_step(place, "gelu", size)


@kernel(64)
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
        return [*KERNELS, *OWN]

    def own(self, name):
        from driver import Driver
        from own_kernels import Own
        if self.device != "cuda":
            raise RuntimeError("kernels of ours need a GPU")
        return Own(Driver(), *OWN[name])   # in PyTorch's context

    def make(self, name, size=None):
        if name in OWN:
            return self.own(name)
        make, whole, _ = KERNELS[name]
        torch.manual_seed(1)
        return Kernel(make(self, (size or whole) if self.device == "cuda" else tiny(whole)))

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
        if name in OWN:
            return self.own(name).facts(sms)
        begun = time.monotonic()
        whole = self.measured(name, None, folder)
        places = sms * whole["ctas_per_sm"]
        found = {"kernel": whole["name"], "grid": whole["grid"], "block": whole["block"],
                 "ctas_per_sm": whole["ctas_per_sm"], "kernel_us": statistics.median(whole["us"]),
                 "waves": product_of(whole["grid"]) / places}
        if found["waves"] > 1:
            found.update(self.full_wave(name, whole, places, begun + MOST_SECONDS, folder))
        found["block_us"], found["block_by"] = block_by_waves(found["kernel_us"], found["waves"],
                                                              found.get("wave_us"), found.get("fill", 0))
        if KERNELS[name][2]:
            found.update(self.by_clock(name))
        return found

    def full_wave(self, name, whole, places, deadline, folder):
        """Of the same kernel with the fullest grid that is no more than one wave."""
        best, size = {}, KERNELS[name][1]
        for each in wave_sizes(size, product_of(whole["grid"]), places, whole["name"]):
            if time.monotonic() > deadline or best.get("fill", 0) >= WHOLE:
                break
            small = self.measured(name, each, folder)
            torch.cuda.empty_cache()
            fill = product_of(small["grid"]) / places
            if small["name"] == whole["name"] and best.get("fill", 0) < fill <= 1:
                best = {"fill": round(fill, 3), "wave_size": each, "wave_grid": small["grid"],
                        "wave_us": statistics.median(small["us"]),
                        "wave_range_us": [min(small["us"]), max(small["us"])]}
        return best

    def by_clock(self, name):
        """What else it knows stays where the clock is missing."""
        try:
            import triton_clock
            torch.manual_seed(1)
            inputs = triton_inputs(self, KERNELS[name][2], KERNELS[name][1])
            run, times = getattr(triton_clock, KERNELS[name][2]), []
            for _ in range(CLOCKED + 1):
                begins, ends = run(*inputs).t().tolist()
                times.append(statistics.median(longest_in_flight(begins, ends)))
        except Exception as error:
            traceback.print_exc()
            return {"no_clock": f"{type(error).__name__}: {error}"[:300]}
        return {"block_us": statistics.median(times[1:]), "block_by": "clock"}   # the first one compiles


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
            "shared": arguments.get("shared memory", 0), "ctas_per_sm": ctas_of(runs[0])}
