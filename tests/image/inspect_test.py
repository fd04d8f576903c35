#!/usr/bin/env python3
"""smt inspect on what nvcc links, against a table, readelf, and NVIDIA's cuobjdump where the machine has it.

    inspect_test.py SMT IMAGE_SHOW NVCC READELF FOLDER_OF_EXAMPLES [CUOBJDUMP]
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

PROGRAMS = pathlib.Path(__file__).resolve().parent / "programs"
RESERVED = 1024  # bytes of shared memory that cuobjdump counts from sm_90 on, and ptxas does not

# of layouts.cu for sm_90: parameters, shared memory, barriers, and what else is said
TABLE = {
    "void layouts::mixed<float>(float*, char, Mixed, short)": ("0:8 8:1 16:24 40:2", 0, 0, {}),
    "none()": ("", 0, 0, {}),
    "large(Large, int*)": ("0:8000 8000:8", 0, 0, {}),
    "tile(float*)": ("0:8", 432, 1, {"most_threads": [256, 1, 1]}),
    "dynamic(int*, int)": ("0:8 8:4", 0, 1, {}),
    "named_barriers(int*)": ("0:8", 0, 6, {}),
    "grid(int*)": ("0:8", 0, 1, {"cooperative": True}),
    "prints(int)": ("0:4", 0, 0, {}),
    "cluster(float*)": ("0:8", 0, 0, {"cluster": [2, 1, 1], "explicit_cluster": True}),
    "at_most_8(float*)": ("0:8", 0, 0, {"most_threads": [128, 1, 1], "most_cluster_blocks": 8}),
    "fixed_block(int*)": ("0:8", 0, 0, {"block": [64, 2, 1], "cluster": [1, 1, 1]}),
}
# of the same, how it would run, and what is said of those that are unmanaged
UNMANAGED = {
    "grid(int*)": "works with the whole grid at once",
    "cluster(float*)": "is launched in thread-block clusters",
    "at_most_8(float*)": "",
    "fixed_block(int*)": "is launched in thread-block clusters",
}
OTHERWISE = {"most_threads": None, "block": None, "cluster": None, "most_cluster_blocks": 0,
             "explicit_cluster": False,
             "cooperative": False}


def run(*command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{command}\n{done.stdout}{done.stderr}")
    return done.stdout


def layout(kernel):
    return " ".join(f"{each['offset']}:{each['bytes']}" for each in kernel["parameters"])


class Test:
    def __init__(self, smt, show, nvcc, readelf, cuobjdump, folder):
        self.smt, self.show, self.nvcc, self.readelf, self.cuobjdump = smt, show, nvcc, readelf, cuobjdump
        self.folder = pathlib.Path(folder)
        self.problems, self.checked = [], 0

    def expect(self, what, got, wanted):
        self.checked += 1
        if got != wanted:
            self.problems.append(f"{what}:\n  got    {got}\n  wanted {wanted}")

    def build(self, name, *arguments):
        run(self.nvcc, "-cudart", "shared", "-o", self.folder / name, *arguments)
        return self.folder / name

    def inspect(self, path, architecture=90):
        return json.loads(run(self.smt, "inspect", path, "--arch", f"sm_{architecture}", "--json"))

    # ---- tables

    def table(self, path, architecture, from_machine_code):
        found = {kernel["demangled"]: kernel for kernel in self.inspect(path, architecture)["kernels"]}
        self.expect(f"kernels of {path.name}", sorted(found), sorted(TABLE))
        for name, (parameters, shared, barriers, more) in TABLE.items():
            kernel = found.get(name, {"parameters": []})
            self.expect(f"{name}: parameters", layout(kernel), parameters)
            self.expect(f"{name}: shared memory", kernel.get("shared"), shared)
            self.expect(f"{name}: barriers", kernel.get("barriers"), barriers if from_machine_code else None)
            for field, otherwise in OTHERWISE.items():
                self.expect(f"{name}: {field}", kernel.get(field), more.get(field, otherwise))

    def layouts(self):
        both = ["-gencode", "arch=compute_90,code=[sm_90,compute_90]"]
        path = self.build("layouts", *both, PROGRAMS / "layouts.cu")
        self.table(path, 90, True)
        self.table(path, 100, False)  # from its PTX
        self.against_readelf(path)
        self.against_cuobjdump(path)
        for kernel in self.inspect(path)["kernels"]:
            why = UNMANAGED.get(kernel["demangled"])
            self.expect(f"how {kernel['demangled']} would run", kernel["management"],
                        "managed by PTX" if why is None else "unmanaged")
            said = kernel["reason"].startswith("PTX for compute_90" if why is None
                                               else f"PTX for compute_90, but {why}")
            self.expect(f"what is said of {kernel['demangled']}: {kernel['reason']}", said, True)

    def relocatable(self):
        options = ["-arch=sm_90", "-rdc=true"]
        objects = [self.build(f"{name}.o", *options, "-c", PROGRAMS / f"{name}.cu")
                   for name in ["rdc_one", "rdc_two"]]
        path = self.build("rdc", *options, *objects)
        seen = self.inspect(path)
        shape = [(image["section"], image["linked"], image["loaded"],
                  [entry["kind"] for entry in image["entries"]])
                 for image in seen["images"]]
        self.expect("images of relocatable code", shape, [(".nv_fatbin", True, True, ["cubin"]),
                                                          ("__nv_relfatbin", False, False, ["cubin", "ptx"]),
                                                          ("__nv_relfatbin", False, False, ["cubin", "ptx"])])
        kernels = [(kernel["demangled"], kernel["management"], kernel["reason"])
                   for kernel in seen["kernels"]]
        why = "PTX for compute_90, in __nv_relfatbin: 2 texts to be linked, but it holds machine code only"
        self.expect("its kernels", sorted(kernels),
                    [("first(int*)", "unmanaged", why), ("second(int*, float)", "unmanaged", why)])
        self.against_readelf(path)
        self.against_cuobjdump(path)
        library = self.folder / "librdc.a"
        run(self.nvcc, *options, "-lib", "-o", library, *objects)
        seen = self.inspect(library)
        self.expect("a static library", [image["entries"][0]["relocatable"] for image in seen["images"]],
                    [True, True])
        self.expect("its members", [image["member"] for image in seen["images"]], ["rdc_one.o", "rdc_two.o"])
        self.expect("an object", self.inspect(objects[0])["kernels"][0]["reason"],
                    "PTX for compute_90, relocatable: before a program has it, it is linked")
        self.against_cuobjdump(library)

    def machine_code_alone(self):
        path = self.build("library.so", "-gencode", "arch=compute_80,code=sm_80", "-Xcompiler",
                          "-fPIC", "-shared",
                          PROGRAMS / "kernels.cu")
        management = {(kernel["management"], kernel["reason"])
                      for kernel in self.inspect(path, 86)["kernels"]}
        self.expect("machine code", management, {("unmanaged", "it holds machine code only")})
        self.expect("nothing for sm_90", self.inspect(path, 90)["kernels"], [])
        self.expect("kind", self.inspect(path)["kind"], "a shared library")
        self.against_cuobjdump(path, 80)

    def ptx_alone(self):
        """nvcc links a fatbin without entries into such a program."""
        source = self.folder / "ptx_alone.cu"
        source.write_text("__global__ void kernel(int* x) { *x = 1; }\nint main() {}\n")
        path = self.build("ptx_alone", "-gencode", "arch=compute_90,code=compute_90", source)
        images = self.inspect(path)["images"]
        shape = [([entry["kind"] for entry in image["entries"]], image["problem"]) for image in images]
        self.expect("images of PTX alone", sorted(shape), [([], None), (["ptx"], None)])
        text = run(self.smt, "inspect", path)
        self.expect(f"what is said of the one without entries: {text}",
                    text.count("\n  empty: it holds no code\n"), 1)

    # ---- the server

    def against_server(self, path):
        """What a server on the simulated device made of the program's kernels is what was said of them
        before."""
        said = {kernel["name"]: kernel["management"] for kernel in self.inspect(path)["kernels"]}
        environment = {k: v for k, v in os.environ.items() if not k.startswith("SMT_")}
        environment.update(SMT_RUNTIME_DIR=str(self.folder / "run"), SMT_CACHE_DIR=str(self.folder / "cache"))
        def smt(*arguments):
            done = subprocess.run([self.smt, *map(str, arguments)], env=environment, capture_output=True,
                                  text=True, timeout=240)
            assert done.returncode == 0, f"smt {arguments}: {done.returncode}: {done.stdout}{done.stderr}"
            return done.stdout
        smt("run", "--device", "sim", "--stress", "1", "--", path, "--size", "trivial", "--iterations", "1")
        rows = [json.loads(line) for line in smt("log", "--kernels", "--json").splitlines()]
        smt("server", "stop")
        self.expect(f"{path.name}: kernels ran", bool(rows), True)
        for row in rows:
            self.expect(f"{path.name}: {row['kernel']} ran as said", row["how"], said.get(row["symbol"]))

    # ---- others' readers

    def against_readelf(self, path):
        """The sections' places, and the kernels and shared memory in the machine code that runs on sm_90."""
        seen = self.inspect(path)
        sections = run(self.readelf, "-SW", path)
        for name in {image["section"] for image in seen["images"]}:
            at, size = (int(word, 16) for word in re.search(rf" {re.escape(name)} +PROGBITS +\S+ "
                                                            r"(\S+) (\S+)", sections).groups())
            images = [image for image in seen["images"] if image["section"] == name]
            self.expect(f"{path.name}: {name} begins", images[0]["offset"], at)
            end = images[-1]["offset"] + images[-1]["bytes"]
            self.expect(f"{path.name}: {name} ends", end <= at + size and at + size - end < 8, True)
        shared = {}
        for image in seen["images"]:
            if not image["loaded"]:
                continue
            piece = self.folder / "image"
            piece.write_bytes(path.read_bytes()[image["offset"]:image["offset"] + image["bytes"]])
            run(self.show, piece, self.folder)
            for number, entry in enumerate(image["entries"]):
                if entry["runs"] and entry["kind"] == "cubin":
                    shared.update(self.shared_of(self.folder / str(number)))
        self.expect(f"{path.name}: shared memory by readelf",
                    {kernel["name"]: kernel["shared"] for kernel in seen["kernels"]}, shared)

    def shared_of(self, cubin):
        # it warns, and succeeds
        done = subprocess.run([self.readelf, "-sSW", cubin], capture_output=True, text=True)
        kernels = re.findall(r"FUNC +\S+ +\S+ +\[<other>: 10\] +\d+ (\S+)", done.stdout)
        sizes = dict(re.findall(r"\.nv\.shared\.(\S+) +NOBITS +\S+ +\S+ (\S+)", done.stdout))
        return {kernel: int(sizes.get(kernel, "400"), 16) - RESERVED for kernel in kernels}

    def against_cuobjdump(self, path, architecture=90):
        if not self.cuobjdump:
            return
        seen = self.inspect(path, architecture)
        # What nvcc linked from it does not list without -all.
        for kind, option, what in [("cubin", "-lelf", "ELF"), ("ptx", "-lptx", "PTX")]:
            listed = len(re.findall(rf"^{what} file", run(self.cuobjdump, option, path), re.M))
            entries = [entry for image in seen["images"] if image["loaded"] for entry in image["entries"]]
            self.expect(f"{path.name}: entries by {option}", sum(entry["kind"] == kind for entry in entries),
                        listed)
        wanted = {}
        for name, registers, stack, shared in re.findall(r"Function (\S+):\s+REG:(\d+) STACK:(\d+) "
                                                         r"SHARED:(\d+)",
                                                         run(self.cuobjdump, "-res-usage", path)):
            reserved = RESERVED if architecture >= 90 and int(shared) else 0
            wanted[name] = (int(registers), int(stack), int(shared) - reserved)
        linked = not any(entry["relocatable"] for image in seen["images"] for entry in image["entries"]
                         if image["loaded"])
        for kernel in seen["kernels"]:
            if linked:  # before, cuobjdump shows what the assembler laid out by itself
                self.expect(f"{path.name}: {kernel['name']} by -res-usage",
                            (kernel["registers"], kernel["local"], kernel["shared"]),
                            wanted.get(kernel["name"]))
            else:
                self.expect(f"{path.name}: {kernel['name']} by -res-usage", kernel["registers"],
                            wanted[kernel["name"]][0])


def main(smt, show, nvcc, readelf, examples, cuobjdump=""):
    with tempfile.TemporaryDirectory() as folder:
        test = Test(smt, show, nvcc, readelf, cuobjdump, folder)
        test.layouts()
        test.relocatable()
        test.machine_code_alone()
        test.ptx_alone()
        found = sorted(pathlib.Path(examples).glob("shared/*"))
        for path in found:
            test.expect(f"{path}: kernels", len(test.inspect(path)["kernels"]) > 0, True)
            test.against_readelf(path)
            test.against_cuobjdump(path)
        for path in found[:3]:
            test.against_server(path)
        others = "readelf" + (" and cuobjdump" if cuobjdump else "")
        print("\n".join(test.problems) or
              f"{test.checked} facts of 5 programs and {len(found)} examples agree with {others}")
        return 1 if test.problems else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
