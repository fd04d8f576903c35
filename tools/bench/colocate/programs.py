"""The programs of a worker: services that answer requests, trainings that make steps. By name:

    resnet50  bert  gpt2  llama             services; GPT-2 and the small Llama decode 16 tokens a request
    resnet50-graph ...                      the same in CUDA graphs, one for each pass of the network
    resnet50-train  bert-train              trainings
    resnet50@4  bert-train@16               with another batch than 1, or 32 and 64 of trainings
"""
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "networks"))

import torch
import torch.nn.functional as F

import networks
from names import parse

TOKENS = 16        # that a request decodes
PROMPT = 32
LENGTH = 128       # of BERT's sequences
VOCABULARY = 30000


class Service:
    """request() is waited for: from the data on the host to the answer on the host."""

    def __init__(self, device, data, stages, count, graph, right):
        self.data, self.right = data.pin_memory() if device == "cuda" else data, right
        self.inputs = data.to(device)   # which keeps the format; a capture runs them first
        self.stages = stages
        with torch.no_grad():
            self.forward = networks.captured(lambda: stages(self.inputs), count) if graph else self.eager

    def eager(self):
        result = None
        for result in self.stages(self.inputs):
            pass
        return result

    def request(self):
        with torch.no_grad():
            self.inputs.copy_(self.data, non_blocking=True)
            return self.forward().cpu()

    def warm(self, times=3):
        for _ in range(times):
            self.request()

    def leave(self):
        pass

    def wrong(self):
        return not self.right(self.request())


class Training:
    """step() is not waited for; a mark of it is."""

    def __init__(self, device, network, loss_of):
        self.device, self.loss = device, None
        self.once, _ = networks.trained(network, loss_of)

    def step(self):
        self.loss = self.once()

    def mark(self):
        """wait() of it returns once all steps so far are over."""
        if self.device != "cuda":
            return Past()
        event = torch.cuda.Event()
        event.record()
        event.wait = event.synchronize
        return event

    def warm(self, times=3):
        for _ in range(times):
            self.step()
        self.mark().wait()

    def leave(self):
        """What a step needs besides the weights is free for other processes until the next one."""
        if self.device == "cuda":
            torch.cuda.empty_cache()

    def wrong(self):
        return self.loss is None or not bool(torch.isfinite(self.loss))


class Past:
    def wait(self):
        pass


def finite(logits):
    return bool(torch.isfinite(logits).all())


def decoded(tokens):
    return tokens.shape[-1] == TOKENS and bool((tokens >= 0).all())


def resnet50(device, batch, graph):
    network = networks.resnet50(device).to(number_type(device)).eval()
    images = torch.randn(batch, 3, 224, 224).to(number_type(device)).to(memory_format=torch.channels_last)
    return Service(device, images, lambda inputs: (network(inputs) for _ in range(1)), 1, graph, finite)


def bert(device, batch, graph):
    network = networks.bert(device).to(number_type(device)).eval()
    tokens = torch.randint(0, VOCABULARY, (batch, LENGTH))
    stages = lambda inputs: (network(input_ids=inputs).logits[:, 0] for _ in range(1))   # noqa: E731
    return Service(device, tokens, stages, 1, graph, finite)


def decoder(make):
    def service(device, batch, graph):
        network = make(device, torch.bfloat16 if device == "cuda" else torch.float32)
        tokens = torch.randint(0, VOCABULARY, (batch, PROMPT))
        return Service(device, tokens, lambda inputs: networks.decode(network, inputs, TOKENS), TOKENS, graph,
                       decoded)
    return service


def resnet50_training(device, batch):
    images = torch.randn(batch, 3, 224, 224, device=device).to(memory_format=torch.channels_last)
    labels = torch.randint(0, 1000, (batch,), device=device)
    return Training(device, networks.resnet50(device).train(),
                    lambda network: F.cross_entropy(network(images), labels))


def bert_training(device, batch):
    tokens = torch.randint(0, VOCABULARY, (batch, LENGTH), device=device)
    return Training(device, networks.bert(device).train(),
                    lambda network: network(input_ids=tokens, labels=tokens).loss)


SERVICES = {"resnet50": resnet50, "bert": bert, "gpt2": decoder(networks.gpt2),
            "llama": decoder(networks.llama)}
TRAININGS = {"resnet50": resnet50_training, "bert": bert_training}


def number_type(device):
    return torch.half if device == "cuda" else torch.float32


def prepare(device):
    torch.manual_seed(1)
    torch.backends.cudnn.benchmark = False   # which would choose other kernels in other processes
    if device == "cuda":
        torch.zeros(1, device=device)
    else:
        torch.set_num_threads(max(1, (os.cpu_count() or 2) // 2))


def make(name, device):
    program = parse(name)
    torch.manual_seed(1)
    if program.training:
        return TRAININGS[program.network](device, program.batch)
    return SERVICES[program.network](device, program.batch, program.graph)


def settle(device):
    """Raises what an earlier failure has left of the context."""
    if device == "cuda":
        torch.cuda.synchronize()
