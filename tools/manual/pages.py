"""The man pages, from the commands' usages and the table of settings."""

import re

import roff

ROW = re.compile(r"^\| `(\w+)` \| (.*?) \| (.*?) \| (.*?) \| (.*) \|$", re.MULTILINE)

FILES = [("$XDG_CONFIG_HOME/smt.toml, ~/.config/smt.toml, /etc/smt.toml", "settings"),
         ("/tmp/smt-UID", "sockets, logs and journals of a user's servers (`SMT_RUNTIME_DIR`)"),
         ("~/.cache/smt", "compiled kernels, the index of `smt index`, and profiles (`SMT_CACHE_DIR`)"),
         ("PREFIX/lib/smt",
          "libsmt.so, which stands in for the CUDA driver, and the CUDA runtime of the simulated device"),
         ("PREFIX/libexec/smt", "the compile worker, and demo.sh, which shows two programs side by side"),
         ("PREFIX/include/smt/smt_worker.h", "for sources that `smt rewrite` printed"),
         ("PREFIX/share/doc/smt", "what is called docs/ in messages: policies.md, limits.md, settings.md")]

NEEDS = ["No part of CUDA is needed to install smt, or to run programs on the simulated device (`smt run "
         "--device sim`), if they were built with "
         "`nvcc -cudart shared` or use the driver's interface alone.",
         "A GPU needs NVIDIA's driver for CUDA 13. `libnvrtc.so.13` and `libnvJitLink.so.13` are opened when "
         "they are needed, from the folders lib64, lib and "
         "targets/x86_64-linux/lib of `$CUDA_HOME`, of the toolkit that smt was built with and of "
         "/usr/local/cuda, then where the loader finds them. "
         "Without NVRTC kernels are managed by the PTX in programs only, without nvJitLink the driver links. "
         "`smt rewrite` and `smt index` read the toolkit's headers. "
         "`smt doctor` says what is missing."]

DESCRIPTION = ["Several CUDA programs share one GPU, unmodified. `smt run` starts a program with a library "
               "in front of its CUDA driver; the library hands what the program "
               "asks to a server, `smtd`(1), which owns the GPU's one context and runs the kernels of all "
               "programs in it. The server starts with the first program and "
               "ends some time after the last.",
               "`smt` `COMMAND` `--help` prints what this page says of a command."]

EXITS = [("0", "it is done"), ("1", "it could not be done; a line on standard error says why"),
         ("2", "the command line makes no sense; the usage is on standard error")]

ALSO = {"smt": ["smtd", "smt-rewrite", "smt-index"], "smtd": ["smt"], "smt-rewrite": ["smt", "smt-index"],
        "smt-index": ["smt", "smt-rewrite"]}


def sentence(summary):
    first = summary if summary.startswith("smt ") else summary[0].upper() + summary[1:]
    return first + "."


def blocks(command):
    text = ""
    for block in command.blocks:
        text += roff.paragraph(block) if isinstance(block, str) else "".join(roff.term(*term)
                                                                             for term in block)
    return text


def synopsis(command):
    return roff.verbatim(command.forms, roff.form)


def name_and_synopsis(name, summary, shown):
    return (roff.heading("NAME") + f"{roff.escape(name)} \\- {roff.escape(summary)}\n" +
            roff.heading("SYNOPSIS") + shown)


def see_also(name):
    return roff.heading("SEE ALSO") + ",\n".join(f"\\fB{roff.escape(other)}\\fR(1)"
                                                 for other in ALSO[name]) + "\n"


def settings(document, wanted=lambda readers: True):
    """The page of settings: what it says first, and the rows that `wanted` takes by their readers."""
    opening, *sections = re.split(r"^## (.*)\n", document, flags=re.MULTILINE)
    text = roff.heading("SETTINGS")
    if wanted("command"):   # else the page of smt has it
        text += roff.markdown(opening.partition("\n\n")[2])
    for heading, table in zip(sections[::2], sections[1::2]):
        rows = [row for row in ROW.findall(table) if wanted(row[3])]
        if rows:
            text += roff.part(heading)
        for name, takes, initial, _, sentence in rows:
            text += (f".TP\n\\fB{roff.escape(name)}\\fR ({roff.escape(takes)}; default: "
                     f"{roff.escape(initial)})\n{roff.prose(sentence)}\n")
    return text


def of_smt(commands, document, version):
    text = roff.title("smt", 1, version)
    text += name_and_synopsis("smt", "CUDA programs share one GPU",
                              ".PP\n" + roff.form("smt COMMAND [ARGUMENT]...") + "\n")
    text += roff.heading("DESCRIPTION") + "".join(map(roff.paragraph, DESCRIPTION))
    text += roff.heading("COMMANDS")
    for command in commands:
        text += (roff.part(command.name) + roff.paragraph(sentence(command.summary)) + synopsis(command) +
                 blocks(command))
    text += roff.heading("EXIT STATUS") + "".join(roff.term(*each) for each in EXITS)
    text += roff.paragraph("`smt run` becomes the program, whose exit status it has then.")
    text += settings(document)
    text += roff.heading("FILES") + "".join(f".TP\n\\fI{roff.escape(file)}\\fR\n{roff.prose(what)}\n"
                                            for file, what in FILES)
    text += roff.heading("WHAT IS NEEDED") + "".join(map(roff.paragraph, NEEDS))
    return text + see_also("smt")


def of_server(command, document, version):
    text = roff.title("smtd", 1, version) + name_and_synopsis("smtd", command.summary, synopsis(command))
    text += roff.heading("DESCRIPTION") + roff.paragraph(
        "The first program under `smt run` starts it, and it ends by itself; there is no need to start it by "
        "hand. `smt server start`, `stop` and `status` do so "
        "and show it. It writes KEY.log and KEY.journal in the runtime folder, for `smt log` and "
        "`smt trace`.") + blocks(command)
    text += settings(document,
                     lambda readers: any(reader in readers
                                         for reader in ("server", "compile worker", "simulated device")) and
                     readers != "command")
    text += roff.heading("WHAT IS NEEDED") + "".join(map(roff.paragraph, NEEDS))
    return text + see_also("smtd")


def of_program(command, version):
    """smt-rewrite and smt-index: what `smt rewrite` and `smt index` become."""
    name = command.name.replace(" ", "-")
    text = roff.title(name, 1, version) + name_and_synopsis(name, command.summary, synopsis(command))
    text += roff.heading("DESCRIPTION") + roff.paragraph(f"`{command.name}` becomes this program, with the "
                                                         "same arguments.") + blocks(command)
    text += roff.heading("ENVIRONMENT") + roff.term("CUDA_HOME",
                                                    "the CUDA toolkit whose headers are read; default: the "
                                                    "one that smt was built with, else /usr/local/cuda")
    text += roff.heading("EXIT STATUS") + "".join(roff.term(*each) for each in EXITS)
    return text + see_also(name)


def all_pages(commands, server, document, version):
    """Text by file name."""
    pages = {"smt.1": of_smt(commands, document, version), "smtd.1": of_server(server, document, version)}
    for command in commands:
        if command.word in ("rewrite", "index"):
            pages[f"smt-{command.word}.1"] = of_program(command, version)
    return pages
