#!/usr/bin/env python3
"""A package on a clean Debian, from its installation to nothing left of it:

    clean_system.py FILE.deb|FILE.whl FOLDER [--suite SUITE]

debootstrap makes a minimal root of SUITE (bookworm) in FOLDER, once; let it be outside of the tree, whose
files tests read. In a copy of the root, with processes and mounts of its own, root installs the package, or a
plain user does into a virtual environment; that user runs the demo and a program, and makes a mistake; the
package is removed, and the root has the files of before. Needs root, debootstrap and Debian's archive, so no
test runs it. Says what remains."""

import argparse
import hashlib
import os
import pathlib
import shutil
import stat
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parents[2]
USER, USER_ID = "tester", 1000
HOME = f"home/{USER}"
# What apt and dpkg keep of any package that was ever there.
RECORDS = ("var/lib/apt/", "var/lib/dpkg/", "var/cache/apt/", "var/cache/debconf/", "var/cache/ldconfig/",
           "var/log/", "etc/ld.so.cache")
# What a user's programs keep: docs/install.md.
USERS = (f"{HOME}/.cache", f"{HOME}/.cache/smt", f"tmp/smt-{USER_ID}")
LONG = 1200
# A file system of its own for shared memory; then words in the root.
ENTER = 'mount -t tmpfs none "$0/dev/shm" && exec chroot "$@"'


class Root:
    """A copy of a clean system. What a call leaves running ends with it."""

    def __init__(self, base, folder):
        self.path = folder / "root"
        subprocess.run(["cp", "-a", base, self.path], check=True)

    def run(self, script, user=None, code=0):
        who = [f"--userspec={user}:{user}"] if user else []
        home = f"/{HOME}" if user else "/root"
        words = ["unshare", "--mount", "--pid", "--ipc", "--fork", "--kill-child",
                 f"--mount-proc={self.path}/proc", "sh", "-c", ENTER, self.path, *who, self.path,
                 "sh", "-e", "-u", "-c", f"cd {home}; {script}"]
        done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              stdin=subprocess.DEVNULL, timeout=LONG,
                              env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": home, "LANG": "C.UTF-8",
                                   "DEBIAN_FRONTEND": "noninteractive"})
        assert done.returncode == code, f"{script}: exit code {done.returncode}, not {code}:\n{done.stdout}"
        return done.stdout

    def packages(self):
        return set(self.run("dpkg-query -W -f '${Package}\\n'").split())

    def files(self):
        """What each path is: modes and owners, files by their content."""
        found = {}
        for folder, folders, names in os.walk(self.path):
            if pathlib.Path(folder) == self.path:
                folders[:] = [name for name in folders if name not in ("proc", "sys", "dev")]
            for name in folders + names:
                path = pathlib.Path(folder, name)
                status = path.lstat()
                what = ""
                if stat.S_ISLNK(status.st_mode):
                    what = os.readlink(path)
                elif stat.S_ISREG(status.st_mode):
                    what = hashlib.sha256(path.read_bytes()).hexdigest()
                found[str(path.relative_to(self.path))] = (status.st_mode, status.st_uid, status.st_gid, what)
        return found


def differences(before, after):
    return sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))


def below(path, places):
    return any(path == place.rstrip("/") or path.startswith(place.rstrip("/") + "/") for place in places)


def make_base(suite, folder):
    base = folder / suite
    if not (base / HOME).is_dir():
        shutil.rmtree(base, ignore_errors=True)
        base.mkdir(parents=True)
        subprocess.run(["debootstrap", "--variant=minbase", suite, base], check=True, timeout=LONG,
                       stdout=subprocess.DEVNULL)
        subprocess.run(["chroot", base, "useradd", "--uid", str(USER_ID), "--create-home", USER], check=True)
    return base


def check_use(root, smt):
    """As a plain user. `smt`: shell words that are the command."""
    demo = root.run(f"{smt} demo", user=USER_ID)
    for what in ("simulated device", "alice", "bob", "managed by PTX"):
        assert what in demo, f"the demo says nothing of {what}:\n{demo}"
    assert "all is well" in root.run(f"{smt} doctor", user=USER_ID)
    assert "unknown command 'rnu'" in root.run(f"{smt} rnu", user=USER_ID, code=2)


def check_deb(root, package):
    root.run("apt-get update")
    before, packages = root.files(), root.packages()
    root.run(f"apt-get install -y /tmp/{package.name}")
    installed = [path for path in root.run("dpkg -L smt").split() if path != "/."]
    check_use(root, "smt")
    used = [path for path in differences(before, root.files()) if below(path, ["home", "tmp", "root"])]
    assert not used, f"the demo leaves {used}"
    root.run("apt-get remove -y smt")
    kept = [path for path in installed if path[1:] not in before and (root.path / path[1:]).exists()]
    assert not kept, f"after apt-get remove there are {kept}"
    root.run("apt-get purge -y smt")   # what dpkg knows of it
    assert "no packages found" in root.run("dpkg-query -W smt", code=1)
    root.run("apt-get autoremove -y --purge")
    for kept in sorted(root.packages() - packages):   # another package recommends it
        print(f"autoremove keeps {kept}, which was installed with smt")
        root.run(f"apt-get purge -y {kept}")
    changed = differences(before, root.files())
    left = [path for path in changed if not below(path, RECORDS)]
    assert not left, f"after purge and autoremove these are new, gone or others: {left}"
    print(f"{len(installed)} files and folders installed, the demo run, and removed; {len(changed)} files\n"
          f"are others than before, all of {', '.join(RECORDS)}")


def check_wheel(root, package):
    root.run("apt-get update && apt-get install -y --no-install-recommends python3-venv")
    root.run("python3 -m venv env && env/bin/python -m pip --version", user=USER_ID)
    before = root.files()
    smt = "env/bin/python -m smt"
    root.run(f"env/bin/python -m pip install --no-index /tmp/{package.name}", user=USER_ID)
    installed = [path for path in root.files() if path not in before]
    check_use(root, smt)
    shutil.copy(SOURCE / "tests/install/wheel_program.py", root.path / "tmp/program.py")
    assert "the sums are right" in root.run(
        f"{smt} run --device sim /tmp/program.py; {smt} server stop", user=USER_ID)
    (root.path / "tmp/program.py").unlink()
    root.run("env/bin/python -m pip uninstall -y smt", user=USER_ID)
    changed = differences(before, root.files())
    left = [path for path in changed if not below(path, USERS) and "__pycache__" not in path]
    assert not left, f"after pip uninstall these are new, gone or others: {left}"
    assert not [path for path in changed if "env/" in path and "smt" in path], changed
    users = ", ".join(path for path in USERS if (root.path / path).exists())
    print(f"{len(installed)} files and folders installed, the demo and a program run, and removed; left are\n"
          f"the user's {users}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("package", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--suite", default="bookworm")
    given = parser.parse_args()
    checks = {".deb": check_deb, ".whl": check_wheel}
    if given.package.suffix not in checks or not given.package.is_file():
        sys.exit(f"{given.package} is no .deb and no .whl that is there")
    if os.geteuid() != 0 or not shutil.which("debootstrap"):
        sys.exit("needs root and debootstrap (apt-get install debootstrap)")
    base = make_base(given.suite, given.folder.resolve())
    with tempfile.TemporaryDirectory(dir=base.parent) as folder:
        root = Root(base, pathlib.Path(folder))
        shutil.copy(given.package, root.path / "tmp")
        checks[given.package.suffix](root, given.package)


if __name__ == "__main__":
    main()
