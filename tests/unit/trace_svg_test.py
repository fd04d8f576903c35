#!/usr/bin/env python3
"""tools/trace_svg.py on a trace, and on what is none: trace_svg_test.py"""
import json
import pathlib
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as tree

HERE = pathlib.Path(__file__).resolve().parent
TOOL, TRACE = HERE.parents[1] / "tools" / "trace_svg.py", HERE / "trace.golden.json"
SVG, BLUE, ORANGE = "{http://www.w3.org/2000/svg}", "#3b7dd8", "#e08a2c"


def run(*arguments):
    return subprocess.run([sys.executable, "-B", TOOL, *map(str, arguments)], capture_output=True, text=True,
                          timeout=60, check=False)


def drawn(*arguments):
    done = run(TRACE, *arguments)
    assert done.returncode == 0, done
    picture = tree.fromstring(done.stdout)
    bars = [(each.get("fill"), float(each.get("y")), float(each.get("height")))
            for each in picture.iter(f"{SVG}rect") if float(each.get("y", 0)) > 40]
    return bars, [each.text for each in picture.iter(f"{SVG}text")], [each.text
                                                                      for each in picture.iter(f"{SVG}title")]


def refused(*arguments):
    done = run(*arguments)
    assert done.returncode == 1 and not done.stdout and "Traceback" not in done.stderr, done
    return done.stderr


def main():
    bars, texts, decisions = drawn()
    # alice on multiprocessors 0, 1 and 3; on 1 with bob, and each has half of the row.
    assert [fill for fill, _, _ in bars] == [BLUE, BLUE, BLUE, ORANGE], bars
    whole, half = bars[0][2], bars[1][2]
    assert half == bars[3][2] and abs(2 * half - whole) < 0.2 and bars[3][1] > bars[1][1], bars
    assert {"alice", 'bob "the" second', "SM 0", "SM 3"} <= set(texts), texts
    assert len(decisions) == 1 and "stopped for bob" in decisions[0], decisions

    bars, _, decisions = drawn(0.06, 0.1)   # behind alice's
    assert [fill for fill, _, _ in bars] == [ORANGE] and not decisions, bars

    assert "not there" in refused("not there")
    assert "between 2 and 1" in refused(TRACE, 2, 1)
    assert "numbers" in refused(TRACE, "begin", "end")
    assert "TRACE.json" in refused(TRACE, 1)
    with tempfile.TemporaryDirectory() as folder:
        other = pathlib.Path(folder) / "other.json"
        for text in ("", "{}", "[1]", '{"traceEvents": [{"ph": "X"}]}'):
            other.write_text(text)
            assert "is not what `smt trace -o` writes" in refused(other), text
        trace = json.loads(TRACE.read_text())
        other.write_text(
            json.dumps({"traceEvents": [each for each in trace["traceEvents"] if each["pid"] != 1]}))
        assert "SMT_JOURNAL=mapping" in refused(other)


if __name__ == "__main__":
    main()
