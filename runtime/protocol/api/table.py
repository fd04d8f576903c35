"""The API table: reads the *.api files of this folder into entries. The grammar is in README.md."""

import pathlib
import re

import addresses
import charges

TREATMENTS = ("early", "written", "older", "alias", "remote", "async", "real", "unsupported")

# Objects of the server, of which the client holds ids: type -> HandleKind.
SERVER_HANDLES = {
    "CUgraph": "kGraph", "CUgraphNode": "kGraphNode", "CUgraphExec": "kGraphExec", "CUarray": "kArray",
    "CUmipmappedArray": "kMipmappedArray", "CUtexObject": "kTexture", "CUsurfObject": "kSurface",
    "CUmemoryPool": "kPool", "CUmemGenericAllocationHandle": "kPhysicalMemory", "CUlinkState": "kLink",
    "CUuserObject": "kUserObject", "CUtexref": "kTextureReference", "CUsurfref": "kSurfaceReference",
}
# What a handle that comes back belongs to: the parameter of the first of these types that the call has.
PARENTS = {
    "CUgraphNode": ("CUgraph", "CUgraphNode"), "CUgraph": ("CUgraphNode",),
    "CUarray": ("CUmipmappedArray", "CUarray"),
    "CUtexref": ("CUmodule",), "CUsurfref": ("CUmodule",),
}
# Handles that are addresses of the client's own objects (interpose/driver/objects.h).
CLIENT_HANDLES = ("CUstream", "CUevent", "CUfunction", "CUkernel", "CUmodule", "CUlibrary")

PARAMETER = re.compile(
    r"(?:(?P<direction>inout|in|out|lend|consume|records|plain|launched|addr|touch|str)"
    r"(?P<always>!)?(?P<optional>\?)?"
    r"(?:\[(?P<count>[^]]+)\])?(?:<(?P<carried>\w+)>)? )?(?P<type>.*?)(?P<name>\w+)$")
LINE = re.compile(
    r"(?P<treatment>\w+)(?: +(?P<target>cu\w+))?(?P<served> +served)?(?P<adjusted> +adjusted)?"
    r"(?P<answers> +(?:recalled|forgets))? "
    r"+(?P<symbol>cu\w+)(?:\((?P<parameters>.*)\))?"
    r" +@(?P<version>\d+)(?: (?P<twin>ptds|ptsz)@(?P<twin_version>\d+))?(?: "
    r"addresses=(?P<addresses>\w+))?(?: memory=(?P<memory>\S+))?$")


class TableError(Exception):
    pass


class Parameter:
    def __init__(self, text):
        match = PARAMETER.match(text)
        if not match:
            raise TableError(f"cannot read parameter '{text}'")
        self.name = match["name"]
        self.type = match["type"].strip()               # as C++ writes it: "const CUgraphNode *"
        self.direction = match["direction"] or ""       # "": by value
        self.count = match["count"]                     # element count of an array, or None
        self.optional = bool(match["optional"])
        self.always = bool(match["always"])             # sent back even when the call failed
        pointee = re.sub(r"^const\s+", "", self.type).replace("*", "", 1).strip()
        self.base = match["carried"] or (pointee if "*" in self.type else self.type)
        self.declaration = self.type + ("" if self.type.endswith("*") else " ") + self.name

    @property
    def by_value(self):
        return self.direction in ("", "consume", "records", "plain", "launched", "addr", "touch")

    @property
    def carries_address(self):
        """An address of the device, alone, in an array or in a struct: addresses.py."""
        return self.direction == "addr" or (self.base in ("CUdeviceptr",) + addresses.STRUCTS and
                                            not self.only_comes_back)

    @property
    def only_comes_back(self):
        return self.direction in ("out", "lend")

    @property
    def comes_back(self):
        return self.direction in ("out", "inout", "lend")

    @property
    def handle_kind(self):
        return SERVER_HANDLES.get(self.base)

    @property
    def counted_by(self):
        """The name of the parameter that holds the count, for `[*n]`; else None."""
        return self.count[1:] if self.count and self.count.startswith("*") else None


