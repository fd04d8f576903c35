#!/usr/bin/env python3
"""Installs the build into a temporary prefix, moves the prefix, and uses smt from there.

    install_test.py CMAKE BUILD SOURCE LIBRARY_DIR PROGRAM_DIR      (both relative to the prefix)
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

PATIENCE = 30
DOCUMENTS = "share/doc/smt/"


def output_of(*words, code=0, **options):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True,
                          timeout=PATIENCE, **options)
    assert done.returncode == code, \
        f"{words}: exit code {done.returncode}, not {code}:\n{done.stdout}{done.stderr}"
    return done.stdout + done.stderr


def expected_files(build, source, libraries, programs):
    """What a prefix holds, and what it may hold. Parts that this build lacks (no Clang, no nvcc) are expected
    nowhere."""
    files = {"bin/smt", "bin/smtd", f"{libraries}/libsmt.so",
             *(f"{libraries}/cudart/libcudart.so.{version}" for version in ("13", "12", "11.0")),
             f"{programs}/smt-compile", f"{programs}/smt-keeper",
             f"{programs}/demo.sh",
             "lib/systemd/system/smtd@.service", "lib/sysusers.d/smt.conf",
             DOCUMENTS + "copyright", "share/bash-completion/completions/smt",
             "share/zsh/site-functions/_smt", "share/zsh/vendor-completions/_smt",
             "share/fish/vendor_completions.d/smt.fish"}
    files |= {f"share/man/man1/{page}.1" for page in ("smt", "smtd", "smt-rewrite", "smt-index")}
    files |= {DOCUMENTS + page.name for page in (source / "docs").glob("*.md")}
    for name in ("smt-rewrite", "smt-index"):
        if (build / "bin" / name).exists():
            files |= {f"bin/{name}", "include/smt/smt_worker.h"}
    if (build / "bin/smt-metrics").exists():
        files |= {f"{programs}/smt-metrics", f"{programs}/smt-ui", "share/doc/smt/grafana.json"}
    if (build / "bin/bench_remoting").exists():
        files.add(f"{programs}/bench_remoting")
    if (build / "lib/smt_spank.so").exists():
        files.add(f"{libraries}/smt_spank.so")
    examples = {f"{kind}/{name}" for kind in ("shared", "static") for name in ("nbody", "matrix_multiply")}
    return files | {f"{libraries}/examples/{each}" for each in examples
                    if (build / "examples" / each).exists()}


def check_files(prefix, expected):
    found = {str(path.relative_to(prefix)) for path in prefix.rglob("*") if not path.is_dir()}
    assert found == expected, f"missing: {sorted(expected - found)}; not expected: {sorted(found - expected)}"
    for name in found:
        path = prefix / name
        head = path.open("rb").read(4)
        if name.startswith("bin/") or name.endswith(("demo.sh", "smt-compile", "smt-keeper")):
            assert os.access(path, os.X_OK), f"{name} cannot be executed"
        if head == b"\x7fELF":
            dynamic = output_of("readelf", "-d", path)
            assert "RPATH" not in dynamic and "RUNPATH" not in dynamic, \
                f"{name} has a path of the build in it"


class Installed:
    """smt in a prefix, with a runtime folder, a home and an environment of its own."""

    def __init__(self, prefix, folder, libraries, programs):
        self.prefix, self.libraries, self.programs = prefix, prefix / libraries, prefix / programs
        self.environment = {"PATH": "/usr/bin:/bin", "HOME": folder, "SMT_RUNTIME_DIR": f"{folder}/runtime",
                            "SMT_SYSTEM_FILE": "/nonexistent",
                            "SMT_PROFILES": "none", "SMT_COMPILE": "wait=10", "LANG": "C.UTF-8"}
        pathlib.Path(self.environment["SMT_RUNTIME_DIR"]).mkdir(mode=0o700)

    def smt(self, *words, code=0):
        return output_of(self.prefix / "bin/smt", *words, code=code, env=self.environment)


def check_places(installed):
    """Every part that smt names is one of the prefix."""
    done = subprocess.run([installed.prefix / "bin/smt", "doctor"], env=installed.environment,
                          capture_output=True, text=True, timeout=PATIENCE)
    device, = json.loads(installed.smt("cdi"))["devices"]
    mounted = {mount["containerPath"]: mount["hostPath"] for mount in device["containerEdits"]["mounts"]}
    assert mounted["/usr/lib/smt"] == str(installed.libraries), mounted
    for what, place in [("libsmt.so", installed.libraries / "libsmt.so"),
                        ("smtd", installed.prefix / "bin/smtd"),
                        ("worker", installed.programs / "smt-compile"),
                        ("simulated", installed.libraries / "cudart/libcudart.so.13")]:
        assert re.search(rf"^ok +{re.escape(what)} .*{re.escape(str(place))}$", done.stdout,
                         re.MULTILINE), f"{what} is not {place}:\n{done.stdout}{done.stderr}"
    for what in ("NVRTC", "nvJitLink"):
        assert re.search(rf"^(ok|note) +{what} ", done.stdout, re.MULTILINE), done.stdout
    variables = installed.smt("run", "--device", "sim", "--", "env").splitlines()
    assert f"LD_PRELOAD={installed.libraries}/libsmt.so" in variables, variables
    assert f"LD_LIBRARY_PATH={installed.libraries}/cudart" in variables, variables


def check_programs(installed):
    """Those that smt becomes; none gets as far as its work."""
    if (installed.prefix / "bin/smt-rewrite").exists():
        assert "which file?" in installed.smt("rewrite", code=2)
        assert "0 images" in installed.smt("index", "--list")
    if (installed.programs / "bench_remoting").exists():
        done = subprocess.run([installed.prefix / "bin/smt", "bench", "remoting", "--help"],
                              env=installed.environment, capture_output=True, text=True, timeout=PATIENCE)
        assert "is not in" not in done.stderr, done.stderr


def check_server(installed):
    status = installed.smt("server", "status")
    pid = re.search(r"process +(\d+)", status)[1]
    assert os.readlink(f"/proc/{pid}/exe") == str(installed.prefix / "bin/smtd"), status


def check_kernels(installed):
    """They were managed, so the compile worker ran: the cache of this home is empty."""
    entries = [json.loads(line) for line in installed.smt("log", "--json").splitlines()]
    launches = [entry for entry in entries if entry["kind"] == "launch"]
    assert launches, "the journal has no launch"
    assert re.search(r"managed by PTX +step",
                     installed.smt("log", "--kernels")), installed.smt("log", "--kernels")


def main(cmake, build, source, libraries, programs):
    build, source = pathlib.Path(build), pathlib.Path(source)
    with tempfile.TemporaryDirectory() as folder:
        first, prefix = pathlib.Path(folder) / "first", pathlib.Path(folder) / "moved" / "further"
        output_of(cmake, "--install", build, "--prefix", first)
        prefix.parent.mkdir()
        first.rename(prefix)
        check_files(prefix, expected_files(build, source, libraries, programs))
        installed = Installed(prefix, folder, libraries, programs)
        check_places(installed)
        check_programs(installed)
        try:
            installed.smt("run", "--device", "sim", "--tenant", "installed", "--",
                          build / "bin/sim_mixed", "3")
            check_server(installed)
            check_kernels(installed)
            shared = build / "bin/gpu/shared/vector_add"   # of CUDA's runtime: nvcc makes it
            if shared.exists():
                installed.smt("run", "--device", "sim", "--", shared)
        finally:
            installed.smt("server", "stop")


if __name__ == "__main__":
    main(*sys.argv[1:])
