"""NVIDIA's Multi-Process Service, for the time of a `with`."""
import os
import subprocess


class Mps:
    """A daemon of our own, where the mode wants one."""

    def __init__(self, mode):
        self.mode, self.variables = mode, {}

    def client(self, priority):
        return ({"CUDA_MPS_CLIENT_PRIORITY": "0" if priority == "high" else "1"}
                if self.mode == "mps-priority" else {})

    def __enter__(self):
        if self.mode.startswith("mps"):
            self.variables = {"CUDA_MPS_PIPE_DIRECTORY": "/tmp/smt-mps-pipe",
                              "CUDA_MPS_LOG_DIRECTORY": "/tmp/smt-mps-log"}
            for folder in self.variables.values():
                os.makedirs(folder, exist_ok=True)
            subprocess.run(["nvidia-cuda-mps-control", "-d"], env={**os.environ, **self.variables},
                           timeout=20, check=False)
        return self

    def __exit__(self, *_):
        if self.variables:
            subprocess.run(["nvidia-cuda-mps-control"], input=b"quit\n", env={**os.environ, **self.variables},
                           timeout=30, check=False)
