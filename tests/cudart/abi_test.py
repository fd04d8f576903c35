#!/usr/bin/env python3
"""Our runtimes against NVIDIA's: abi_test.py OURS TABLE_GENERATOR IMPORTED [THEIRS]

OURS and THEIRS are libcudart.so.13; without THEIRS only the table is looked at. What NVIDIA's older runtimes
export is known here by its digest; where a folder that SMT_CUDA_VERSIONS names has them
(tests/cuda_versions/toolkits.py), name by name.
"""

import hashlib
import os
import pathlib
import re
import subprocess
import sys
import unittest

OURS, GENERATOR, IMPORTED, *THEIRS = sys.argv[1:]
SYMBOL = re.compile(r"^\s*\d+: [0-9a-f]+\s+\d+ (?:FUNC|OBJECT)\s+GLOBAL DEFAULT\s+\d+ (\S+?)@@?(\S+)$")
# What programs import and this runtime does not have, with docs/limits.md's reasons.
LEFT_OUT = re.compile(r"cudaGraphics|cudaGraphAddMem(Alloc|Free)Node|cudaMemPool(Import|Export)|"
                      r"cudaDeviceDisablePeerAccess")

# Our file, NVIDIA's in a folder of toolkits.py's, and the digest of the sorted names that it exports.
OLDER = [("libcudart.so.12", "cuda-12.9/lib64/libcudart.so.12", "2a12f9e71eaabbd5"),
         ("libcudart.so.11.0", "cuda-11.8/lib64/libcudart.so.11.0", "b2d743936f2f1826")]

# Name and text of every error that the library knows, one a line.
ASK = """
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
for function in (library.cudaGetErrorName, library.cudaGetErrorString):
    function.restype = ctypes.c_char_p
for code in list(range(1100)) + [9999, 10000, 10001, -1]:
    print(code, library.cudaGetErrorName(code), library.cudaGetErrorString(code))
"""


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def exports(library):
    found = set()
    for line in run("readelf", "--dyn-syms", "-W", library).splitlines():
        match = SYMBOL.match(line)
        if match:
            found.add((match[1], match[2]))
    return found


class Abi(unittest.TestCase):
    @unittest.skipUnless(THEIRS, "no libcudart.so.13 of NVIDIA's here")
    def test_same_symbols_and_versions(self):
        ours, theirs = exports(OURS), exports(THEIRS[0])
        self.assertGreater(len(theirs), 400)
        self.assertEqual(ours ^ theirs, set())

    def test_one_version(self):
        self.assertEqual({version for _, version in exports(OURS)}, {"libcudart.so.13"})

    def test_older_symbols_and_versions(self):
        for name, theirs, digest in OLDER:
            ours = exports(pathlib.Path(OURS).with_name(name))
            self.assertEqual({version for _, version in ours}, {name})
            symbols = "\n".join(sorted(symbol for symbol, _ in ours))
            theirs = pathlib.Path(os.environ.get("SMT_CUDA_VERSIONS", "none")) / theirs
            if theirs.exists():
                self.assertEqual(ours ^ exports(theirs), set())
            self.assertEqual(hashlib.sha256(symbols.encode()).hexdigest()[:16], digest, name)

    def test_soname_and_needs(self):
        for name in ("libcudart.so.13", *(name for name, _, _ in OLDER)):
            dynamic = run("readelf", "-d", "-W", pathlib.Path(OURS).with_name(name))
            self.assertIn(f"soname: [{name}]", dynamic)
            self.assertNotIn("libcuda.so", dynamic)      # found when needed, so that programs start without
            self.assertNotIn("libstdc++", dynamic)

    @unittest.skipUnless(THEIRS, "no libcudart.so.13 of NVIDIA's here")
    def test_same_error_names_and_texts(self):
        ours, theirs = (run(sys.executable, "-c", ASK, library) for library in (OURS, THEIRS[0]))
        self.assertGreater(len(set(theirs.splitlines())), 1000)
        self.assertEqual(ours, theirs)

    def test_what_programs_import(self):
        treatments = dict(line.split()[:2]
                          for line in run(sys.executable, "-B", GENERATOR, "--treatments").splitlines())
        left_out = set()
        for line in pathlib.Path(IMPORTED).read_text().splitlines():
            if line.startswith("#"):
                continue
            _, symbol = line.split()
            self.assertIn(symbol, treatments)
            if treatments[symbol] == "unsupported":
                left_out.add(symbol)
        self.assertEqual({s for s in left_out if not LEFT_OUT.match(s)}, set())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
