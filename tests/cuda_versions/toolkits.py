#!/usr/bin/env python3
"""Older CUDA compilers and runtimes, laid out as toolkits: toolkits.py FOLDER [VERSION ...]

Makes FOLDER/cuda-VERSION for each VERSION (all: 11.8 12.4 12.8 12.9). Of each, compiler parts and runtime are
what PyPI's wheels have: ptxas, NVRTC, headers and the shared runtime. They have no nvcc, so nvcc and its
front end come from Debian's package nvidia-cuda-toolkit (non-free): 11.8 of bookworm, 12.4 of trixie. 12.8
and 12.9 are in no release of Debian: there nvcc 12.4 works with the headers, the ptxas and the runtime of
their own version, and NVRTC, which is of the version, makes PTX as their nvcc does.

Only the wheels of 12.9 have the static runtime, which is used for all of 12. 11.8's is in Debian's package
nvidia-cuda-dev (774 MB), which `--static-11.8` fetches. What is there already is not fetched again.
"""
import argparse
import pathlib
import shutil
import subprocess
import sys
import tempfile

WHEELS = {
    "11.8": ["nvidia-cuda-nvcc-cu11==11.8.89", "nvidia-cuda-runtime-cu11==11.8.89",
             "nvidia-cuda-cccl-cu11==11.8.89.post1", "nvidia-cuda-nvrtc-cu11==11.8.89"],
    "12.4": ["nvidia-cuda-nvcc-cu12==12.4.131", "nvidia-cuda-runtime-cu12==12.4.127",
             "nvidia-cuda-cccl-cu12==12.4.127.post1", "nvidia-cuda-nvrtc-cu12==12.4.127"],
    "12.8": ["nvidia-cuda-nvcc-cu12==12.8.93", "nvidia-cuda-runtime-cu12==12.8.90",
             "nvidia-cuda-cccl-cu12==12.8.90", "nvidia-cuda-nvrtc-cu12==12.8.93"],
    "12.9": ["nvidia-cuda-nvcc-cu12==12.9.86", "nvidia-cuda-runtime-cu12==12.9.79",
             "nvidia-cuda-cccl-cu12==12.9.27", "nvidia-cuda-nvrtc-cu12==12.9.86"],
}
FRONT_ENDS = {"11.8": ("bookworm", "11.8"), "12.4": ("trixie", "12.4"), "12.8": ("trixie", "12.4"),
              "12.9": ("trixie", "12.4")}
STATIC_OF_12 = "nvidia-cuda-runtime-cu12==12.9.79"
PROGRAMS = ["cudafe++", "fatbinary", "nvlink", "ptxas", "cuobjdump", "bin2c"]
PROFILE = """TOP = $(_HERE_)/..
NVVMIR_LIBRARY_DIR = $(TOP)/nvvm/libdevice
PATH += $(TOP)/nvvm/bin:$(_HERE_):
INCLUDES += "-I$(TOP)/include" $(_SPACE_)
LIBRARIES =+ $(_SPACE_) "-L$(TOP)/lib64"
CUDAFE_FLAGS +=
PTXAS_FLAGS +=
"""


def run(*words, **options):
    subprocess.run([str(word) for word in words], check=True, **options)


def say(text):
    print(f"== {text}", flush=True)


class Debian:
    """Packages of a suite's non-free part, fetched and unpacked without being installed, and without a change
    of the system's own lists."""
    def __init__(self, folder):
        self.folder = folder

    def apt(self, suite, command, *words):
        place = self.folder / suite
        for each in ("lists/partial", "cache/archives/partial"):
            (place / each).mkdir(parents=True, exist_ok=True)
        (place / "status").touch()
        (place / "sources.list").write_text(f"deb {self.archive()} {suite} non-free\n")
        run(command, "-qq", "-o", f"Dir::Etc::sourcelist={place}/sources.list",
            "-o", "Dir::Etc::sourceparts=/dev/null", "-o", f"Dir::State::lists={place}/lists",
            "-o", f"Dir::Cache={place}/cache", "-o", f"Dir::State::status={place}/status",
            "-o", "APT::Sandbox::User=root", *words, cwd=place)
        return place

    @staticmethod
    def archive():
        """Where this system gets its own packages from."""
        lines = subprocess.run(["apt-get", "indextargets", "--format",
                                "$(REPO_URI) $(COMPONENT) $(ORIGIN) $(CODENAME)",
                                "Created-By: Packages"], check=True, capture_output=True, text=True).stdout
        for line in lines.splitlines():
            uri, component, origin, codename = line.split(" ")
            if (component, origin) == ("main", "Debian") and "-" not in codename:
                return uri
        sys.exit("toolkits.py: this system has no list of Debian's packages: run apt-get update first, "
                 "on Debian 12")

    def unpack(self, suite, package, target):
        say(f"fetching Debian's {package} of {suite}")
        self.apt(suite, "apt-get", "update")
        place = self.apt(suite, "apt-get", "download", package)
        found, = place.glob(f"{package}_*.deb")
        run("dpkg", "-x", found, place / "unpacked")
        found.unlink()
        target.parent.mkdir(parents=True, exist_ok=True)
        (place / "unpacked").rename(target)


