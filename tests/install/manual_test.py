#!/usr/bin/env python3
"""Man pages and completions name every command of smt's table, and every option that the commands' sources
read.

    manual_test.py FOLDER_OF_tools/manual SOURCE BIN

The sources are asked because the pages come from the usages: an option that a usage lacks would be missing in
all of them.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

PATIENCE = 30
WORD = r'"(--?[a-z][\w-]*)"'


def command_names(source):
    table = re.search(r"kCommands\[\] = \{(.*?)\}", (source / "tools/smt/main.cpp").read_text(), re.DOTALL)[1]
    names = re.findall(r"&(\w+)_command", table)
    assert len(names) > 10, names
    return names


def options_of(source, name):
    """What a command's file gives to parse_options(); for the commands that become programs, what those
    compare with."""
    programs = {"rewrite": "tools/rewrite/main.cpp", "index": "tools/index/main.cpp"}
    if name in programs:
        return set(re.findall(r"(?:==|starts_with\() ?" + WORD,
                              (source / programs[name]).read_text())) - {"-"}
    text = (source / f"tools/smt/{name}.cpp").read_text()
    calls = re.findall(r"parse_options\(\s*\w+,\s*\{([^}]*)\},\s*\{([^}]*)\}", text)
    assert len(calls) == text.count("parse_options("), \
        f"{name}.cpp has a call of parse_options() that this test does not read"
    return {option for call in calls for part in call for option in re.findall(WORD, part)}


def words_of(source, name):
    """Literal operands: arguments[0] == "start"."""
    return set(re.findall(r'(?:arguments\[0\]|what) == "([a-z]+)"',
                          (source / f"tools/smt/{name}.cpp").read_text()))


def plain(text):
    """A man page's source without its escapes."""
    return re.sub(r"\\f[BIRP]", "", text.replace("\\-", "-")).replace("\\&", "")


def has_word(text, word):
    return re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", text)


def section_of(page, name):
    return page.partition(f'.SS "smt {name}"\n')[2].partition("\n.S")[0]


def check_pages(manual, source, names):
    page = plain((manual / "man/smt.1").read_text())
    for name in names:
        section = section_of(page, name)
        assert section, f"smt.1 has no smt {name}"
        for word in options_of(source, name) | words_of(source, name):
            assert has_word(section, word), f"smt.1 lacks {word} of smt {name}"
    for program in ("rewrite", "index"):
        page_of = plain((manual / f"man/smt-{program}.1").read_text())
        for option in options_of(source, program):
            assert has_word(page_of, option), f"smt-{program}.1 lacks {option}"
    server = plain((manual / "man/smtd.1").read_text())
    for option in re.findall(r"argument == " + WORD, (source / "runtime/server/main.cpp").read_text()):
        assert has_word(server, option), f"smtd.1 lacks {option}"
    for variable, item in re.findall(r'^SMT_SETTING\(\w+, "(\w+)", "(\w*)"',
                                     (source / "runtime/settings/settings.def").read_text(), re.MULTILINE):
        assert f"\n{variable} (" in page or f'Items of {variable}"' in page and f"\n{item} (" in page, \
            f"smt.1 lacks the setting {variable} {item}"


def check_completions(manual, source, names):
    bash, zsh, fish = ((manual / "bash/smt").read_text(), (manual / "zsh/_smt").read_text(),
                       (manual / "fish/smt.fish").read_text())
    for name in names:
        of_bash = "\n".join(re.findall(rf"^    {name}\) .*$", bash, re.MULTILINE))
        of_zsh = zsh.partition(f"        {name})\n")[2].partition(";;")[0]
        of_fish = "\n".join(re.findall(rf"^.*__fish_seen_subcommand_from {name}'.*$", fish, re.MULTILINE))
        assert of_bash and of_zsh, f"the completions lack smt {name}"
        assert f"__fish_use_subcommand -a {name} " in fish, f"fish's completions lack smt {name}"
        for word in options_of(source, name) | words_of(source, name):
            for_fish = (f"-l {word[2:]}" if word.startswith("--")
                        else f"-s {word[1:]}" if word.startswith("-") else word)
            assert has_word(of_bash, word), f"bash's completions lack {word} of smt {name}"
            assert has_word(of_zsh, word), f"zsh's completions lack {word} of smt {name}"
            assert has_word(of_fish, for_fish), f"fish's completions lack {word} of smt {name}"


