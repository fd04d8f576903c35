#!/usr/bin/env python3
"""What is built for other people's processes asks for glibc 2.31 alone.

    library_test.py CMAKE READELF COMPILER CHECK FLOOR LIBRARY=SONAME ...

The check is the build's own (cmake/check_library.cmake): it must accept the libraries, and refuse some that
are made here, by what they ask for.
"""
import pathlib
import platform
import shutil
import subprocess
import sys
import tempfile

REFUSED = {
    "moved": ("#include <pthread.h>\nint first() { return pthread_setname_np(pthread_self(), \"\"); }",
              ["-lc"], "asks for pthread_setname_np@GLIBC_2.34"),
    "new": ("#include <stdlib.h>\nunsigned first() { return arc4random(); }", ["-lc"],
            "asks for arc4random@GLIBC_2.36"),
    "library": ("#include <stdexcept>\nvoid first() { throw std::runtime_error(\"\"); }", ["-lstdc++", "-lc"],
                "may need libc only, but: (NEEDED)"),
    "constructor": ("int first(); int second = first(); int first() { return 1; }", ["-lc"],
                    "has a static constructor"),
}
SINCE = {"moved": (2, 34), "new": (2, 36)}   # glibc: an older one links other symbols, or none


def main():
    cmake, readelf, compiler, check, floor, *libraries = sys.argv[1:]

    def checked(library, soname):
        return subprocess.run([cmake, f"-DREADELF={readelf}", f"-DLIBRARY={library}", f"-DSONAME={soname}",
                               f"-DGLIBC_FLOOR={floor}", "-P", check], capture_output=True, text=True)

    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for each in libraries:
            path, soname = each.split("=")
            copy = shutil.copy(path, folder)   # what is refused is removed
            done = checked(copy, soname)
            assert done.returncode == 0, done.stderr
            needed = subprocess.run([readelf, "-d", "-W", copy], check=True, capture_output=True, text=True)
            assert "libstdc++" not in needed.stdout, needed.stdout
        glibc = tuple(map(int, platform.libc_ver()[1].split(".")))
        for name, (text, linked, why) in REFUSED.items():
            if glibc < SINCE.get(name, glibc):
                print(f"{name}: left out, as this system's glibc is {glibc}")
                continue
            source, library = folder / f"{name}.cpp", folder / f"{name}.so"
            source.write_text(text)
            subprocess.run([compiler, "-shared", "-fPIC", "-O0", "-o", library, source, "-nodefaultlibs",
                            "-Wl,-soname,libcuda.so.1", "-Wl,--no-as-needed", "-l:libpthread.so.0",
                            "-l:libdl.so.2", *linked, "-lgcc"], check=True)
            done = checked(library, "libcuda.so.1")
            assert done.returncode != 0 and why in " ".join(done.stderr.split()), (name, done)
            assert not library.exists(), f"{library} could be used"
    return 0


if __name__ == "__main__":
    sys.exit(main())
