#!/usr/bin/env python3
"""The API table and its generator: api_table_test.py CUDA_INCLUDE_FOLDER"""

import pathlib
import re
import sys
import unittest

API = pathlib.Path(__file__).parents[2] / "runtime" / "protocol" / "api"
sys.path.insert(0, str(API))

import addresses   # noqa: E402
import charges     # noqa: E402
import client      # noqa: E402
import generate    # noqa: E402
import server      # noqa: E402
import table       # noqa: E402

INCLUDE = pathlib.Path("/usr/local/cuda/include")
ENTRIES = table.read(API)
ROWS = table.resolvable(ENTRIES)
NAMED = re.compile(r"PFN_(cu\w+?)_v(\d+)(_ptds|_ptsz)?\)")
ELSEWHERE = ("cuWGLGetDevice",)   # another operating system's


def symbol(name, version, per_thread=False):
    row = generate.find(ROWS, name, version, per_thread)
    return row and row[3]


class Table(unittest.TestCase):
    def test_every_version_of_the_toolkit_resolves(self):
        seen = 0
        for header in sorted(INCLUDE.glob("cuda*Typedefs.h")):
            for name, version, twin in NAMED.findall(header.read_text()):
                if name in ELSEWHERE:
                    continue
                seen += 1
                row = generate.find(ROWS, name, int(version), bool(twin))
                self.assertIsNotNone(row, f"{name} {version}{twin}")
                self.assertEqual((row[1], row[2]), (int(version), bool(twin)), f"{name} {version}{twin}")
        self.assertGreater(seen, 600)

    def test_newest_version_not_above_the_one_asked_for(self):
        self.assertEqual(symbol("cuMemAlloc", 2000), "cuMemAlloc")
        self.assertEqual(symbol("cuMemAlloc", 3019), "cuMemAlloc")
        self.assertEqual(symbol("cuMemAlloc", 13000), "cuMemAlloc_v2")
        self.assertEqual(symbol("cuCtxCreate", 12000), "cuCtxCreate_v3")
        self.assertEqual(symbol("cuGraphInstantiate", 11000), "cuGraphInstantiate_v2")
        self.assertIsNone(symbol("cuMemAlloc", 1999))
        self.assertIsNone(symbol("cuNoSuchThing", 13000))

    def test_per_thread_twin_only_when_asked_for(self):
        self.assertEqual(symbol("cuLaunchKernel", 13000), "cuLaunchKernel")
        self.assertEqual(symbol("cuLaunchKernel", 13000, True), "cuLaunchKernel_ptsz")
        self.assertEqual(symbol("cuMemcpyHtoD", 13000, True), "cuMemcpyHtoD_v2_ptds")
        self.assertEqual(symbol("cuInit", 13000, True), "cuInit")

    def test_multicast_is_never_forwarded(self):
        multicast = [e for e in ENTRIES if e.symbol.startswith("cuMulticast")]
        self.assertTrue(multicast)
        self.assertEqual({e.treatment for e in multicast}, {"unsupported"})


class Addresses(unittest.TestCase):
    """Every device address that a call carries is checked, or exempt by name."""

    def test_lines_without_a_check_are_refused(self):
        for line in ("remote cuX(CUdeviceptr p) @1", "async cuX(in[n] const CUdeviceptr *p, size_t n) @1",
                     "written cuX(CUdeviceptr p) @1",
                     "older cuX(const CUDA_MEMCPY2D *p) @1",
                     "remote served cuX(in const CUDA_RESOURCE_DESC *p) @1", "remote cuX(addr void *p) @1",
                     # no hand-written half is there to make it
                     "remote cuX(in const CUDA_RESOURCE_DESC *p) @1 addresses=resource",
                     "written cuX(CUdeviceptr p) @1 addresses=nothing_known",
                     "written cuX(int p) @1 addresses=copy"):
            with self.assertRaises(table.TableError, msg=line):
                table.Entry("area", line)
        for line in ("remote cuX(touch[4] CUdeviceptr p) @1", "written cuX(CUdeviceptr p) @1 addresses=copy",
                     "remote cuX(out CUdeviceptr *p) @1 memory=exists",
                     "remote cuX(in const CUDA_MEMSET_NODE_PARAMS *p) @1",
                     "remote cuX(addr void *p) @1 addresses=program"):
            table.Entry("area", line)

    def test_generated_checks_come_before_the_driver(self):
        for symbol, check in (("cuMemsetD8Async", "may_touch(call, dstDevice, times(N, 1))"),
                              ("cuGraphAddMemsetNode", "may_touch(call, *memsetParams)"),
                              ("cuTexRefSetAddress_v2", "may_touch(call, dptr, bytes)"),
                              ("cuTexRefSetAddress2D_v3", "may_touch(call, dptr, ")):
            entry = next(e for e in ENTRIES if e.symbol == symbol)
            text = server.handler(entry)
            callee = "served::" if entry.served else "call.driver."
            self.assertLess(text.index(check), text.index(f"{callee}{symbol}("))

    def test_hand_written_checks_are_there(self):
        root = API.parents[2]
        for name, (file, functions, check) in addresses.CHECKS.items():
            text = (root / file).read_text()
            for function in functions:
                body = re.search(rf"^CUresult {function}\(.*?^}}", text, re.S | re.M)
                self.assertIsNotNone(body, f"{name}: {file} has no {function}")
                self.assertIn(check, body[0], f"{name}: {function} in {file}")

    def test_every_name_is_used(self):
        named = {e.addresses for e in ENTRIES}
        self.assertEqual(set(addresses.CHECKS) | set(addresses.EXEMPT), named - {None})

    def test_every_struct_of_the_toolkit_is_known(self):
        self.assertEqual(structs_with_addresses((INCLUDE / "cuda.h").read_text()) - set(addresses.STRUCTS),
                         set())


