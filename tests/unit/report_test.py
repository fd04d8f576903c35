#!/usr/bin/env python3
"""tools/bench/report.py refuses wrong data, and writes a page and pictures of right ones."""

import copy
import pathlib
import sys
import unittest
import xml.etree.ElementTree as xml

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools/bench"))
import report  # noqa: E402

CLAIM = {"id": "wait", "claim": "A wait", "run": "first", "value": 2.5, "statistic": "median", "n": 3,
         "of": "rounds", "low": 2, "high": 4, "spread": "min and max", "unit": "us", "better": "lower",
         "baselines": [{"name": "MPS, half", "value": 5.0, "low": 4.5, "high": 6}]}
FIGURE = {"file": "waits.svg", "section": "Waits", "title": "Waits & more", "axis": "us", "series": "smt",
          "baselines": ["MPS, half"], "claims": ["wait"]}
DATA = {"text": ["Text."], "summary": ["wait"], "machines": {"gpu": "a GPU"},
        "runs": {"first": {"command": "run it", "commit": "1234567", "machine": "gpu",
                           "raw": "docs/results/2026 at 1234567"}},
        "sections": [{"title": "Waits", "claims": [CLAIM]}], "figures": [FIGURE]}


def changed(**changes):
    data = copy.deepcopy(DATA)
    data["sections"][0]["claims"][0].update(changes)
    return data


class Report(unittest.TestCase):
    def refused(self, data, why):
        self.assertIn(why, " ".join(report.mistakes(data)))

    def test_what_is_right_is_accepted(self):
        self.assertEqual(report.mistakes(DATA), [])

    def test_what_is_wrong_is_refused(self):
        self.refused(changed(run="second"), "no run second")
        self.refused(changed(better="best"), "better is best")
        self.refused(changed(n=0), "n below 1")
        self.refused(changed(low=3), "outside of its spread")
        beyond = {"name": "MPS", "value": 7, "low": 4, "high": 6}
        self.refused(changed(baselines=[beyond]), "outside of its spread")
        self.refused(changed(mean=2.5), "unknown mean")
        self.refused(changed(id="other"), "summary: no claim wait")

    def test_a_claim_needs_all_its_parts_and_an_id_of_its_own(self):
        data = changed()
        del data["sections"][0]["claims"][0]["unit"]
        self.refused(data, "no unit")
        data["sections"][0]["claims"] = [CLAIM, CLAIM]
        self.refused(data, "wait: twice")

    def test_a_run_says_where_its_raw_rows_are(self):
        data = changed()
        data["runs"]["first"]["raw"] = ""
        self.refused(data, "no place of raw rows")

    def test_the_scripts_of_a_run_exist(self):
        data = changed()
        data["runs"]["first"]["command"] = "SMT_POLICY=fifo tools/bench/report.py --check (twice)"
        self.assertEqual(report.mistakes(data), [])
        data["runs"]["first"]["command"] = "tools/bench/gone/measure.py --rounds 2"
        self.refused(data, "run first: there is no tools/bench/gone/measure.py")

    def test_each_value_has_a_mark(self):
        self.assertEqual(report.values_by_mark(DATA), {
            "wait": 2.5, "wait.n": 3, "wait.low": 2, "wait.high": 4,
            "wait.mps-half": 5.0, "wait.mps-half.low": 4.5, "wait.mps-half.high": 6})

    def test_the_page_has_value_spread_baseline_run_and_raw_rows(self):
        page = report.page(DATA)
        for part in ('<a id="wait"></a>', "**2.5** us", "median of 3 rounds", "2 to 4 (min and max)",
                     "MPS, half 5 (4.5 to 6)", "(#first)", "git show 1234567:docs/results/2026",
                     "](results/waits.svg)", "| gpu | a GPU |"):
            self.assertIn(part, page)

    def test_a_picture_is_svg_with_a_dot_for_each_value(self):
        for logarithmic in (False, True):
            root = xml.fromstring(report.picture({**FIGURE, "log": logarithmic}, {"wait": CLAIM}))
            dots = [each for each in root.iter() if each.tag.endswith("circle")]
            self.assertEqual(len(dots), 4)   # two of them are the legend
            mps, smt = (float(each.get("cx")) for each in dots[2:])
            self.assertLess(report.LEFT, smt)
            self.assertLess(smt, mps)
            self.assertLess(mps, report.WIDTH)


if __name__ == "__main__":
    unittest.main()
