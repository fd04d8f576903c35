#!/usr/bin/env python3
"""Programs with another root folder, process numbers and C library use the host's server.

    containers.py SMT PROGRAM SCENARIO

A container is made by unshare and chroot: a root of this system's C library and PROGRAM alone, with the
mounts of docs/install.md. The server is of several users (tests/simulated/machine_of_users.py), on the
simulated device. Only root can start it, where namespaces can be made and other users reach the build (else
exit code 77). releases.py has roots of other systems.
"""
import json
import os
import pathlib
import platform
import shutil
import struct
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "simulated"))
from machine_of_users import ALICE, SERVER, Machine, Skipped, check_others, name, run_scenario  # noqa: E402
from place import PATIENCE, finish   # noqa: E402

INSIDE = "/usr/lib/smt"
LOADER = "lib64/ld-linux-x86-64.so.2"
LIBRARIES = ("libc.so.6", "libpthread.so.0", "libdl.so.2")
VARIABLES = {"SMT_DEVICE": "sim", "SMT_TENANT": "train", "LD_LIBRARY_PATH": f"{INSIDE}/cudart"}
PRELOADED = {**VARIABLES, "LD_PRELOAD": f"{INSIDE}/libsmt.so"}
# What begins inside: it makes the mounts, and becomes the root's program.
ENTER = """
import json, os, subprocess, sys
root, mounts, user, group, variables = json.loads(sys.argv[1])
for outside, inside in mounts:
    subprocess.run(["mount", "--bind", "-o", "ro", outside, root + inside], check=True)
subprocess.run(["mount", "-t", "proc", "proc", root + "/proc"], check=True)
os.chroot(root)
os.chdir("/")
if user is not None:
    os.setgroups([group])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)
os.execve("/program", ["/program"], variables)
"""


def make_room(root):
    for folder in "run/smt", "usr/lib/smt", "proc":
        (root / folder).mkdir(parents=True, exist_ok=True)


def root_of_host(folder, program):
    """This system's C library and the program; no libstdc++, no shell."""
    root = folder / "root"
    libraries = root / "lib/x86_64-linux-gnu"
    libraries.mkdir(parents=True)
    (root / "lib64").mkdir()
    shutil.copy("/" + LOADER, root / LOADER)
    listed = subprocess.run(["ldconfig", "-p"], check=True, capture_output=True, text=True).stdout
    places = {line.split()[0]: line.split(" => ")[1] for line in reversed(listed.splitlines())
              if "x86-64" in line and " => " in line}
    for library in LIBRARIES:
        shutil.copy(places[library], libraries / library)
    shutil.copy(program, root / "program")
    make_room(root)
    return root


def unshare(rootless):
    """With namespaces of its own; rootless: the user is root inside, and keeps the groups."""
    return ["unshare", *(["--user", "--map-root-user"] if rootless else []), "--mount", "--pid", "--fork"]


class Container:
    """Its program has computed, and waits for the end of its input."""

    def __init__(self, machine, root, mounts, variables=None, rootless=False):
        who = [None, None] if rootless else [ALICE, SERVER]
        if rootless:
            os.chown(root / "run", ALICE, ALICE)   # as all of an image: root's inside
        inside = ["/usr/bin/python3", "-c", ENTER,
                  json.dumps([str(root), mounts, *who, variables or PRELOADED])]
        self.begin(machine, root, [*unshare(rootless), *inside], ALICE if rootless else 0)

    def begin(self, machine, root, command, user):
        self.machine, self.root = machine, root
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, **machine.as_user(user))

    def check(self, glibc, tenant=None, **settings):
        said = self.process.stdout.readline()
        assert said == f"glibc {glibc}: 1000 of 1000 are right\n", said + self.process.communicate()[0]
        server, = map(json.loads, self.machine.command(ALICE, "status", "--json", **settings).splitlines())
        shown, = [each for each in server["tenants"] if each["tenant"] == (tenant or name(ALICE))]
        assert shown["launches"] == 1, shown
        assert os.path.samefile(f"/proc/{shown['pid']}/exe", self.root / "program"), "the host's number"
        spaces = [os.readlink(f"/proc/{pid}/ns/pid") for pid in (shown["pid"], "self")]
        assert spaces[0] != spaces[1], (shown, spaces)
        finish(self.process)


def libraries_of(smt):
    return str(pathlib.Path(smt).parent.parent / "lib")


def recipe(machine):
    """The mounts of docs/install.md."""
    return [[str(machine.folder), "/run/smt"], [libraries_of(machine.smt), INSIDE]]


def in_this_system(smt, program, check, rootless=False):
    """check(machine, root, version of the C library); rootless: with containers that a user starts."""
    check_others(smt)
    user = {"user": ALICE, "group": ALICE, "extra_groups": [SERVER]} if rootless else {}
    probe = subprocess.run([*unshare(rootless), "--mount-proc", "true"], capture_output=True, text=True,
                           cwd="/", **user)
    if probe.returncode != 0:
        raise Skipped(f"namespaces cannot be made here: {probe.stderr.strip()}")
    with Machine(smt, pathlib.Path(smt).parent) as machine:
        check(machine, root_of_host(machine.root, program), platform.libc_ver()[1])


def by_root(smt, program):
    """Root starts the container, for a user: podman run --user."""
    in_this_system(smt, program, lambda machine, root, glibc:
                   Container(machine, root, recipe(machine)).check(glibc))


