#!/usr/bin/env python3
"""Programs of other C libraries in containers, by unshare and by podman: releases.py SMT FOLDER_OF_roots.py

For each root: as containers.py does it, started by root and by a user; and where podman is installed, by the
two mounts of docs/install.md and by the device of `smt cdi` (in /var/run/cdi for as long as that takes). A
program of musl's is refused by musl's loader, and by `smt run`. Prints a line for each; needs root.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys

from containers import (ALICE, INSIDE, PATIENCE, PRELOADED, SERVER, VARIABLES, Container, Machine,
                        libraries_of, make_room, recipe)

DEVICE = pathlib.Path("/var/run/cdi/smt.json")
# Two limits are lower than podman's own, which a system may not grant.
PODMAN = ["run", "--rm", "--interactive", "--network", "none", "--ulimit", "nofile=1024:1024", "--ulimit",
          "nproc=1024:1024"]


def version_in(root):
    library, = root.glob("lib/x86_64-linux-gnu/libc.so.6")
    return re.search(rb"GNU C Library \(Debian GLIBC ([0-9.]+)-", library.read_bytes())[1].decode()


class Podman(Container):
    def __init__(self, machine, root, how, variables):
        self.begin(machine, root, podman(root, how, variables), 0)


def podman(root, how, variables):
    runtime = ["--runtime", "runc"] if shutil.which("runc") else []   # crun takes no hybrid cgroups
    named = [word for name, value in variables.items() for word in ("--env", f"{name}={value}")]
    return ["podman", *runtime, *PODMAN, "--user", f"{ALICE}:{SERVER}", *how, *named, "--rootfs", str(root),
            "/program"]


def by_mounts(machine):
    return [word for outside, inside in recipe(machine) for word in ("--volume", f"{outside}:{inside}:ro")]


def by_podman(machine, root, glibc):
    Podman(machine, root, by_mounts(machine), PRELOADED).check(glibc)
    print(f"{root.name}: podman with two mounts: right, glibc {glibc}", flush=True)
    DEVICE.parent.mkdir(parents=True, exist_ok=True)
    file = DEVICE.open("x")   # never over an administrator's
    try:
        with file:
            file.write(machine.command(ALICE, "cdi"))
        Podman(machine, root, ["--device", "smt/gpu=all"], VARIABLES).check(glibc)
    finally:
        DEVICE.unlink()
    print(f"{root.name}: podman with the device of smt cdi: right, glibc {glibc}", flush=True)


def of_glibc(machine, root, with_podman):
    make_room(root)
    glibc = version_in(root)
    Container(machine, root, recipe(machine), rootless=True).check(glibc)
    os.chown(root / "run", 0, 0)
    Container(machine, root, recipe(machine)).check(glibc)
    print(f"{root.name}: unshare and chroot, by root and by a user: right, glibc {glibc}", flush=True)
    if with_podman:
        by_podman(machine, root, glibc)


def of_musl(machine, root, with_podman):
    make_room(root)
    inside = Container(machine, root, recipe(machine))
    said, _ = inside.process.communicate(timeout=PATIENCE)
    assert inside.process.returncode == 127 and "libsmt.so: __register_atfork: symbol not found" in said, said
    print(f"{root.name}: unshare and chroot: {said.splitlines()[0]}", flush=True)
    done = subprocess.run([machine.smt, "run", "--", root / "program"], capture_output=True, text=True)
    assert done.returncode == 1 and "is linked with musl" in done.stderr, done
    print(f"{root.name}: smt run: {done.stderr.strip()}", flush=True)


def main():
    if len(sys.argv) != 3 or os.geteuid() != 0:
        sys.exit(__doc__)
    smt, folder = os.path.realpath(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
    with_podman = shutil.which("podman") is not None
    if not with_podman:
        print("podman is not installed: left out", flush=True)
    elif os.path.lexists(DEVICE):
        sys.exit(f"{DEVICE} exists, and this writes one of its own: move it away for as long as this runs")
    roots = sorted(path.parent for path in folder.glob("*/program"))
    assert roots, f"no roots in {folder}: roots.py makes them"
    for root in roots:
        with Machine(smt, pathlib.Path(smt).parent) as machine:
            (of_musl if root.name == "musl" else of_glibc)(machine, root, with_podman)
    print(f"{len(roots)} roots: all as they should; {libraries_of(smt)}/libsmt.so was mounted as {INSIDE}")


if __name__ == "__main__":
    main()
