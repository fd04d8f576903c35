"""The image reader on what nvcc makes: every way to compress, several targets, ptxas's own figures.

    nvcc_test.py IMAGE_SHOW NVCC
"""
import pathlib
import re
import subprocess
import sys
import tempfile

PROGRAMS = pathlib.Path(__file__).resolve().parent / "programs"
SOURCE = PROGRAMS / "kernels.cu"
PRINTING = PROGRAMS / "printing.cu"
VARIABLES = PROGRAMS / "variables.cu"
TABLES = PROGRAMS.parents[1] / "simulated" / "programs" / "tables.cu"
# USES of variables.cu: what the kernel does, and whether that is a use of the image's variables.
USES = {0: ("nothing of them", False), 1: ("a device variable", True), 2: ("a constant", True),
        3: ("a managed variable", True), 4: ("a device variable in a function", True),
        5: ("NVIDIA's tables", False), 6: ("a system-wide atomic", False)}
# CUDA 13's C++ has none of these, but PTX does.
TEXTURE = """
.version 8.0
.target sm_90
.address_size 64
.global .texref image;
.visible .entry kernel(.param .u64 out) {
    .reg .b64 %rd<2>; .reg .f32 %f<5>; .reg .b32 %r<2>;
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %tid.x;
    tex.1d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [image, {%r1}];
    st.global.f32 [%rd1], %f1;
    ret;
}
"""
# nvcc's options, and the entries that they give: kind, target, variant, compression
SM_90 = ["-arch=sm_90"]
CASES = [
    (SM_90, ["cubin 90 - none", "ptx 90 - zstd"]),
    (SM_90 + ["-Xfatbin", "-compress-all"], ["cubin 90 - zstd", "ptx 90 - zstd"]),
    (SM_90 + ["-compress-mode=size"], ["cubin 90 - zstd", "ptx 90 - zstd"]),
    (SM_90 + ["-compress-mode=speed"], ["cubin 90 - none", "ptx 90 - lz4"]),
    (SM_90 + ["-compress-mode=speed", "-Xfatbin", "-compress-all"], ["cubin 90 - lz4", "ptx 90 - lz4"]),
    (SM_90 + ["-compress-mode=balance"], ["cubin 90 - none", "ptx 90 - zstd"]),
    (SM_90 + ["-compress-mode=none"], ["cubin 90 - none", "ptx 90 - none"]),
    (["-gencode", "arch=compute_80,code=[sm_80,compute_80]", "-gencode", "arch=compute_90,code=sm_90",
      "-gencode", "arch=compute_75,code=compute_75"],
     ["cubin 80 - none", "ptx 80 - zstd", "cubin 90 - none", "ptx 75 - zstd"]),
    (["-gencode", "arch=compute_90a,code=[sm_90a,compute_90a]"], ["cubin 90 a none", "ptx 90 a zstd"]),
    (["-gencode", "arch=compute_100f,code=compute_100f"], ["ptx 100 f zstd"]),
    (["-gencode", "arch=compute_90,code=lto_90"], ["other 90 - zstd"]),
]


