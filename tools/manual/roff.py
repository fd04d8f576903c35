"""Text for man: roff, with the macros of man(7)."""

import re

# In this order: the first one is in all the others.
ESCAPES = (("\\", "\\e"), ("-", "\\-"), ("'", "\\(aq"), ("`", "\\(ga"), ("^", "\\(ha"), ("~", "\\(ti"))

def escape(text):
    """Plain text, which may stand at a line's start."""
    for plain, escaped in ESCAPES:
        text = text.replace(plain, escaped)
    return "\\&" + text if text.startswith(".") else text


def prose(text):
    """Markdown's `code` becomes bold."""
    parts = re.split(r"`([^`]+)`", text)
    return "".join(f"\\fB{escape(part)}\\fR" if at % 2 else escape(part) for at, part in enumerate(parts))


def form(text):
    """A line of a synopsis: what is typed as it stands is bold, what stands for something is italic."""
    def shown(piece):
        if not re.search(r"\w|--", piece):   # brackets, dots
            return escape(piece)
        return f"\\fI{escape(piece)}\\fR" if piece.isupper() else f"\\fB{escape(piece)}\\fR"
    return "".join(map(shown, re.split(r"([\w/=-]+(?:\.\w+)*)", text)))


def title(name, section, version):
    return f'.TH {name.upper()} {section} "" "smt {version}" "smt"\n'


def heading(text):
    return f'.SH "{text}"\n'


def part(text):
    return f'.SS "{text}"\n'


def paragraph(text):
    return ".PP\n" + prose(text) + "\n"


def term(text, sentence):
    return f".TP\n{form(text)}\n{prose(sentence)}\n"


def verbatim(lines, shown=escape):
    return ".PP\n.nf\n" + "".join(shown(line) + "\n" for line in lines) + ".fi\n"


def markdown(text):
    """Paragraphs, numbered lists and code between fences; no more is in the page of settings."""
    result = ""
    fenced = re.split(r"^```\w*\n(.*?)^```\n", text, flags=re.MULTILINE | re.DOTALL)
    for at, piece in enumerate(fenced):
        if at % 2:
            result += ".RS\n" + verbatim(piece.splitlines()) + ".RE\n"
            continue
        for block in filter(str.strip, piece.split("\n\n")):
            items = re.findall(r"^(\d+\.) (.*)$", block, re.MULTILINE)
            if items:
                result += "".join(f'.IP "{number}" 4\n{prose(item)}\n' for number, item in items)
            else:
                result += paragraph(" ".join(block.split()))
    return result