def wheels(requirements, target):
    """All in one call: pip replaces a folder that several of them share."""
    say(f"fetching {' '.join(requirements)}")
    run(sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--only-binary", ":all:",
        "--disable-pip-version-check", "--root-user-action", "ignore", "--target", target, *requirements)


def merge(source, target):
    if source.is_dir():
        shutil.copytree(source, target, dirs_exist_ok=True, symlinks=True)


def front_end(debian, version, unpacked, place):
    suite, name = FRONT_ENDS[version]
    package = unpacked / f"toolkit-{name}"
    if not package.is_dir():
        debian.unpack(suite, "nvidia-cuda-toolkit", package)
    of_nvcc = package / "usr/lib/nvidia-cuda-toolkit"
    for folder in ("bin", "nvvm/bin", "lib64"):
        (place / folder).mkdir(parents=True, exist_ok=True)
    for program in PROGRAMS:
        if not (place / "bin" / program).exists():   # a wheel's goes before
            shutil.copy(package / "usr/bin" / program, place / "bin" / program)
    shutil.copy(of_nvcc / "bin/nvcc", place / "bin/nvcc")
    shutil.copy(of_nvcc / "bin/cicc", place / "nvvm/bin/cicc")
    merge(of_nvcc / "bin/crt", place / "bin/crt")
    if not (place / "nvvm/libdevice").is_dir():
        merge(of_nvcc / "libdevice", place / "nvvm/libdevice")
    (place / "bin/nvcc.profile").write_text(PROFILE)


def static_runtime(debian, version, unpacked, place, wanted):
    if version != "11.8":
        parts = unpacked / "static-12"
        if not parts.is_dir():
            wheels([STATIC_OF_12], parts)
        folder = parts / "nvidia/cuda_runtime/lib"
    elif wanted:
        parts = unpacked / "dev-11.8"
        if not parts.is_dir():
            debian.unpack(FRONT_ENDS[version][0], "nvidia-cuda-dev", parts)
        folder = parts / "usr/lib/x86_64-linux-gnu"
    else:
        return
    shutil.copy(folder / "libcudart_static.a", place / "lib64")
    # nvlink 12.4 takes no newer part, and without relocatable device code it needs none.
    (place / "lib64/libcudadevrt.a").unlink(missing_ok=True)


def make(version, folder, debian, with_static):
    place, unpacked = folder / f"cuda-{version}", folder / "unpacked"
    finished = place / "finished"
    if finished.exists() and (version != "11.8" or not with_static or
                              (place / "lib64/libcudart_static.a").exists()):
        return
    parts = unpacked / f"wheels-{version}"
    shutil.rmtree(parts, ignore_errors=True)
    wheels(WHEELS[version], parts)
    for part in ("cuda_nvcc", "cuda_runtime", "cuda_cccl", "cuda_nvrtc"):
        for name, into in (("bin", "bin"), ("include", "include"), ("lib", "lib64"), ("nvvm", "nvvm")):
            merge(parts / "nvidia" / part / name, place / into)
    front_end(debian, version, unpacked, place)
    static_runtime(debian, version, unpacked, place, with_static)
    for library in list((place / "lib64").glob("lib*.so.*")):
        link = library.with_name(library.name.split(".so.")[0] + ".so")
        if not link.exists():
            link.symlink_to(library.name)
    for program in [*(place / "bin").iterdir(), *(place / "nvvm/bin").iterdir()]:
        if program.is_file():
            program.chmod(0o755)
    shutil.rmtree(parts)
    finished.touch()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("versions", nargs="*", default=list(WHEELS), metavar="VERSION")
    parser.add_argument("--static-11.8", dest="static", action="store_true")
    options = parser.parse_args()
    unknown = set(options.versions) - set(WHEELS)
    if unknown:
        parser.error(f"no such version: {', '.join(sorted(unknown))}; there are {', '.join(WHEELS)}")
    folder = options.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        for version in options.versions:
            make(version, folder, Debian(pathlib.Path(scratch)), options.static)
    print("\n".join(str(folder / f"cuda-{version}") for version in options.versions))


if __name__ == "__main__":
    main()
