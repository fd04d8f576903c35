"""Names of programs: NETWORK[-graph][@BATCH] are services, NETWORK-train[@BATCH] trainings, any other name is
an example of the project."""
import collections
import re

# ms of a request or step natively and alone, about; --plan goes by them
GUESSES = {"resnet50": 6, "bert": 7, "gpt2": 90, "llama": 60, "resnet50-graph": 2, "bert-graph": 2,
           "gpt2-graph": 15, "llama-graph": 10, "resnet50-train": 60, "bert-train": 70}
BATCHES = {"resnet50": 64, "bert": 32}   # of trainings
NAME = re.compile(r"(resnet50|bert|gpt2|llama)(-graph|-train)?(?:@([1-9]\d*))?")

Program = collections.namedtuple("Program", "name network training graph batch guess_ms")


def parse(name):
    found = NAME.fullmatch(name)
    if not found:
        raise ValueError(f"no program {name}: NETWORK[-graph|-train][@BATCH], NETWORK of resnet50, bert, "
                         "gpt2, llama")
    network, kind, batch = found.groups()
    if kind == "-train" and network not in BATCHES:
        raise ValueError(f"{name}: there are trainings of {', '.join(BATCHES)}")
    usual = BATCHES[network] if kind == "-train" else 1
    guess = GUESSES[network + (kind or "")] * (int(batch or usual) / usual if kind == "-train" else 1)
    return Program(name, network, kind == "-train", kind == "-graph", int(batch or usual), guess)


def is_example(name):
    return not NAME.fullmatch(name)


def service(name):
    if parse(name).training:
        raise ValueError(f"{name} is no service")
    return name


def training(name):
    if not parse(name).training:
        raise ValueError(f"{name} is no training")
    return name
