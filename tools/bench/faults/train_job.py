#!/usr/bin/env python3
"""A training whose every bit is determined, for training.py.

    train_job.py [--stub|--cpu] NETWORK STEPS|SECONDSs [--rest EVERY]

NETWORK is resnet (a ResNet-18 for 32 x 32 pixels) or transformer (four layers, with attention of matrix
products), in float32, with momentum. Weights and batches come from fixed seeds, batches of the host's. It
prints READY behind the first steps, which load code, and for each step a line of JSON: its number, its loss
as a hexadecimal float, and its milliseconds until the loss was on the host. The last line has a digest of all
weights. `20s` are as many steps as fit in 20 s. With --rest it prints REST ahead of each EVERY-th step, when
nothing of it is under way, and waits for a line. An error is a line of JSON, too, and exit code 3.

--stub, without PyTorch: memory of CUDA's runtime, for the simulated device. --cpu: PyTorch without a GPU.
"""
import argparse
import ctypes
import hashlib
import json
import struct
import sys
import time

WARM = 3
SEED = 20


class Torch:
    def __init__(self, network, device):
        import torch  # noqa: PLC0415: --stub needs none
        self.torch, self.device = torch, device
        torch.backends.cudnn.benchmark = False
        torch.backends.cudnn.deterministic = True
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
        torch.use_deterministic_algorithms(True, warn_only=True)   # training.py compares two native runs
        torch.manual_seed(SEED)
        self.network, self.batch = {"resnet": self.resnet, "transformer": self.transformer}[network]()
        self.network = self.network.to(device)
        self.optimizer = torch.optim.SGD(self.network.parameters(), lr=0.01, momentum=0.9)
        self.generator = torch.Generator().manual_seed(SEED + 1)

    def resnet(self):
        torch, nn = self.torch, self.torch.nn

        class Block(nn.Module):
            def __init__(self, inner, outer, stride):
                super().__init__()
                self.first = nn.Sequential(nn.Conv2d(inner, outer, 3, stride, 1, bias=False),
                                           nn.BatchNorm2d(outer), nn.ReLU())
                self.second = nn.Sequential(nn.Conv2d(outer, outer, 3, 1, 1, bias=False),
                                            nn.BatchNorm2d(outer))
                same = stride == 1 and inner == outer
                self.short = nn.Identity() if same else nn.Sequential(
                    nn.Conv2d(inner, outer, 1, stride, bias=False), nn.BatchNorm2d(outer))

            def forward(self, x):
                return torch.relu(self.second(self.first(x)) + self.short(x))

        class Mean(nn.Module):
            def forward(self, x):
                return x.mean((2, 3))
        widths = (64, 64, 64, 128, 128, 256, 256, 512, 512)
        blocks = [Block(inner, outer, 1 if inner == outer else 2)
                  for inner, outer in zip(widths, widths[1:])]
        network = nn.Sequential(nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU(), *blocks,
                                Mean(), nn.Linear(512, 10))
        size = 128 if self.device == "cuda" else 2
        return network, lambda: (torch.randn(size, 3, 32, 32, generator=self.generator),
                                 torch.randint(10, (size,), generator=self.generator))

    def transformer(self):
        torch, nn, width, heads, words = self.torch, self.torch.nn, 256, 4, 1000

        class Layer(nn.Module):
            def __init__(self):
                super().__init__()
                self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
                self.of_all, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
                self.wide = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

            def forward(self, x):
                count, length, _ = x.shape
                query, key, value = (each.view(count, length, heads, -1).transpose(1, 2)
                                     for each in self.of_all(self.before(x)).chunk(3, -1))
                weights = (query @ key.transpose(2, 3) * (width // heads) ** -0.5).softmax(-1)
                x = x + self.out((weights @ value).transpose(1, 2).reshape(count, length, width))
                return x + self.wide(self.between(x))

        class Flat(nn.Module):
            def forward(self, x):
                return x.flatten(0, 1)
        network = nn.Sequential(nn.Embedding(words, width), *(Layer() for _ in range(4)),
                                nn.LayerNorm(width), nn.Linear(width, words), Flat())
        size, length = (32, 128) if self.device == "cuda" else (2, 8)

        def batch():
            text = torch.randint(words, (size, length + 1), generator=self.generator)
            return text[:, :-1], text[:, 1:].flatten()
        return network, batch

    def step(self, _):
        inputs, wanted = (each.to(self.device) for each in self.batch())
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.torch.nn.functional.cross_entropy(self.network(inputs), wanted)
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def digest(self):
        found = hashlib.sha256()
        for each in self.network.state_dict().values():
            host = each.detach().cpu().contiguous()
            found.update(ctypes.string_at(host.data_ptr(), host.numel() * host.element_size()))
        return found.hexdigest()


class Stub:
    """One word of weights, in all places of its memory."""
    BYTES = 1 << 20

    def __init__(self):
        self.runtime, self.memory = ctypes.CDLL("libcudart.so.13"), ctypes.c_void_p()
        self.call("cudaMalloc", ctypes.byref(self.memory), ctypes.c_size_t(self.BYTES))
        self.call("cudaMemset", self.memory, 1, ctypes.c_size_t(self.BYTES))

    def call(self, name, *arguments):
        if status := getattr(self.runtime, name)(*arguments):
            text = self.runtime.cudaGetErrorName
            text.restype = ctypes.c_char_p
            raise RuntimeError(f"{name}: {text(status).decode()}")

    def word(self, at):
        seen = ctypes.create_string_buffer(1)
        self.call("cudaMemcpy", seen, ctypes.c_void_p(self.memory.value + at), ctypes.c_size_t(1), 2)
        return seen.raw[0]

    def step(self, number):
        word = (self.word(0) * 5 + number) % 256
        self.call("cudaMemset", self.memory, word, ctypes.c_size_t(self.BYTES))
        self.call("cudaDeviceSynchronize")
        time.sleep(0.01)
        return self.word(self.BYTES - 1) / 7

    def digest(self):
        return hashlib.sha256(struct.pack("<BB", self.word(0), self.word(self.BYTES // 2))).hexdigest()


def say(**fields):
    print(json.dumps(fields), flush=True)


def train(job, options):
    """As many steps as options say."""
    seconds = float(options.length[:-1]) if options.length.endswith("s") else None
    number, begun = 0, None
    while seconds is None or begun is None or time.monotonic() < begun + seconds:
        if seconds is None and number == int(options.length):
            break
        number += 1
        if options.rest and number > WARM and number % options.rest == 0:
            print(f"REST {number}", flush=True)
            sys.stdin.readline()
        start = time.monotonic()
        loss = job.step(number)
        say(step=number, loss=float(loss).hex(), ms=round((time.monotonic() - start) * 1000, 3))
        if number == WARM:
            print("READY", flush=True)
            begun = time.monotonic()
    say(digest=job.digest(), steps=number)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("network", choices=("resnet", "transformer"))
    parser.add_argument("length", metavar="STEPS|SECONDSs")
    parser.add_argument("--rest", type=int, default=0, metavar="EVERY")
    parser.add_argument("--stub", action="store_true")
    parser.add_argument("--cpu", action="store_true")
    options = parser.parse_args()
    try:
        job = Stub() if options.stub else Torch(options.network, "cpu" if options.cpu else "cuda")
        train(job, options)
    except RuntimeError as error:   # CUDA's come as this, and as types derived from it
        say(error=f"{type(error).__name__}: {error}".splitlines()[0][:300])
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
