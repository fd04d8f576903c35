#!/usr/bin/env python3
"""Root folders with the C libraries of Debian's releases: roots.py FOLDER BUILD CUDA_INCLUDE

Makes FOLDER/bullseye (glibc 2.31), bookworm (2.36), trixie (2.41) and musl, of packages that are fetched
(22 MB in all) and unpacked, not installed. Each has /program: program.cpp, compiled against that release's C
library; in musl, a program of musl's that prints a line. Roots that are there already are kept.
"""
import os
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg"
GLIBC = ["libc6", "libgcc-s1", "libc6-dev", "linux-libc-dev"]
MUSL = ["musl", "musl-dev"]
RELEASES = {"bullseye": ("bullseye", GLIBC), "bookworm": ("bookworm", GLIBC), "trixie": ("trixie", GLIBC),
            "musl": ("bookworm", MUSL)}
TRIPLE = "x86_64-linux-gnu"
HELLO = '#include <stdio.h>\nint main() { puts("musl runs"); return 0; }\n'


def run(*words, **options):
    subprocess.run([str(word) for word in words], check=True, **options)


def archive():
    """Where this system gets its own packages from."""
    lines = subprocess.run(["apt-get", "indextargets", "--format", "$(REPO_URI) $(COMPONENT) $(ORIGIN)",
                            "Created-By: Packages"], check=True, capture_output=True, text=True).stdout
    for line in lines.splitlines():
        uri, component, origin = line.split(" ")
        if (component, origin) == ("main", "Debian") and "security" not in uri:
            return uri
    sys.exit("roots.py: this system has no list of Debian's packages: run apt-get update first, on Debian")


def fetch(release, packages, place):
    for each in "lists/partial", "cache/archives/partial", "packages":
        (place / each).mkdir(parents=True, exist_ok=True)
    (place / "status").touch()
    (place / "sources.list").write_text(f"deb [signed-by={KEYS}] {archive()} {release} main\n")
    apt = ["apt-get", "-qq", "-o", f"Dir::Etc::sourcelist={place}/sources.list",
           "-o", "Dir::Etc::sourceparts=/dev/null", "-o", f"Dir::State::lists={place}/lists",
           "-o", f"Dir::Cache={place}/cache", "-o", f"Dir::State::status={place}/status",
           "-o", "APT::Sandbox::User=root"]
    run(*apt, "update", cwd=place)
    run(*apt, "download", *packages, cwd=place / "packages")
    return sorted((place / "packages").glob("*.deb"))


def lay_out(root, packages):
    """Releases with a merged /usr have their files there, and links that are made when they are installed."""
    for package in packages:
        run("dpkg", "-x", package, root)
    for name in "lib", "lib64":
        if not (root / name).exists():
            (root / name).symlink_to(f"usr/{name}")
    for link in (path for path in (root / "lib64").glob("*") if path.is_symlink()):
        target = os.readlink(link)
        if target.startswith("/"):   # the linker would look for it outside
            link.unlink()
            link.symlink_to(os.path.relpath(root / target[1:], link.resolve().parent))


def compile_program(root, build, cuda):
    libraries = root / "usr/lib" / TRIPLE
    run("g++", f"--sysroot={root}", f"-B{libraries}", f"-L{libraries}", "-O1", "-fno-exceptions", "-fno-rtti",
        "-nodefaultlibs", "-isystem", cuda, "-o", root / "program", HERE / "program.cpp",
        build / "lib/cudart/libcudart.so.12", build / "lib/libsmt.so", "-lc")


def compile_for_musl(root):
    source, libraries = root / "hello.c", root / "usr/lib/x86_64-linux-musl"
    source.write_text(HELLO)
    run("gcc", "-nostdinc", "-isystem", root / "usr/include/x86_64-linux-musl", "-nostdlib", "-no-pie", "-o",
        root / "program", libraries / "crt1.o", libraries / "crti.o", source,
        f"-L{root}/lib/x86_64-linux-musl", "-l:libc.so", libraries / "crtn.o",
        "-Wl,-dynamic-linker,/lib/ld-musl-x86_64.so.1")


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    folder, build, cuda = (pathlib.Path(each).resolve() for each in sys.argv[1:])
    for name, (release, packages) in RELEASES.items():
        root = folder / name
        if not root.exists():
            print(f"== {name}: {' '.join(packages)} of {release}", flush=True)
            unfinished = folder / f"{name}.part"
            shutil.rmtree(unfinished, ignore_errors=True)
            lay_out(unfinished, fetch(release, packages, folder / "fetched" / name))
            unfinished.rename(root)
        compile_for_musl(root) if name == "musl" else compile_program(root, build, cuda)


if __name__ == "__main__":
    main()
