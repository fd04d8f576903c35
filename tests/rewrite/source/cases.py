"""The cases beside this file, and how to rewrite one."""
import dataclasses
import pathlib
import subprocess

FOLDER = pathlib.Path(__file__).parent / "cases"


@dataclasses.dataclass
class Case:
    path: pathlib.Path
    dialect: str          # nvrtc or nvcc
    names: list           # wanted instantiations
    options: list         # of the compiler
    oldest: int = 75      # the architecture that it needs


@dataclasses.dataclass
class Result:
    text: str
    report: str           # without the symbols
    kernels: list         # (name, symbol, managed symbol or "")
    failed: bool


def read(path):
    words = path.read_text().splitlines()[0].removeprefix("//!").split()
    assert words and words[0] in ("nvrtc", "nvcc"), f"{path}: the first line says nvrtc or nvcc"
    names = [word.removeprefix("--name=") for word in words[1:] if word.startswith("--name=")]
    oldest = max((int(word.removeprefix("sm_")) for word in words if word.startswith("sm_")), default=75)
    options = [word for word in words[1:] if not word.startswith(("--name=", "sm_"))]
    return Case(path, words[0], names, options, oldest)


def all_cases():
    return [read(path) for path in sorted(FOLDER.glob("*.cu"))]


def rewrite(program, case):
    command = [pathlib.Path(program).resolve(), case.path.name, "--symbols",
               *(f"--name={name}" for name in case.names)]
    if case.dialect == "nvrtc":
        command.append("--nvrtc")
    done = subprocess.run([*command, "--", *case.options], cwd=case.path.parent, capture_output=True,
                          text=True, timeout=300)
    assert done.returncode in (0, 1), f"{case.path.name}: exit code {done.returncode}\n{done.stderr}"
    lines = done.stderr.splitlines()
    symbols = [line.split(" ")[4:] for line in lines if line.startswith("    ")]
    report = [line for line in lines if not line.startswith("    ")]
    kernels = [(line, *pair) for line, pair in zip(report, symbols)]
    return Result(done.stdout, "\n".join(report) + "\n", kernels, done.returncode == 1)
