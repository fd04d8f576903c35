#!/usr/bin/env python3
"""Our libcudart.so.13 against NVIDIA's: abi_test.py OURS TABLE_GENERATOR IMPORTED [THEIRS]

Without THEIRS only the table is looked at.
"""

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

    def test_soname_and_needs(self):
        dynamic = run("readelf", "-d", "-W", OURS)
        self.assertIn("soname: [libcudart.so.13]", dynamic)
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
