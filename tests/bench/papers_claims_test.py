#!/usr/bin/env python3
"""tools/bench/papers: claims of rows that are made up here, and what these rows are made of."""
import json
import pathlib
import tempfile
import unittest

from papers_test import row

import claims
import experiments
import pair_study
import papers
import parts
import report
import results_file


def line(part, workload, mode, stp, antt=2.0, **figures):
    return {"part": part, "workload": workload, "mode": mode, "round": 0, "programs": [],
            "figures": {"makespan_stp": stp, "eyerman_stp": stp, "antt": antt, **figures}}


def slower(small):
    return {"slower": {"small": [small], "large": 1.1, "launches": 9}}


def beside(mode, small, *waits):
    """A large program of two launches of 10 s, and small launches that arrive at these moments and take so
    long; one before them does not count."""
    arrivals = [-1, *(arrival for arrival, _ in waits)]
    ends = [-.5, *(arrival + took for arrival, took in waits)]
    return {**line("behind", "spmv behind cfd", mode, 1, 1.5, **slower(small)),
            "programs": [row(10, 20), row(*ends, begin=-1, arrivals_s=arrivals)]}


class Claims(unittest.TestCase):
    LINES = [{"part": "alone", "program": "nbody"},
             line("pairs", "fdtd3d+tpacf", "greedy", 1.0), line("pairs", "fdtd3d+tpacf", "greedy", 3.0),
             line("pairs", "binomial_options+nbody", "greedy", 1.1),
             line("pairs", "nbody+fdtd3d", "greedy", 8.0),
             line("pairs", "fdtd3d+tpacf", "mps", 1.5), {**line("pairs", "x+y", "mps", 1), "figures": {}},
             beside("hpf", 1.2, (1, .5), (9, .5), (12, .25)),
             line("behind", "spmv behind cfd", "hpf=", 1, 1.0, **slower(1.5)),
             {**beside("mps", 6.0, (1, 7), (9, 1), (12, 8), (21, 4)),
              "figures": line("", "", "", 1, 4.5, **slower(6.0))["figures"]},
             line("mixes", "CI", "slice", 1.2), line("mixes", "CI", "mps", 1.0),
             {**line("compact", "fdtd3d+lavamd", "compact", 1.2), "multiprocessors": {"any": 90, "a-x": 30}},
             *({**line("slices", "tea", mode, 1), "figures": {"launch_ms": ms}}
               for mode, ms in (("whole", 10), ("quotas", 9), ("1", 30)))]

    def setUp(self):
        self.found = {claim["id"]: claim for claim in claims.claims_of(self.LINES, "a-run")}

    def test_means_over_workloads_of_medians_of_runs(self):
        pairs = self.found["papers-fifteen-pairs-makespan"]
        self.assertEqual((pairs["value"], pairs["low"], pairs["high"], pairs["n"]), (4, 2, 8, 2))
        self.assertEqual(pairs["baselines"][0]["value"], 1.5)
        self.assertEqual(pairs["baselines"][0]["of"], "1 of these workloads")
        self.assertEqual(self.found["papers-pairs-of-high-utilisation-makespan"]["value"], 1.1)

    def test_greedy_to_mps_and_where_mps_is_better(self):
        better = self.found["papers-fifteen-pairs-to-mps"]   # 2 to 1.5
        self.assertEqual((better["value"], better["n"]), (1.333, 1))
        self.assertNotIn("baselines", better)
        of = [line("pairs", name, mode, stp) for name, mode, stp in (
            ("a+b", "greedy", 1.0), ("a+b", "mps", 4.0), ("b+c", "greedy", 4.0), ("b+c", "mps", 1.0),
            ("c+d", "greedy", 1.0), ("c+d", "mps", 1.0))]
        (claim,) = (each for each in claims.claims_of(of, "a-run") if each["id"].endswith("to-mps"))
        self.assertEqual((claim["value"], claim["low"], claim["high"]), (1, .25, 4))
        self.assertEqual(claim["baselines"], [{"name": "a + b", "value": .25}])

    def test_small_ones_to_mps(self):
        self.assertEqual(self.found["papers-small-ones-first-turnaround"]["value"], 5)
        self.assertEqual(self.found["papers-small-ones-as-equals-antt-ratio"]["value"], 4.5)
        self.assertEqual(self.found["papers-compact-fdtd3d-lavamd-sms"]["value"], 90)

    def test_what_hpf_gains_by_the_delay(self):
        # In the first quarter 7 and 8 s under MPS, 0.5 and 0.25 under hpf; the one at 21 meets no large one.
        self.assertEqual(self.found["papers-small-ones-delay-1"]["value"], 20)
        self.assertEqual(self.found["papers-small-ones-delay-4"]["value"], 2)
        self.assertNotIn("papers-small-ones-delay-2", self.found)
        self.assertEqual(self.found["papers-small-ones-mps"]["value"], 6)

    def test_report_takes_them(self):
        run = {"command": "tools/bench/papers/papers.py", "commit": "0000000", "machine": "h100-alone",
               "raw": "not kept"}
        data = results_file.merged(json.loads(report.DATA.read_text()), claims.HOME, "a-run", run,
                                   list(self.found.values()))
        self.assertEqual(report.mistakes(data), [])


