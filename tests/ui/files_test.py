#!/usr/bin/env python3
"""The page's files agree: files_test.py FOLDER

What the scripts look up by id is in the page, what the page refers to by id too; each control has a label and
each column a scope; what it loads are files beside it; nothing else is loaded, from here or elsewhere."""

import html.parser
import pathlib
import re
import sys

LABELLED = ("input", "select", "canvas", "table", "section", "output")
NO_STYLE = "the policy for content allows no style and no script in the page"


class Page(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.elements = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))


def check_ids(page, scripts):
    ids = [has["id"] for _, has in page.elements if "id" in has]
    assert len(ids) == len(set(ids)), f"twice: {ids}"
    wanted = set(re.findall(r'\bat\("([\w-]+)"\)', scripts)) | set(re.findall(r'canvas\("(\w+)"\)', scripts))
    assert len(wanted) > 10, "the scripts look for almost nothing: this test does not read them any more"
    for _, has in page.elements:
        for name in ("for", "aria-labelledby", "aria-describedby"):
            wanted |= set(has.get(name, "").split())
        if has.get("href", "").startswith("#"):
            wanted.add(has["href"][1:])
    assert wanted <= set(ids), f"not in the page: {wanted - set(ids)}"


def check_names(page):
    labels = {has["for"] for tag, has in page.elements if tag == "label" and "for" in has}
    for tag, has in page.elements:
        if tag == "th":
            assert has.get("scope") in ("col", "row"), has
        if tag in LABELLED and has.get("type") != "checkbox":   # which lies in its label
            named = {"aria-label", "aria-labelledby"} & set(has) or has.get("id") in labels or "for" in has
            assert named, f"a screen reader has no name for {tag} {has}"


def check_sources(page, folder):
    for tag, has in page.elements:
        assert "style" not in has and tag != "style", NO_STYLE
        assert not any(name.startswith("on") for name in has), NO_STYLE
        assert tag != "script" or "src" in has, NO_STYLE
        for source in (has.get("src"), has.get("href")):
            if source and not source.startswith("#") and source != "data:,":
                assert (folder / source).is_file(), f"{source} is not beside the page"
    for file in folder.iterdir():
        text = file.read_text()
        assert not re.search(r"https?://|@import|url\(", text), f"{file} loads something"
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(", text), \
            f"{file} makes elements of text"


def main(folder):
    folder = pathlib.Path(folder)
    page = Page((folder / "page.html").read_text())
    scripts = "".join(file.read_text() for file in sorted(folder.glob("*.js")))
    check_ids(page, scripts)
    check_names(page)
    check_sources(page, folder)


if __name__ == "__main__":
    main(*sys.argv[1:])