def run(*command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{command}\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def words(text):
    """Without comments and blanks, which do not all get into a container."""
    return re.sub(r"//[^\n]*", "", text).split()


class Test:
    def __init__(self, show, nvcc, folder):
        self.show, self.nvcc, self.folder = show, nvcc, pathlib.Path(folder)
        self.image = self.folder / "image"
        self.problems = []

    def expect(self, what, got, wanted):
        if got != wanted:
            self.problems.append(f"{what}:\n  got    {got}\n  wanted {wanted}")

    def shown(self, word, image=None):
        """The rest of the lines of image_show that begin with `word` and a number."""
        lines = run(self.show, image or self.image, self.folder).splitlines()
        return [line.split(" ", 2)[2] for line in lines if line.startswith(word + " ")]

    def built(self, source, *options):
        """Fat binary, PTX and machine code for sm_90: nvcc makes the latter two on its way to the first."""
        place = self.folder / "kept"
        place.mkdir(exist_ok=True)
        run(self.nvcc, "-fatbin", "-arch=sm_90", *options, "--keep", "--keep-dir", place, "-o", self.image,
            source)
        return {"both": self.image, "text": place / f"{source.stem}.ptx",
                "code": place / f"{source.stem}.sm_90.cubin"}

    def ptx(self, architecture, source=SOURCE, *options):
        """nvcc's, made once: what is assembled of it takes a tenth of nvcc's time for the source."""
        text = self.folder / f"{source.stem}{''.join(options)}.compute_{architecture}.ptx"
        if not text.exists():
            run(self.nvcc, "-ptx", f"-arch=compute_{architecture}", *options, "-o", text, source)
        return text

    def cubins(self, source, *architectures, options=()):
        """By architecture, of one text."""
        images = {architecture: self.folder / architecture for architecture in architectures}
        for architecture, image in images.items():
            run(self.nvcc, "-cubin", f"-arch={architecture}", "-o", image, self.ptx("75", source, *options))
        return images

    def containers(self):
        for number, (options, wanted) in enumerate(CASES):
            # the first from the source, the other ways to pack the same from its text
            source = self.ptx("90") if number and options[:1] == SM_90 else SOURCE
            run(self.nvcc, "-fatbin", *options, "-o", self.image, source)
            self.expect(" ".join(options), self.shown("entry"), wanted)
            for number, entry in enumerate(wanted):
                kind, target, variant, _ = entry.split()
                content = self.folder / str(number)
                target = target + variant.replace("-", "")
                if kind == "ptx":
                    same = words(content.read_text()) == words(self.ptx(target).read_text())
                    self.expect(f"{options}: text {number} is that of nvcc -ptx", same, True)
                elif kind == "cubin":
                    self.expect(f"{options}: cubin {number}", content.read_bytes()[:4], b"\x7fELF")

    def facts(self, target, source):
        """As `ptxas -v` says them."""
        text = self.ptx("90" if target == "sm_90" else "75", source)   # of which sm_80 is one, too
        told = run(self.nvcc, "-cubin", "-arch=" + target, "-Xptxas", "-v", "-o", self.image, text)
        wanted = []
        for part in told.split("Compiling entry function ")[1:]:
            name = re.match(r"'(\w+)'", part).group(1)
            registers = re.search(r"Used (\d+) registers", part).group(1)
            stack = re.search(r"(\d+) bytes stack frame", part).group(1)
            barriers = re.search(r"used (\d+) barriers", part).group(1)
            shared = re.search(r"(\d+) bytes smem|$", part).group(1) or 0
            wanted.append(f"{name} kernel registers {registers} stack {stack} shared {shared} barriers "
                          f"{barriers}")
        self.expect(f"kernels of {source.name} for {target}", sorted(self.shown("facts")), sorted(wanted))
        self.expect("entries of a cubin", self.shown("entry"), [f"cubin {target[3:]} - none"])

    def printing(self, *options):
        """The kernels of printing.cu whose names say so, and no others."""
        text = self.ptx("75" if "-arch=sm_75" in options else "90", PRINTING)
        run(self.nvcc, *options, "-o", self.image, text)
        self.expect_printing(" ".join(options), self.image)

    def expect_printing(self, what, image):
        # ptxas may count that it takes a function's address
        shown = set(self.shown("prints", image)) - {"makes"}
        self.expect("what prints: " + what, shown, set(re.findall(r"says_\w+", PRINTING.read_text())))

    def variables(self):
        for uses, (what, used) in USES.items():
            for kind, image in self.built(VARIABLES, f"-DUSES={uses}").items():
                # ptxas keeps a place for each variable of the source, used or not.
                self.expect(f"uses {what}: {kind}", self.shown("variables", image),
                            ["used" if used or kind == "code" else "unused"])
                self.expect(f"system-wide atomics: {kind}, {what}", self.shown("atomics", image),
                            ["_Z6kernelPiPf"] if uses == 6 and kind != "code" else [])
        run(self.nvcc, "-cubin", "-arch=sm_90", "-o", self.image, self.ptx("90"))
        self.expect("machine code that uses a variable", self.shown("variables"), ["used"])
        run(self.nvcc, "-cubin", "-arch=sm_90", "-o", self.image, PROGRAMS / "plain.cu")
        self.expect("machine code without variables", self.shown("variables"), ["unused"])
        source = self.folder / "texture.ptx"
        for used in (True, False):
            source.write_text(TEXTURE if used else re.sub(r"tex.1d.*;", "", TEXTURE))
            for options in (["-cubin", "-arch=sm_90"],
                            ["-fatbin", "-gencode", "arch=compute_90,code=[sm_90,compute_90]"]):
                run(self.nvcc, *options, "-o", self.image, source)
                self.expect(f"texture reference, used: {used}, {options[0]}", self.shown("variables"),
                            ["used" if used else "unused"])

    def movable(self):
        """Which variables of cubins can be moved, and what keeps an image's from it."""
        all_of_them = {"number", "zeros", "_ZZ6kernelE5calls", "$str", "_ZTV4Base", "_ZTV7Derived"}
        pointer, taken = "number, which cannot be moved", "the address of a __constant__ variable"
        for defines, stays in (("NOTHING", ""), ("CONSTANT", ""), ("POINTER", pointer), ("TAKEN", taken)):
            images = self.built(PROGRAMS / "movable.cu", "-D" + defines)
            del images["text"]
            if defines in ("CONSTANT", "TAKEN"):
                images.update(self.cubins(PROGRAMS / "movable.cu", "sm_75", "sm_100", "sm_121",
                                          options=["-D" + defines]))
            for kind in images:
                what = f"{defines}, {kind}"
                self.expect(f"variables that stay: {what}", self.shown("stays", images[kind]),
                            [stays] if stays else [])
                wanted = all_of_them - ({"number"} if defines == "POINTER" else set())
                self.expect(f"variables that are moved: {what}",
                            set(self.shown("moved", images[kind])) - {"taken"}, wanted)

    def tables(self):
        """NVIDIA's can be moved, where that is asked for."""
        images = self.built(TABLES)
        del images["text"]   # of which nothing is planned
        images.update(self.cubins(TABLES, "sm_75", "sm_100"))
        wanted = ["__cudart_i2opi_d", "__cudart_i2opi_f", "__cudart_sin_cos_coeffs"]
        for kind, image in images.items():
            self.expect(f"NVIDIA's tables: {kind}", self.shown("table", image), wanted)
            self.expect(f"NVIDIA's tables that stay: {kind}", self.shown("table-stays", image), [])

    def printing_linked(self):
        """Across files, where the linker tells what a kernel may reach."""
        objects = []
        for part in ("CALLERS", "CALLED"):
            objects.append(self.folder / (part + ".cubin"))
            run(self.nvcc, "-arch=sm_90", "-cubin", "-rdc=true", "-D" + part, "-o", objects[-1], PRINTING)
        run(self.nvcc, "-arch=sm_90", "-dlink", "-fatbin", "-o", self.image, *objects)
        self.expect_printing("linked", self.image)


def main(show, nvcc):
    with tempfile.TemporaryDirectory() as folder:
        test = Test(show, nvcc, folder)
        test.containers()
        for target in ["sm_75", "sm_80", "sm_90"]:
            for source in [SOURCE, PROGRAMS / "layouts.cu"]:
                test.facts(target, source)
        for options in (["-arch=sm_75", "-fatbin"], ["-arch=sm_90", "-fatbin"], ["-arch=sm_90", "-cubin"],
                        ["-arch=sm_90", "-fatbin", "-Xfatbin", "-compress-all"],
                        ["-gencode", "arch=compute_90,code=compute_90", "-fatbin"]):
            test.printing(*options)
        test.expect_printing("text", test.ptx("90", PRINTING))
        test.printing_linked()
        test.variables()
        test.movable()
        test.tables()
        print("\n".join(test.problems) or
              f"{len(CASES)} containers and 6 cubins read as nvcc and ptxas made them")
        return 1 if test.problems else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
