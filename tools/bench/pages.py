"""What generated pages have in common: numbers, tables and paragraphs in Markdown."""
import re
import textwrap


def number(value):
    return f"{value:,}" if isinstance(value, int) else f"{value:,.10g}"


def slug(name):
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def table(*rows):
    """The first row is the heading."""
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return [lines[0], "|" + "---|" * len(rows[0]), *lines[1:], ""]


def paragraph(text):
    return textwrap.fill(text, 110, break_long_words=False, break_on_hyphens=False)