def by_user(smt, program):
    """A user starts it, and is root inside: rootless podman."""
    in_this_system(smt, program, lambda machine, root, glibc:
                   Container(machine, root, recipe(machine), rootless=True).check(glibc), rootless=True)


def read_specification(text):
    """Mounts and variables, as an engine reads the file: what CDI's schema asks for is there."""
    specification = json.loads(text)
    assert set(specification) == {"cdiVersion", "kind", "devices"}, specification
    assert specification["cdiVersion"] == "0.3.0" and specification["kind"] == "smt/gpu"
    device, = specification["devices"]
    assert set(device) == {"name", "containerEdits"} and device["name"] == "all", device
    edits = device["containerEdits"]
    assert set(edits) == {"env", "mounts"}, edits
    for mount in edits["mounts"]:
        assert set(mount) == {"hostPath", "containerPath", "options"} and "ro" in mount["options"], mount
        assert os.path.isabs(mount["containerPath"]) and os.path.isdir(mount["hostPath"]), mount
    return ([[mount["hostPath"], mount["containerPath"]] for mount in edits["mounts"]],
            dict(line.split("=", 1) for line in edits["env"]))


def own_server(smt, program):
    """A user's own server, in a folder that only the user may enter."""
    def check(machine, root, glibc):
        own = machine.root / "own"
        own.mkdir(mode=0o700)
        os.chown(own, ALICE, ALICE)
        machine.command(ALICE, "server", "start", SMT_RUNTIME_DIR=str(own))
        try:
            mounts, variables = read_specification(machine.command(ALICE, "cdi", SMT_RUNTIME_DIR=str(own)))
            assert variables["SMT_RUNTIME_DIR"] == str(own) and "SMT_SYSTEM_DIR" not in variables, variables
            (root / str(own)[1:]).mkdir(parents=True)
            Container(machine, root, mounts, {**VARIABLES, **variables}, rootless=True).check(
                glibc, "train", SMT_RUNTIME_DIR=str(own))
            assert machine.status(ALICE)[0] == {}, "the system's server was asked"
        finally:
            machine.command(ALICE, "server", "stop", SMT_RUNTIME_DIR=str(own))
    in_this_system(smt, program, check, rootless=True)


def device_interface(smt, program):
    """What `smt cdi` prints is all that a container needs, wherever the sockets are."""
    def check(machine, root, glibc):
        mounts, variables = read_specification(machine.command(ALICE, "cdi"))
        assert mounts == [[str(machine.folder), str(machine.folder)], [libraries_of(smt), INSIDE]], mounts
        assert variables == {"LD_PRELOAD": f"{INSIDE}/libsmt.so", "SMT_SYSTEM_DIR": str(machine.folder)}
        (root / str(machine.folder)[1:]).mkdir(parents=True)
        Container(machine, root, mounts, {**VARIABLES, **variables}).check(glibc)
        machine.environment.pop("SMT_SYSTEM_DIR")
        said = subprocess.run([smt, "cdi"], check=True, capture_output=True, **machine.as_user(ALICE)).stdout
        edits = json.loads(said)["devices"][0]["containerEdits"]
        assert edits["mounts"][0]["hostPath"] == edits["mounts"][0]["containerPath"] == "/run/smt", edits
        assert edits["env"] == [f"LD_PRELOAD={INSIDE}/libsmt.so"], edits
    in_this_system(smt, program, check)


def program_file(path, loader):
    """A program for x86-64 that ends with 0; without a loader it is a static one."""
    base, code = 0x400000, b"\x31\xff\xb8\x3c\x00\x00\x00\x0f\x05"   # exit(0)
    name = loader.encode() + b"\0" if loader else b""
    segments = 2 if loader else 1
    start = 64 + 56 * segments
    size = start + len(name) + len(code)
    header = struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\x02\x01\x01", 2, 62, 1, base + start + len(name), 64,
                         0, 0, 64, 56, segments, 0, 0, 0)
    interpreter = struct.pack("<IIQQQQQQ", 3, 4, start, base + start, base + start, len(name), len(name), 1)
    load = struct.pack("<IIQQQQQQ", 1, 5, 0, base, base, size, size, 0x1000)
    path.write_bytes(header + (interpreter if loader else b"") + load + name + code)
    path.chmod(0o755)
    return path


def other_loaders(smt, _):
    """`smt run` refuses programs of musl's, and says what it cannot do for static ones."""
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)

        def run(file):
            environment = {k: v for k, v in os.environ.items() if not k.startswith("SMT_")}
            return subprocess.run([smt, "run", "--device", "sim", "--", file], capture_output=True, text=True,
                                  timeout=PATIENCE, env={**environment, "SMT_RUNTIME_DIR": str(folder)})

        musl = run(program_file(folder / "musl", "/lib/ld-musl-x86_64.so.1"))
        assert musl.returncode == 1 and musl.stderr == (
            f"smt run: {folder}/musl is linked with musl (its loader is /lib/ld-musl-x86_64.so.1), and "
            "libsmt.so works with glibc alone: build the program with glibc, 2.31 or newer\n"), musl
        static = run(program_file(folder / "static", None))
        assert static.returncode == 0 and static.stderr.count("\n") == 1, static
        assert "static is statically linked, so libsmt.so cannot be preloaded into it" in static.stderr
        usual = run("/bin/true")
        assert (usual.returncode, usual.stderr) == (0, ""), usual


if __name__ == "__main__":
    sys.exit(run_scenario(globals()))
