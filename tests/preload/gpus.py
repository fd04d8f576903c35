#!/usr/bin/env python3
"""Two GPUs with a driver in the programs, as on a machine with GPUs (tests/simulated/gpus.py: without one).

    gpus.py SMT FAKE_DRIVER SCENARIO

As scenarios.py, on whose helpers it stands.
"""

import json
import os
import subprocess

from run import PATIENCE, smt
from scenarios import main

UUIDS = ["GPU-f0f1f2f3-f4f5-f6f7-f8f9-fafbfcfdfeff", "GPU-f1f1f2f3-f4f5-f6f7-f8f9-fafbfcfdfeff"]
KEYS = [uuid.removeprefix("GPU-").replace("-", "") for uuid in UUIDS]


def two_gpus(place):
    """Each GPU's server is named by its UUID and sees that GPU only; --gpu says which one a program gets."""
    os.environ.update(SMT_REAL_DRIVER=place.driver, SMT_FAKE_GPUS="2", SMT_DEVICE="gpu")
    for gpu in "0", "1", "any", "any":
        place.run("scale", tenant=f"on{gpu}", options=("--gpu", gpu))
    servers = [json.loads(line) for line in smt(place.program, "status", "--json").splitlines()]
    assert sorted(server["server"] for server in servers) == KEYS, servers
    for number, key in enumerate(KEYS):
        log = (place.folder / f"{key}.log").read_text()
        assert f"(on{number}, pid" in log and f"(on{1 - number}, pid" not in log, log
    shown = [smt(place.program, "run", "--gpu", number, "--", "printenv", "CUDA_VISIBLE_DEVICES").strip()
             for number in "01"]
    assert shown == UUIDS, shown
    os.environ["CUDA_VISIBLE_DEVICES"] = "1"
    place.run("scale", tenant="shown")
    assert "(shown, pid" in (place.folder / f"{KEYS[1]}.log").read_text()
    wrong = subprocess.run([place.program, "run", "--gpu", "1", "true"], capture_output=True, text=True,
                           timeout=PATIENCE)
    assert wrong.returncode == 1 and "there is 1 GPU, no GPU 1" in wrong.stderr, wrong
    os.environ["CUDA_VISIBLE_DEVICES"] = "5"
    wrong = subprocess.run([place.program, "run", "--gpu", "0", "true"], capture_output=True, text=True,
                           timeout=PATIENCE, env={k: v for k, v in os.environ.items() if k != "SMT_DRIVER"})
    assert wrong.returncode == 1 and "CUDA_VISIBLE_DEVICES is '5'" in wrong.stderr, wrong


if __name__ == "__main__":
    main([two_gpus])