class Entry:
    def __init__(self, area, line):
        match = LINE.match(line)
        if not match or match["treatment"] not in TREATMENTS:
            raise TableError(f"cannot read line '{line}'")
        self.area, self.line = area, line
        self.treatment, self.symbol, self.target = match["treatment"], match["symbol"], match["target"]
        self.served = bool(match["served"])
        self.adjusted = bool(match["adjusted"])         # interpose/driver/device.h has the last word
        self.recalled = (match["answers"] or "").strip() == "recalled"  # interpose/transport/answers.h
        self.forgets = (match["answers"] or "").strip() == "forgets"
        self.version, self.twin = int(match["version"]), match["twin"]
        self.twin_version = int(match["twin_version"] or 0)
        # where the addresses it carries are checked: addresses.py
        self.addresses = match["addresses"]
        # where the memory that it gives is counted: charges.py
        self.memory = match["memory"]
        self.has_signature = match["parameters"] is not None
        listed = (match["parameters"] or "").strip()
        self.parameters = [Parameter(p.strip()) for p in split(listed)] if listed else []
        if (self.treatment == "alias") != bool(self.target):
            raise TableError(f"an alias, and only an alias, names its target: '{line}'")
        if not self.has_signature and self.treatment != "unsupported":
            raise TableError(f"only unsupported entry points may lack a signature: '{line}'")
        if match["answers"] and self.treatment != "remote":
            raise TableError(f"only a remote call is recalled, or forgets answers: '{line}'")
        if self.travels:
            for p in self.parameters:
                if p.by_value and p.direction != "addr" and "*" in p.type:
                    raise TableError(f"{self.symbol}: '{p.name}' is a pointer without a direction")
        self.check_addresses()
        self.check_memory()

    @property
    def gives_memory(self):
        if self.treatment in ("alias", "unsupported"):
            return False
        return self.symbol in charges.OTHER_CALLS or any(self.gives(p) for p in self.parameters)

    def gives(self, p):
        """Whether the parameter is a new object that holds memory, or an address of some."""
        if p.base not in charges.OBJECTS or "*" not in p.type or p.type.startswith("const"):
            return False
        if self.travels:
            return p.direction in ("out", "inout")
        return p.base != "CUdeviceptr" or self.addresses in ("answer", "wish")

    @property
    def charged(self):
        """The expression of how much a new object takes, where the generated handler counts it."""
        return self.memory if self.memory and "(" in self.memory else None

    def check_memory(self):
        """Memory that it gives is counted, or not counted by name."""
        if not self.gives_memory:
            if self.memory:
                raise TableError(f"{self.symbol}: memory={self.memory}, but it gives none")
        elif not self.memory:
            raise TableError(f"{self.symbol}: the memory that it gives is counted nowhere")
        elif self.charged:
            if not self.travels or not any(p.handle_kind for p in self.parameters if self.gives(p)):
                raise TableError(f"{self.symbol}: only a generated handler that makes an object counts "
                                 f"'{self.memory}'")
        elif self.memory not in charges.CHARGED and self.memory not in charges.UNCHARGED:
            raise TableError(f"{self.symbol}: charges.py knows no '{self.memory}'")
        elif self.memory in charges.CHARGED and self.travels and not self.served:
            raise TableError(f"{self.symbol}: '{self.memory}' is counted by hand, but both halves are "
                             "generated")

    def check_addresses(self):
        """Every address is checked, or exempt by name."""
        if self.treatment in ("alias", "unsupported"):
            unchecked = []
        else:
            unchecked = [p.name for p in self.parameters if p.carries_address and not self.checks(p)]
        if not unchecked and self.addresses:
            raise TableError(f"{self.symbol}: addresses={self.addresses}, but no parameter needs it")
        if not unchecked or self.addresses in addresses.EXEMPT:
            return
        if not self.addresses:
            raise TableError(f"{self.symbol}: the address in '{unchecked[0]}' is neither checked nor exempt")
        if self.addresses not in addresses.CHECKS:
            raise TableError(f"{self.symbol}: addresses.py knows no '{self.addresses}'")
        if self.travels and not self.served:
            raise TableError(f"{self.symbol}: '{self.addresses}' is a hand-written check, but both halves "
                             "are generated")

    def checks(self, p):
        """Whether the generated handler checks that parameter's address."""
        return self.travels and (p.direction == "touch" or
                                 (p.direction == "in" and p.base in addresses.GENERATED))

    def parent_of(self, parameter):
        """The parameter that owns what comes back in `parameter`; None: none does, or it is not said
        which."""
        for kind in PARENTS.get(parameter.base, ()):
            for p in self.parameters:
                if p.type == kind and p.by_value:
                    return p
        return None

    @property
    def travels(self):
        """Whether both sides of it are generated."""
        return self.treatment in ("remote", "async", "real")

    @property
    def op(self):
        return "k" + self.symbol[2:]

    @property
    def base(self):
        """The name cuGetProcAddress knows it by."""
        return re.sub(r"_v\d+$", "", self.symbol)

    @property
    def takes_default_stream(self):
        """It has a per-thread twin but no stream parameter to carry the difference."""
        return bool(self.twin) and not any(p.type == "CUstream" for p in self.parameters)

    def exports(self):
        return [self.symbol] + ([f"{self.symbol}_{self.twin}"] if self.twin else [])

    def signature(self, extra=False):
        """The C parameter list; with `extra`, as namespace smt::interpose::driver declares it."""
        listed = [p.declaration for p in self.parameters]
        if extra and self.takes_default_stream:
            listed.append("CUstream stream")
        return ", ".join(listed)


def split(text):
    """Splits at commas outside brackets."""
    return re.split(r",(?![^\[]*\])", text)


def read(folder):
    entries, seen = [], {}
    for path in sorted(pathlib.Path(folder).glob("*.api")):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            line = line.strip()
            if not line or line.startswith("#"):
                continue
            try:
                entry = Entry(path.stem, line)
            except TableError as error:
                raise SystemExit(f"{path}:{number}: {error}")
            for symbol in entry.exports():
                if symbol in seen:
                    raise SystemExit(f"{path}:{number}: {symbol} is already in {seen[symbol]}")
                seen[symbol] = f"{path}:{number}"
            entries.append(entry)
    names = {e.symbol for e in entries}
    for e in entries:
        if e.target and e.target not in names:
            raise SystemExit(f"{e.symbol}: its target {e.target} is not in the table")
    return entries


def resolvable(entries):
    """(name, version, per_thread, symbol) for cuGetProcAddress, sorted."""
    rows = []
    for e in entries:
        rows.append((e.base, e.version, False, e.symbol))
        if e.twin:
            rows.append((e.base, e.twin_version, True, f"{e.symbol}_{e.twin}"))
    return sorted(rows, key=lambda r: (r[0], r[2], r[1]))