def check_accepted(manual, bin_folder, names):
    """The other way round: each option in the completions is one that its command knows."""
    fish = (manual / "fish/smt.fish").read_text()
    for name in names:
        if name in ("rewrite", "index", "bench"):   # whose programs may not be there
            continue
        lines = "\n".join(re.findall(rf"^.*__fish_seen_subcommand_from {name}'.*$", fish, re.MULTILINE))
        options = (["--" + each for each in re.findall(r" -l ([\w-]+)", lines)] +
                   ["-" + each for each in re.findall(r" -s (\w)", lines)])
        first_words = [[word]
                       for word in "".join(re.findall(r"' -a '?([a-z ]+)'?$", lines, re.MULTILINE)).split()]
        for option in options:
            said = []
            for words in [[]] + first_words:   # misuse in any case, so that no command does anything
                done = subprocess.run([bin_folder / "smt", name, *words, option + "=1", "--no-such-option"],
                                      capture_output=True, text=True, timeout=PATIENCE)
                said.append(done.stderr)
            assert not all(f"unknown option '{option}=1'" in each
                           for each in said), f"smt {name} does not know {option}: {said}"


def check_shells(manual, home):
    """The completions load, and complete. Shells make folders of their own, below `home` here."""
    environment = {"PATH": os.environ["PATH"], "HOME": home, "LANG": "C.UTF-8"}

    def run(*words):
        return subprocess.run(words, check=True, capture_output=True, text=True, timeout=PATIENCE,
                              env=environment)

    def in_bash(*words):
        line = " ".join(f"'{word}'" for word in words)
        done = run("bash", "--norc", "-c", f"source '{manual}/bash/smt'; COMP_WORDS=({line}); "
                   f"COMP_CWORD={len(words) - 1}; _smt; printf '%s\\n' \"${{COMPREPLY[@]}}\"")
        assert not done.stderr, done.stderr
        return done.stdout.split()

    assert in_bash("smt", "po") == ["policy"]
    assert in_bash("smt", "run", "--de") == ["--device"]
    assert in_bash("smt", "run", "--device", "s") == ["sim"]
    assert in_bash("smt", "run", "--gpu", "") == ["any"]
    assert in_bash("smt", "server", "st") == ["start", "stop", "status"]
    assert "fair" in in_bash("smt", "policy", "set", "")
    if shutil.which("zsh"):
        done = run("zsh", "-f", "-c",
                   f"autoload -Uz compinit; compinit -u -D; source '{manual}/zsh/_smt'; print $_comps[smt]")
        assert done.stdout.strip() == "_smt" and not done.stderr, done
    if shutil.which("fish"):
        done = run("fish", "--no-config", "-c",
                   f"source '{manual}/fish/smt.fish'; complete -C 'smt run --dev'; complete -C 'smt pol'")
        assert "--device" in done.stdout and "policy" in done.stdout and not done.stderr, done


def check_roff(manual):
    """groff has nothing to say against the pages."""
    if not shutil.which("groff"):
        return
    for page in sorted((manual / "man").glob("*.1")):
        done = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-rLL=200n", page], capture_output=True,
                              text=True, timeout=PATIENCE)
        assert done.returncode == 0 and not done.stderr, f"{page}: {done.stderr}"


def main(manual, source, bin_folder):
    manual, source, bin_folder = map(pathlib.Path, (manual, source, bin_folder))
    names = command_names(source)
    check_pages(manual, source, names)
    check_completions(manual, source, names)
    check_accepted(manual, bin_folder, names)
    with tempfile.TemporaryDirectory() as home:
        check_shells(manual, home)
    check_roff(manual)


if __name__ == "__main__":
    main(*sys.argv[1:])
