"""Damaged images, made of small good ones: the same at every run.

    for case in damage.cases(corpora): case.name, case.bytes, case.errors

`errors` are what a load, or the look-up of its kernel, may return. NVIDIA documents each for images that
are broken or that hold nothing for the device.
"""
import dataclasses
import random
import struct

INVALID_IMAGE, INVALID_PTX = "CUDA_ERROR_INVALID_IMAGE", "CUDA_ERROR_INVALID_PTX"
NO_BINARY = "CUDA_ERROR_NO_BINARY_FOR_GPU"
UNREADABLE = {INVALID_IMAGE, INVALID_PTX}

FATBIN_HEADER, ENTRY_HEADER = 16, 64
FLAG_LZ4, FLAG_ZSTD = 0x2000, 0x8000
MOST = (1 << 64) - 1


@dataclasses.dataclass
class Case:
    name: str
    bytes: bytes
    errors: set


def put(data, at, form, value):
    """`data` with a number in another's place."""
    packed = struct.pack("<" + form, value)
    return data[:at] + packed + data[at + len(packed):]


def get(data, at, form):
    return struct.unpack_from("<" + form, data, at)[0]


# ---- fatbins

def fatbin(*entries):
    payload = b"".join(entries)
    return struct.pack("<IHHQ", 0xBA55ED50, 1, FATBIN_HEADER, len(payload)) + payload


def entry(stored, kind=1, architecture=90, flags=0, size=0):
    padded = stored + bytes(-len(stored) % 8)
    return struct.pack("<HHIQIIHHIIIQQQ", kind, 0x101, ENTRY_HEADER, len(padded), len(stored) if size else 0,
                       0, 0, 9,
                       architecture, 0, 0, flags | 0x11, 0, size) + padded


def last_entry(data):
    """Where the header of the last entry stands."""
    at = FATBIN_HEADER
    while True:
        following = at + get(data, at + 4, "I") + get(data, at + 8, "Q")
        if following >= len(data):
            return at
        at = following


def fatbin_headers(name, good):
    for field, at, form, values in [("version", 4, "H", [0, 2, 0xffff]),
                                    ("header", 6, "H", [0, 8, 15, 0xffff]),
                                    ("payload", 8, "Q",
                                     [0, len(good) - 17, len(good) - 15, 1 << 40, 1 << 63, MOST])]:
        for value in values:
            yield Case(f"{name}: {field} is {value:#x}", put(good, at, form, value), {INVALID_IMAGE})