class MoreSms(unittest.TestCase):
    def test_a_launch_with_more_is_compared_with_the_same_with_just_enough(self):
        each = lambda pair, mode, *ms: [{"part": "more-sms", "workload": pair, "mode": mode, "round": turn,
                                         "late_s": 0, "programs": [], "figures": {"turnaround_ms": value}}
                                        for turn, value in enumerate(ms)]
        late = {**each("a", "hpf+6", .01)[0], "late_s": .3}
        lines = [*each("a", "hpf+0", .2, .4, .6), *each("a", "hpf+6", .2), *each("b", "hpf+0", .3), late,
                 *each("b", "hpf+6", .1), *each("c", "hpf+6", .1), {**late, "late_s": 0, "figures": {}}]
        (found,) = claims.claims_of(lines, "a-run")
        self.assertEqual((found["id"], found["value"], found["low"], found["high"], found["n"]),
                         ("papers-more-sms-6", 2.5, 2, 3, 2))

    def test_launches_behind_the_large_ones_last_do_not_count(self):
        part = experiments.MoreSms(parts.Runner(papers.Planned(type("Options", (), {"device": None,
                                                                                   "length": .25}))))
        small = row(1.2, 2.3, 3.4, 9, begin=1, arrivals_s=[1, 2, 3, 8])
        found = part.judge([row(4, 8), small], ("cfd", "spmv"))
        self.assertAlmostEqual(found["turnaround_ms"], 350)
        self.assertEqual(part.judge([row(2.5), small], ("cfd", "spmv")), {})


class Study(unittest.TestCase):
    def test_orders_that_differ_in_times_alone_are_one(self):
        entries = [{"kind": "decision", "tenant": "a", "text": f"waits {ms} ms"} for ms in ("1.25", "3.5")]
        entries += [{"kind": "decision", "tenant": "b", "text": "264 CTAs on 132 of 132 SMs"},
                    {"kind": "note", "text": "waits 2.5 ms"}]
        self.assertEqual(pair_study.ordered("\n".join(map(json.dumps, entries))),
                         {("a", "waits _ ms"): 2, ("b", "264 CTAs on 132 of 132 SMs"): 1})

    def test_claims_of_a_pair(self):
        each = lambda mode, stp, tea, spmv: {"part": "run", "mode": mode, "round": 0, "late_s": 0, "stp": stp,
                                             "progress": {"spmv": spmv, "tea": tea}, "programs": []}
        rows = [{"part": "alone", "program": "tea"}, each("compact logged", 5, .5, .5),
                each("compact", .8, .5, .25), each("compact", .9, None, None), each("fifo", .7, .5, .5),
                {**each("compact", 9, .5, .5), "late_s": .3}]
        with tempfile.TemporaryDirectory() as folder:
            out = pathlib.Path(folder)
            (out / "pair_study.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
            (out / "pair_study.command").write_text("tools/bench/papers/pair_study.py spmv tea\n")
            lines, command = claims.read([folder])
        self.assertEqual(command, "tools/bench/papers/pair_study.py spmv tea")
        found = {claim["id"]: claim for claim in claims.claims_of(lines, "a-run")}
        pair = found["papers-compact-spmv-tea-makespan"]
        self.assertEqual((pair["value"], pair["n"]), (.8, 1))   # of the one that has all figures
        self.assertEqual([(other["name"], other["value"]) for other in pair["baselines"]], [("fifo", .7)])
        self.assertEqual(found["papers-compact-spmv-tea-antt"]["value"], 3)


class Slices(unittest.TestCase):
    def test_claims_are_of_each_program_to_itself_as_it_is(self):
        each = lambda name, mode, *ms: [{"part": "slices", "workload": name, "mode": mode, "round": turn,
                                         "programs": [], "figures": {"launch_ms": value}}
                                        for turn, value in enumerate(ms)]
        lines = [*each("tea", "whole", 9, 10, 11), *each("tea", "8", 12, 12, 90), *each("sad", "whole", 4),
                 *each("sad", "8", 6), *each("sad", "quotas", 5), *each("spmv", "8", 6)]
        found = {claim["id"]: claim for claim in claims.claims_of(lines, "a-run")}
        eight = found["papers-slices-8"]   # 20 % and 50 %; nothing of spmv, which was not run as it is
        self.assertEqual((eight["value"], eight["low"], eight["high"], eight["n"]), (35, 20, 50, 2))
        self.assertEqual(found["papers-slices-quotas"]["value"], 25)
        self.assertEqual(set(found), {"papers-slices-8", "papers-slices-quotas"})

    def test_a_launch_takes_from_one_end_to_the_next(self):
        part = experiments.Slices(parts.Runner(papers.Planned(type("Options", (), {"device": None,
                                                                                  "length": .25}))))
        self.assertAlmostEqual(part.judge([row(9, 11, 12, 14)], ("tea",))["launch_ms"], 2000)

    def test_smaller_slices_are_run_less_often(self):
        runner = parts.Runner(papers.Planned(type("Options", (), {"device": None, "length": .25})))
        runner.stage.alone = {"tea": 100.0}
        part = experiments.Slices(runner)
        self.assertEqual([part.iterations("tea", mode) for mode in ("whole", "512")], [25, 3])
        part.took = {("tea", "whole"): .01, ("tea", "64"): .011}
        self.assertEqual(part.iterations("tea", "64"), 23)
        self.assertEqual(part.iterations("tea", "8"), 14)   # of 10 + 8 ms
        self.assertEqual(part.iterations("tea", "1"), 3)


if __name__ == "__main__":
    unittest.main()
