"""nvcc's PTX, printed by us, assembles to the same machine code as the original.

    compile_test.py PTX_PRINT NVCC FOLDER_OF_MORE_PROGRAMS [--thorough]

Also the hand-written cases. Of the more programs every third is taken. With --thorough all are, and programs/
for all targets that they are meant for; otherwise corpus_test.py, which compiles them in any case, looks at
their code.
"""
import concurrent.futures
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
TARGETS = ["sm_75", "sm_80", "sm_90"]
ONLY = {"hopper": ["sm_90a"], "clusters": ["sm_90"], "copies": ["sm_80"], "warps": ["sm_75", "sm_90"],
        "textures": ["sm_75"]}
VARIANTS = [("calls", "sm_90", ["-G"]), ("globals", "sm_90", ["-lineinfo"]),
            ("calls", "sm_80", ["-rdc=true"])]


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")


def sections(elf):
    """Name and content of what is no debug information: that knows the lines of the PTX."""
    table, = struct.unpack_from("<Q", elf, 0x28)
    each, count, names = struct.unpack_from("<HHH", elf, 0x3A)
    headers = [struct.unpack_from("<IIQQQQ", elf, table + i * each) for i in range(count)]
    text = elf[headers[names][4]:][:headers[names][5]]
    found = []
    for name, kind, _, _, at, size in headers:
        name = text[name:text.index(b"\0", name)].decode()
        if "debug" not in name and name not in (".strtab", ".shstrtab", ".symtab", ".note.nv.tkinfo"):
            found.append((name, b"" if kind == 8 else elf[at:at + size]))
    return found


class Tools:
    def __init__(self, printer, nvcc, folder):
        self.printer, self.nvcc = printer, nvcc
        self.ptxas = str(pathlib.Path(nvcc).parent / "ptxas")
        self.folder = pathlib.Path(folder)

    def same_code(self, text, target, flags=()):
        """Both names are the same for ptxas, because it may write them down."""
        code = []
        for folder, make in (("original", None), ("printed", self.printer)):
            place = self.folder / folder / text.parent.name
            place.mkdir(parents=True, exist_ok=True)
            if make:
                run(make, text, place / text.name)
            else:
                (place / text.name).write_bytes(text.read_bytes())
            done = subprocess.run([self.ptxas, "-arch=" + target, *flags, "-o", "out" + text.stem, text.name],
                                  cwd=place, capture_output=True, text=True)
            if done.returncode:
                raise RuntimeError(f"ptxas refuses the {folder} {text.name} for {target}:\n{done.stderr}")
            code.append(sections((place / ("out" + text.stem)).read_bytes()))
        differ = [a[0] for a, b in zip(*code) if a != b]
        if differ or len(code[0]) != len(code[1]):
            raise RuntimeError(f"{text.name} for {target}: the print assembles to other code: {differ}")

    def program(self, source, target, flags=()):
        name = source.stem + "_" + target + "".join(flags).replace("=", "")
        place = self.folder / "ptx" / name
        place.mkdir(parents=True)
        text = place / (source.stem + ".ptx")
        run(self.nvcc, "-std=c++17", "-ptx", "-arch=" + target, *flags, "-o", text, source)
        if "-G" in flags:   # unoptimised, ptxas makes an addition of the offset 0, which a tree does not have
            text.write_text(text.read_text().replace("+0]", "]"))
        more = ["-c"] if "-rdc=true" in flags else []
        self.same_code(text, target, more + (["-g"] if "-G" in flags else []))

    def case(self, text):
        target = re.search(r"^\.target (\w+)", text.read_text(), re.M).group(1)
        self.same_code(text, target)


def main(printer, nvcc, more_programs, *rest):
    with tempfile.TemporaryDirectory() as folder:
        tools = Tools(printer, nvcc, folder)
        jobs = [(tools.case, text) for text in sorted((HERE / "syntax").glob("*.ptx"))]
        thorough = "--thorough" in rest
        if thorough:
            jobs += [(tools.program, source, target) for source in sorted((HERE / "programs").glob("*.cu"))
                     for target in ONLY.get(source.stem, TARGETS)]
        for source in sorted(pathlib.Path(more_programs).glob("*.cu"))[::1 if thorough else 3]:
            # a toolkit of wheels has no cuBLAS, and there is no kernel in it
            if "cublas" not in source.stem:
                jobs.append((tools.program, source, "sm_90"))
        jobs += [(tools.program, HERE / "programs" / (name + ".cu"), target, flags)
                 for name, target, flags in VARIANTS]
        problems = []
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            for future in [pool.submit(*job) for job in jobs]:
                try:
                    future.result()
                except RuntimeError as problem:
                    problems.append(str(problem))
    print("\n".join(problems))
    print(f"{len(jobs) - len(problems)} of {len(jobs)} modules assemble to the same code after a print")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