def entry_headers(name, good):
    at = last_entry(good)
    stored = get(good, at + 8, "Q")
    lengths = [("header", 4, "I", [0, 63, 1 << 31, (1 << 32) - 1]),
               ("payload", 8, "Q", [0, stored - 8, stored + 8, 1 << 63, MOST]),
               ("compressed", 16, "I", [1, stored // 2, stored + 1, (1 << 32) - 1]),
               ("bytes", 56, "Q", [0, 1, 252, 254, (1 << 29) + 1, 1 << 40, MOST])]
    for field, offset, form, values in lengths:
        for value in values:
            yield Case(f"{name}: {field} of an entry is {value:#x}", put(good, at + offset, form, value),
                       {INVALID_IMAGE})
    for value in [2, 3, 0x40, 0xffff]:
        yield Case(f"{name}: the text's kind is {value:#x}", put(good, at, "H", value), {NO_BINARY})
    for value in [100, 120, 0xffff]:
        yield Case(f"{name}: the text's target is {value}", put(good, at + 28, "I", value), {NO_BINARY})
    for flags in [0x11, 0x11 | FLAG_LZ4, 0x11 | FLAG_ZSTD, 0x11 | FLAG_LZ4 | FLAG_ZSTD]:
        if not get(good, at + 40, "Q") & flags & (FLAG_LZ4 | FLAG_ZSTD):
            yield Case(f"{name}: flags are {flags:#x}", put(good, at + 40, "Q", flags), UNREADABLE)


def compressed_data(name, good):
    """Every so many bytes one that is another; zeros; ones."""
    at, end = last_entry(good), len(good)
    at += get(good, at + 4, "I")
    for position in range(at, at + 32, 8):
        yield Case(f"{name}: another byte at {position}", put(good, position, "B", good[position] ^ 0x55),
                   UNREADABLE)
    yield Case(f"{name}: zeros for data", good[:at] + bytes(end - at), UNREADABLE)
    yield Case(f"{name}: ones for data", good[:at] + b"\xff" * (end - at), UNREADABLE)


def truncated(name, good, parts, errors):
    for part in parts:
        length = len(good) * part // 100 if part > 1 else part
        yield Case(f"{name}: the first {length} bytes", good[:length], errors)


# ---- what becomes much

def zstd_bomb(megabytes, byte=0x20):
    """A frame of blocks that are one byte 128 Ki times."""
    blocks = megabytes * 8
    frame = b"\x28\xb5\x2f\xfd\x00\x58"  # magic; no size; a window of 2 MiB
    for i in range(blocks):
        frame += struct.pack("<I", (i == blocks - 1) | 1 << 1 | (128 << 10) << 3)[:3] + bytes([byte])
    return frame


def lz4_bomb(megabytes):
    """One byte, and a copy of it that goes on and on."""
    return b"\x1f\x20\x01\x00" + b"\xff" * (megabytes * (1 << 20) // 255) + b"\x00\x50" + b" " * 5


def bombs():
    for megabytes, said in [(16, 100), (16, (16 << 20) - 1), (16, 1 << 29), (16, 1 << 40)]:
        yield Case(f"zstd: {megabytes} MiB that are said to be {said} bytes",
                   fatbin(entry(zstd_bomb(megabytes), flags=FLAG_ZSTD, size=said)), {INVALID_IMAGE})
    yield Case("zstd: 16 MiB of blanks", fatbin(entry(zstd_bomb(16), flags=FLAG_ZSTD, size=16 << 20)),
               UNREADABLE)
    yield Case("zstd: 16 MiB of zeros", fatbin(entry(zstd_bomb(16, 0), flags=FLAG_ZSTD, size=16 << 20)),
               UNREADABLE)
    for said in [100, 1 << 28, 1 << 29, 1 << 40]:
        yield Case(f"lz4: 4 MiB that are said to be {said} bytes",
                   fatbin(entry(lz4_bomb(4), flags=FLAG_LZ4, size=said)), {INVALID_IMAGE})
    inner = fatbin(entry(b"\0"))
    yield Case("a fatbin for a text", fatbin(entry(inner)), UNREADABLE)
    yield Case("a fatbin's wrapper", struct.pack("<IIQQ", WRAPPER, 1, 0, 0), {INVALID_IMAGE})
    yield Case("no entries", fatbin(), {INVALID_IMAGE})


# ---- cubins

E_TYPE, E_SHOFF, E_PHOFF, E_PHENTSIZE, E_PHNUM, E_SHENTSIZE, E_SHNUM, E_SHSTRNDX = (16, 40,
                                                                                    32, 54, 56, 58, 60, 62)
SECTION = 64
SH_NAME, SH_TYPE, SH_OFFSET, SH_SIZE, SH_LINK = 0, 4, 24, 32, 40
WITH_CONTENT = {1, 2, 3, 4, 7, 9, 0x70000000}  # PROGBITS, SYMTAB, STRTAB, RELA, NOTE, REL, .nv.info


def cubins(good):
    for field, at, form, values in [("table", E_SHOFF, "Q",
                                     [len(good) - 63, len(good), 1 << 40, 1 << 63, MOST]),
                                    ("entry size", E_SHENTSIZE, "H", [0, 1, 63, 65, 0xffff]),
                                    ("sections", E_SHNUM, "H", [0, 1, 0xffff]),
                                    ("names", E_SHSTRNDX, "H", [0xff00]),
                                    ("program headers", E_PHOFF, "Q", [len(good), 1 << 40, MOST]),
                                    ("their size", E_PHENTSIZE, "H", [0, 1, 57]),
                                    ("their number", E_PHNUM, "H", [0xffff])]:
        for value in values:
            yield Case(f"cubin: {field} is {value:#x}", put(good, at, form, value), {INVALID_IMAGE})
    # Tables of garbage, but within the file.
    yield Case("cubin: the table is the header", put(good, E_SHOFF, "Q", 1), {NO_BINARY, INVALID_IMAGE})
    yield Case("cubin: the names are no section", put(good, E_SHSTRNDX, "H", 0xffff),
               {NO_BINARY, INVALID_IMAGE})
    yield Case("cubin: of 32 bits", put(good, 4, "B", 1), UNREADABLE)
    yield Case("cubin: big-endian", put(good, 5, "B", 2), {INVALID_IMAGE})
    sections = [get(good, E_SHOFF, "Q") + i * SECTION for i in range(get(good, E_SHNUM, "H"))]
    full = [at for at in sections if get(good, at + SH_TYPE, "I") in WITH_CONTENT]
    for number, at in enumerate(full[:8]):
        yield Case(f"cubin: section {number} beyond the end", put(good, at + SH_OFFSET, "Q", len(good)),
                   {INVALID_IMAGE})
        yield Case(f"cubin: section {number} is endless", put(good, at + SH_SIZE, "Q", MOST), {INVALID_IMAGE})
    # What only a reader of all sections would trip over. The simulated device has no use for a sound cubin
    # either.
    def everywhere(field, form, value):
        data = good
        for i, at in enumerate(sections):
            data = put(data, at + field, form, value(i))
        return data
    yield Case("cubin: each section is its own names", everywhere(SH_LINK, "I", lambda i: i),
               {NO_BINARY, INVALID_IMAGE})
    yield Case("cubin: each section's names are the next one's",
               everywhere(SH_LINK, "I", lambda i: (i + 1) % len(sections)),
               {NO_BINARY, INVALID_IMAGE})
    yield Case("cubin: all sections in one place", everywhere(SH_OFFSET, "Q", lambda i: 64),
               {NO_BINARY, INVALID_IMAGE})
    yield Case("cubin: the sections are the section headers",
               everywhere(SH_OFFSET, "Q", lambda i: sections[0]),
               {NO_BINARY, INVALID_IMAGE})
    yield Case("cubin: names without an end", everywhere(SH_NAME, "I", lambda i: 0xffffffff),
               {NO_BINARY, INVALID_IMAGE})
    yield Case("cubin: sections are said to be relocations", everywhere(SH_TYPE, "I", lambda i: 4),
               {NO_BINARY, INVALID_IMAGE})


# ---- texts

TEXT = """.version 9.0
.target sm_90
.address_size 64
%s
.visible .entry k(.param .u64 k_param_0)
{
    .reg .b32 %%r<2>;
    .reg .b64 %%rd<3>;
    ld.param.u64 %%rd1, [k_param_0];
    cvta.to.global.u64 %%rd2, %%rd1;
    mov.u32 %%r1, 1;
    %s
    st.global.u32 [%%rd2], %%r1;
    ret;
}
"""
GOOD_TEXT = TEXT % ("", "")
DEEP = 20000

TOP = {
    "an endless comment": "/* ",
    "an endless list": ".global .u32 a[2] = {" + "1," * DEEP,
    "deep lists": ".global .u32 a[2] = " + "{" * DEEP,
    "deep parentheses": ".global .u32 a = " + "(" * DEEP + "1" + ")" * DEEP + ";",
    "deep signs": ".global .u32 a = " + "-" * DEEP + "1;",
    "an unknown directive": ".frobnicate 1;",
    "an unknown type": ".global .u31 a;",
    "an open string": '.file 1 "',
    "an unknown symbol": ".global .u64 a = nobody;",
    "a name twice": ".global .u32 a; .global .u64 a;",
    "a number too large": ".global .u32 a = 99999999999999999999999999;",
    "a negative size": ".global .u32 a[-1];",
    "a size of all memory": ".global .u8 a[18446744073709551615];",
    "sizes whose product wraps": ".global .u64 a[4294967296][4294967296];",
    "more values than room": ".global .u8 a[2] = {1, 2, 3};",
    "an alignment of 3": ".global .align 3 .u32 a;",
    "a brace too many": "}",
    "bytes that are no text": "\x01\x02\xfe\xff",
}
BODY = {
    "deep blocks": "{" * DEEP,
    "deep blocks that end": "{" * DEEP + "}" * DEEP,
    "an unknown instruction": "frobnicate.b32 %r1;",
    "an unknown register": "mov.u32 %r9, 1;",
    "an unknown label": "bra nowhere;",
    "an unknown function": "call nobody;",
    "a label twice": "here: here:",
    "no semicolon": "mov.u32 %r1, 1",
    "endless registers": ".reg .b32 %q<4294967295>;",
    "an operand too many": "mov.u32 %r1, 1, 2;",
    "a modifier that is none": "mov.wide.u32 %r1, 1;",
    "more shared memory than there is": ".shared .b8 s[99999999999];  mov.u32 %r1, s;",
}


def texts():
    for what, text in TOP.items():
        yield Case(f"text: {what}", (TEXT % (text, "")).encode("latin-1"),
                   UNREADABLE | {"CUDA_ERROR_OUT_OF_MEMORY"})
    for what, text in BODY.items():
        yield Case(f"text: {what}", (TEXT % ("", text)).encode("latin-1"), UNREADABLE)
    yield Case("text: without a version", GOOD_TEXT.replace(".version 9.0", "").encode(), UNREADABLE)
    yield Case("text: of version 99.0", GOOD_TEXT.replace("9.0", "99.0").encode(),
               UNREADABLE | {"CUDA_ERROR_UNSUPPORTED_PTX_VERSION"})
    yield Case("text: for sm_120", GOOD_TEXT.replace("sm_90", "sm_120").encode(), {NO_BINARY})
    yield Case("text: for sm_99999999999", GOOD_TEXT.replace("sm_90", "sm_99999999999").encode(),
               UNREADABLE | {NO_BINARY})
    yield from truncated("text", GOOD_TEXT.encode(), [0, 1, 4, 30, 50, 60, 70, 80, 90, 95],
                         UNREADABLE | {"CUDA_ERROR_NOT_FOUND"})


# ---- what the fuzzers have

CORPORA = ("fatbin", "container", "image", "module", "ptx")
MUTATED = 60
WRAPPER = 0x466243B1
ANY = UNREADABLE | {NO_BINARY, "CUDA_SUCCESS", "CUDA_ERROR_NOT_FOUND", "CUDA_ERROR_OUT_OF_MEMORY",
                    "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"}


def mutated(data, chance):
    """Some bytes changed, a piece taken out, doubled or zeroed, the end cut off."""
    for _ in range(chance.randint(1, 4)):
        at, size = chance.randrange(len(data)), chance.choice([1, 2, 4, 8, 64])
        piece = data[at:at + size]
        with_what = chance.choice([bytes(chance.randrange(256) for _ in piece), b"", piece * 2,
                                   bytes(len(piece)), b"\xff" * len(piece)])
        data = data[:at] + with_what + data[at + size:] or b"\0"
    return data if chance.random() < 0.8 else data[:chance.randrange(1, len(data) + 1)]


def from_corpora(corpora):
    """Some are sound, as far as they go, so anything that is documented may come of them. Not a fatbin's
    wrapper: in memory its pointer is followed, as by the driver."""
    inputs = [(f"{name}/{path.name}", path.read_bytes()) for name in CORPORA
              for path in sorted((corpora / name).iterdir())]
    inputs = [(name, data) for name, data in inputs if data[:4] != struct.pack("<I", WRAPPER)]
    for name, data in inputs:
        yield Case(f"corpus {name}", data, ANY)
    chance = random.Random(5)
    for number in range(MUTATED):
        name, data = chance.choice([each for each in inputs if each[1]])
        yield Case(f"corpus {name}, mutation {number}", mutated(data, chance), ANY)


def cases(corpora):
    """`corpora`: the folder tests/fuzz/corpus."""
    corpus = corpora / "fatbin"
    good = {name: (corpus / name).read_bytes() for name in ["zstd", "lz4", "texts", "cubin"]}
    for name in ["zstd", "lz4"]:
        yield from fatbin_headers(name, good[name])
        yield from entry_headers(name, good[name])
        yield from compressed_data(name, good[name])
        yield from truncated(name, good[name], [1, 10, 25, 50, 75, 90, 99], {INVALID_IMAGE})
    yield from truncated("texts", good["texts"], [1, 10, 50, 90, 99], {INVALID_IMAGE})
    yield from bombs()
    yield from cubins(good["cubin"])
    yield from truncated("cubin", good["cubin"], [1, 2, 10, 25, 50, 75, 90, 99], {INVALID_IMAGE})
    yield from texts()
    yield from from_corpora(corpora)