class Charges(unittest.TestCase):
    """Memory that a call gives is counted, or not counted by name."""

    def test_lines_that_count_nothing_are_refused(self):
        for line in ("remote cuX(out CUarray *a) @1", "written cuX(CUdeviceptr *p) @1 addresses=answer",
                     "written cuX(CUmodule *m) @1",
                     # no hand-written half is there to do it
                     "remote cuX(out CUarray *a) @1 memory=chunk",
                     "written cuX(CUarray *a) @1 memory=f(a)",   # no generated one
                     "written cuX(CUmodule *m) @1 memory=nothing_known",
                     "remote cuX(int n) @1 memory=exists"):
            with self.assertRaises(table.TableError, msg=line):
                table.Entry("area", line)
        table.Entry("area", "remote cuX(lend CUarray *a) @1")
        table.Entry("area", "remote served cuX(out CUarray *a) @1 memory=f(a)")   # generated around it

    def test_generated_charges(self):
        text = server.handler(next(e for e in ENTRIES if e.symbol == "cuArray3DCreate_v2"))
        self.assertLess(text.index("charge(array_bytes(*pAllocateArray)"),
                        text.index("served::cuArray3DCreate_v2("))
        self.assertIn("hold(HandleKind::kArray, (uint64_t)pHandle, std::move(charge))", text)
        text = server.handler(next(e for e in ENTRIES if e.symbol == "cuArrayDestroy"))
        self.assertLess(text.index("take_held(HandleKind::kArray"), text.index("call.driver.cuArrayDestroy("))

    def test_hand_written_charges_are_there(self):
        root = API.parents[2]
        for name, (file, function, charge) in charges.CHARGED.items():
            body = re.search(rf"^CUresult {function}\(.*?^}}", (root / file).read_text(), re.S | re.M)
            self.assertIsNotNone(body, f"{name}: {file} has no {function}")
            self.assertIn(charge, body[0], f"{name}: {function} in {file}")

    def test_every_name_is_used(self):
        named = {e.memory for e in ENTRIES if e.memory and not e.charged}
        self.assertEqual(set(charges.CHARGED) | set(charges.UNCHARGED), named)


def structs_with_addresses(header):
    """Names of the types in cuda.h that hold a CUdeviceptr or an access policy window, in themselves or in
    what they hold."""
    header = re.sub(r"/\*.*?\*/|//[^\n]*", "", header, flags=re.S)
    bodies = {}   # name -> text of its members
    for body, name in re.findall(r"typedef (?:struct|union) "
                                 r"\w*\s*(\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\})\s*(\w+);", header):
        bodies[name] = body
    for name, body in re.findall(r"^(?:struct|union) (\w+)\s*(\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\});",
                                 header, re.S | re.M):
        bodies[name] = body
    for old, new in re.findall(r"typedef (?:struct |union )?(\w+) (\w+);", header):
        bodies.setdefault(new, old)
    found = {"CUdeviceptr", "CUaccessPolicyWindow_v1"}
    while True:
        more = {name for name, body in bodies.items() if found & set(re.findall(r"\w+", body))} - found
        if not more:
            return {name for name in found if not name.startswith("CUdeviceptr") and
                    not name.endswith("_st") and not name.endswith("_union")}
        found |= more


class Lines(unittest.TestCase):
    def test_refused(self):
        for line in ("remote cuX(int *p) @1", "whatever cuX() @1", "remote cuX()", "alias cuX() @1",
                     "written cuX @1"):
            with self.assertRaises(table.TableError, msg=line):
                table.Entry("area", line)

    def test_parameters(self):
        entry = table.Entry("area", "remote cuX(in?[n * 2] const CUgraphNode *nodes, size_t n, "
                            "out!<cuuint64_t> void *value) @1")
        nodes, n, value = entry.parameters
        self.assertEqual((nodes.direction, nodes.count, nodes.optional, nodes.base),
                         ("in", "n * 2", True, "CUgraphNode"))
        self.assertEqual(nodes.handle_kind, "kGraphNode")
        self.assertEqual((n.direction, n.type), ("", "size_t"))
        self.assertEqual((value.base, value.always, value.declaration), ("cuuint64_t", True, "void *value"))

    def test_handles_are_checked_before_the_driver_is_called(self):
        entry = table.Entry("area", "remote cuX(consume CUgraph g, CUstream s) @1")
        text = server.handler(entry)
        self.assertLess(text.index("call.uses.take(HandleKind::kGraph"), text.index("call.driver.cuX(g, s)"))
        self.assertLess(text.index("call.stream(s_id"), text.index("call.driver.cuX(g, s)"))

    def test_default_stream_of_a_twin(self):
        entry = table.Entry("area", "written cuX(CUdeviceptr p) @1 ptds@2 addresses=copy")
        self.assertEqual(entry.signature(extra=True), "CUdeviceptr p, CUstream stream")
        self.assertIn("driver::cuX(p, CU_STREAM_LEGACY)", client.stub(entry, "cuX", 0))
        self.assertIn("driver::cuX(p, CU_STREAM_PER_THREAD)", client.stub(entry, "cuX_ptds", 0))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        INCLUDE = pathlib.Path(sys.argv.pop(1))
    sys.dont_write_bytecode = True
    unittest.main()
