"""The commands as they describe themselves: what `smt --help`, `smt COMMAND --help` and `smtd --help` print.

A usage has forms, each a line that starts with the program's name, and after an empty line blocks:
paragraphs, and lists of terms that stand two spaces in, with their sentences behind two spaces or more:

    usage: smt inspect FILE [--arch sm_90] [--json]

      FILE         a program, shared or static library, object, ...
      --arch sm_N  the device that is asked about (...
                   as they do for the driver
"""

import re
import subprocess
from dataclasses import dataclass, field

OPTION = re.compile(r"(?<![\w-])(--?[A-Za-z][\w-]*)(?:[ =](?!\|)([\w.|]+))?")
TERM = re.compile(r" {2}(\S.*?) {2,}(\S.*)$")
PATIENCE = 60


@dataclass
class Option:
    name: str
    value: str = ""      # what stands for it in the usage: NAME, gpu|sim; "": the option takes none
    sentence: str = ""

    @property
    def choices(self):
        """Without what stands for others, as N in N|any."""
        words = self.value.split("|")
        return [each for each in words if not each.isupper()] if len(words) > 1 else []


@dataclass
class Command:
    name: str            # "smt run"
    summary: str
    forms: list
    # paragraphs (str) and lists of terms [(term, sentence), ...]
    blocks: list = field(default_factory=list)
    options: dict = field(default_factory=dict)    # Option by name
    words: list = field(default_factory=list)      # literal operands: start, stop, status
    operands: list = field(default_factory=list)   # what stands for others: FILE, BUILD_DIR

    @property
    def word(self):
        return self.name.split()[-1]


def read_forms(command):
    """Options and operands of the forms; operands are what is left beside options and their values, literal
    ones in lower case."""
    for form in command.forms:
        rest = form.removeprefix(command.name)
        own = rest.partition(" -- ")[0]   # behind it another program's command line begins
        for name, value in OPTION.findall(own):
            known = command.options.setdefault(name, Option(name))
            known.value = known.value or value
        left = re.sub(r"[][|]", " ", OPTION.sub(" ", own))
        for word in left.split():
            kind = command.words if re.fullmatch(r"[a-z]+", word) else command.operands
            if word not in kind and word.strip("."):
                kind.append(word)


def read_block(command, lines):
    terms, paragraph = [], []
    for line in lines:
        if match := TERM.match(line):
            terms.append([match[1], match[2]])
        elif terms and line.startswith("   "):
            terms[-1][1] += " " + line.strip()
        else:
            paragraph.append(line.strip())
    if paragraph:
        command.blocks.append(" ".join(paragraph))
    if terms:
        command.blocks.append([tuple(term) for term in terms])
    for term, sentence in terms:
        if match := OPTION.match(term):
            known = command.options.setdefault(match[1], Option(match[1]))
            known.value, known.sentence = match[2] or known.value, sentence


def read_usage(name, text):
    """A command from what its --help prints. Raises ValueError: it is no usage."""
    summary, found, rest = text.partition("usage: ")
    if not found:
        raise ValueError(f"{name} --help prints no usage: {text!r}")
    blocks = [[]]
    for line in rest.splitlines():
        if not line.strip():
            blocks.append([])
        # terms may follow without an empty line
        elif len(blocks) == 1 and blocks[0] and not line.strip().startswith(name):
            blocks.append([line])
        else:
            blocks[-1].append(line)
    command = Command(name, summary.strip(), [form.strip() for form in blocks[0]])
    read_forms(command)
    for block in blocks[1:]:
        if block:
            read_block(command, block)
    return command


def output_of(*words):
    return subprocess.run(words, check=True, capture_output=True, text=True, timeout=PATIENCE).stdout


def read_commands(smt):
    """Every subcommand, in the order of `smt --help`."""
    listed = re.findall(r"^ {2}([a-z]+) +\S", output_of(smt, "--help"), re.MULTILINE)
    if not listed:
        raise ValueError("smt --help lists no commands")
    return [read_usage(f"smt {name}", output_of(smt, name, "--help")) for name in listed]


def read_server(smtd):
    command = read_usage("smtd", output_of(smtd, "--help"))
    command.summary = "owns one GPU, or the simulated device, for the CUDA programs of one user"
    return command
