#!/usr/bin/env python3
"""The statistics, modes, names and plans of tools/bench/colocate."""

import collections
import io
import json
import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools/bench/colocate"))
import claims  # noqa: E402
import colocate  # noqa: E402
import figures  # noqa: E402
import names  # noqa: E402
import overlap  # noqa: E402
import phases  # noqa: E402
import summary  # noqa: E402
from modes import Mode  # noqa: E402


class Arrivals(unittest.TestCase):
    def test_one_seed_is_one_sequence(self):
        self.assertEqual(figures.arrivals(100, 5, 3), figures.arrivals(100, 5, 3))
        self.assertNotEqual(figures.arrivals(100, 5, 3), figures.arrivals(100, 5, 4))

    def test_they_are_in_order_and_within_the_time(self):
        moments = figures.arrivals(50, 3, 1)
        self.assertEqual(moments, sorted(moments))
        self.assertTrue(0 < moments[0] and moments[-1] < 3)

    def test_a_longer_time_begins_alike(self):
        short, long = figures.arrivals(50, 3, 1), figures.arrivals(50, 6, 1)
        self.assertEqual(long[:len(short)], short)

    def test_they_are_a_poisson_process(self):
        """Mean and variance of counts a second are the rate, and gaps vary as much as their mean."""
        rate, seconds = 40, 2000
        moments = figures.arrivals(rate, seconds, 7)
        self.assertAlmostEqual(len(moments) / seconds, rate, delta=0.5)
        counts = collections.Counter(int(moment) for moment in moments)
        variance = sum((counts[second] - rate) ** 2 for second in range(seconds)) / seconds
        self.assertAlmostEqual(variance, rate, delta=5)
        gaps = [b - a for a, b in zip(moments, moments[1:])]
        mean = sum(gaps) / len(gaps)
        deviation = (sum((gap - mean) ** 2 for gap in gaps) / len(gaps)) ** 0.5
        self.assertAlmostEqual(deviation / mean, 1, delta=0.03)


class Rates(unittest.TestCase):
    def test_a_piece_under_way_counts_by_its_part(self):
        self.assertEqual(figures.done_by(10.5, 10, [11, 12, 14]), 0.5)
        self.assertEqual(figures.done_by(12, 10, [11, 12, 14]), 2)
        self.assertEqual(figures.done_by(13.5, 10, [11, 12, 14]), 2.75)

    def test_nothing_before_the_start_nor_behind_the_end(self):
        self.assertEqual(figures.done_by(9, 10, [11, 12]), 0)
        self.assertEqual(figures.done_by(20, 10, [11, 12]), 2)
        self.assertEqual(figures.done_by(20, 10, []), 0)

    def test_a_window_that_cuts_pieces(self):
        ends = [0.5 * (i + 1) for i in range(20)]
        self.assertAlmostEqual(figures.rate_within(1.3, 7.9, 0, ends), 2)


class Latencies(unittest.TestCase):
    ANSWER = {"requests": [(0.0, 0.0, 0.010), (0.004, 0.010, 0.020)], "unserved": [0.5], "over": 0.9}

    def test_with_and_without_queueing(self):
        queued, served = figures.latencies(self.ANSWER)
        self.assertEqual([round(each, 6) for each in queued], [10, 16, 400])
        self.assertEqual([round(each, 6) for each in served], [10, 10])

    def test_quantiles(self):
        requests = [(0.0, 0.0, 0.001 * (i + 1)) for i in range(200)]
        found = figures.latency_figures({"requests": requests, "unserved": [], "over": 1})
        self.assertEqual((found["n"], found["unserved"]), (200, 0))
        self.assertAlmostEqual(found["queued_p50"], 101)
        self.assertAlmostEqual(found["served_p99"], 199)

    def test_none_served(self):
        found = figures.latency_figures({"requests": [], "unserved": [0.1], "over": 1})
        self.assertAlmostEqual(found["queued_p50"], 900)
        self.assertIsNone(found["served_p50"])


class Means(unittest.TestCase):
    def test_geometric_mean(self):
        self.assertAlmostEqual(figures.geometric_mean([1, 4, 16]), 4)
        self.assertIsNone(figures.geometric_mean([]))

    def test_of_rounds(self):
        self.assertEqual(figures.of_rounds([3, None, 1, 2]), {"value": 2, "low": 1, "high": 3, "n": 3})
        self.assertIsNone(figures.of_rounds([None]))

    def test_a_round_without_a_pair_does_not_count(self):
        found = summary.mean_over_pairs({"a": {1: 1.0, 2: 4.0}, "b": {1: 4.0}})
        self.assertAlmostEqual(found["value"], 2)
        self.assertEqual((found["n"], found["pairs"]), (1, 2))

    def test_no_round_with_all_pairs(self):
        found = summary.mean_over_pairs({"a": {1: 1.0}, "b": {2: 4.0}})
        self.assertAlmostEqual(found["value"], 2)

    def test_the_worst_pair(self):
        by_pair = {"a": {1: 1.0, 2: 3.0}, "b": {1: 4.0, 2: 1.0}}
        self.assertEqual(summary.worst_pair(by_pair, True), ("b", 2.5))
        self.assertEqual(summary.worst_pair(by_pair, False), ("a", 2.0))


class Modes(unittest.TestCase):
    def test_settings_are_for_roles(self):
        mode = Mode("smt:fair,first.SMT_WEIGHT=2,SMT_SMS=4,server.SMT_JOURNAL=times")
        self.assertEqual((mode.family, mode.policy), ("smt", "fair"))
        self.assertEqual(mode.variables("first"), {"SMT_WEIGHT": "2", "SMT_SMS": "4"})
        self.assertEqual(mode.variables("second"), {"SMT_SMS": "4"})
        self.assertEqual(mode.variables("service"), {"SMT_PRIORITY": "high", "SMT_SMS": "4"})
        self.assertEqual(mode.variables("server"), {"SMT_JOURNAL": "times"})

    def test_the_last_setting_counts(self):
        mode = Mode("smt:fifo,service.SMT_PRIORITY=normal")
        self.assertEqual(mode.variables("service"), {"SMT_PRIORITY": "normal"})

    def test_what_is_measured_first(self):
        mode = Mode("smt:slo,service.SMT_P99=p99*1.5")
        self.assertEqual(mode.variables("service", {"p50": 2.0, "p99": 8.0})["SMT_P99"], "12.000")
        with self.assertRaises(LookupError):
            mode.variables("service")

    def test_slo_has_a_target(self):
        self.assertEqual(Mode("smt:slo").variables("service"),
                         {"SMT_PRIORITY": "high", "SMT_SLOWDOWN": "1.1"})
        mode = Mode("smt:slo@1.25,SMT_SMS=4")
        self.assertEqual((mode.policy, mode.name), ("slo", "smt:slo@1.25,SMT_SMS=4"))
        self.assertEqual(mode.variables("service")["SMT_SLOWDOWN"], "1.25")
        self.assertEqual(mode.variables("training"), {"SMT_SMS": "4"})
        self.assertNotIn("SMT_SLOWDOWN", Mode("smt:slo,service.SMT_P99=8ms").variables("service"))

    def test_mps(self):
        self.assertEqual(Mode("mps").variables("training"), {})
        self.assertEqual(Mode("mps-half").variables("training"), {"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": "50"})
        self.assertEqual(Mode("mps-priority").variables("service"), {})

    def test_mistakes(self):
        for text in ("", "smt:fair@2", "smt:slo@2,service.SMT_P99=8ms", "mps-third",
                     "smt:fair,SMT_WEIGHT", "smt:fair,third.SMT_WEIGHT=2"):
            with self.subTest(text), self.assertRaises(ValueError):
                Mode(text)


class Names(unittest.TestCase):
    def test_of_programs(self):
        program = names.parse("bert-train@16")
        self.assertEqual((program.network, program.training, program.batch), ("bert", True, 16))
        self.assertEqual(names.parse("resnet50-train").batch, 64)
        self.assertTrue(names.parse("gpt2-graph").graph)
        for name in ("gpt2-train", "vgg", "bert@0", "bert-graph-train"):
            with self.subTest(name), self.assertRaises(ValueError):
                names.parse(name)

    def test_any_other_name_is_an_example(self):
        self.assertTrue(names.is_example("nbody"))
        self.assertEqual(colocate.pair("bert-train+nbody"), ("bert-train", "nbody"))
        for text in ("nbody+tpacf", "bert-train", "bert+bert-train"):
            with self.subTest(text), self.assertRaises(ValueError):
                colocate.pair(text)


def options(*arguments):
    return colocate.options_of(["--out", "/nonexistent", *arguments])


class Plans(unittest.TestCase):
    SERVICES = ("services", "--services", "bert", "llama", "--trainings", "bert-train", "--loads", "0.5",
                "--modes", "mps", "smt:priority", "--rounds", "2")

    def test_modes_alternate_and_turn_round(self):
        plan = phases.plan(options(*self.SERVICES))["services"]
        rounds = [[phase.text() for phase in plan if phase.round == number and
                   phase.experiment == "services"] for number in (0, 1)]
        self.assertEqual(rounds[0], rounds[1][::-1])
        beside = [phase.label for phase in plan if phase.round == 0 and len(phase.parts) == 2]
        self.assertEqual(beside, ["mps", "smt:priority"] * 2)

    def test_alone_comes_before_what_is_compared_with_it(self):
        plan = phases.plan(options(*self.SERVICES))["services"]
        self.assertEqual([phase.text() for phase in plan[:2]], ["calibrate bert alone",
                                                                "calibrate llama alone"])
        texts = [phase.text() for phase in plan]
        self.assertLess(texts.index("services bert load 0.5 alone"),
                        texts.index("services bert + bert-train load 0.5 mps"))

    def test_the_same_requests_in_all_modes(self):
        plan = [phase for phase in phases.plan(options(*self.SERVICES))["services"]
                if phase.load and phase.parts[0].program == "bert"]
        seeds = {number: {phase.seed(1) for phase in plan if phase.round == number} for number in (0, 1)}
        self.assertEqual([len(each) for each in seeds.values()], [1, 1])
        self.assertNotEqual(seeds[0], seeds[1])

    def test_few_requests_make_a_phase_longer(self):
        one = options("services", "--seconds", "6", "--requests", "30", "--longest", "20")
        phase = phases.Phase("services", Mode("mps"), [phases.SERVICE("gpt2")], 0, load=0.1)
        self.assertEqual(phase.seconds(one, 1000), 6)
        self.assertEqual(phase.seconds(one, 30), 10)
        self.assertEqual(phase.seconds(one, 1), 20)

    def test_the_time_of_a_mode_set(self):
        """Six pairs in three modes at six seconds a phase, both loads, fit into 500 s."""
        one = options("services", "--services", "resnet50", "bert", "gpt2-graph", "--modes", "mps-priority",
                      "time-slicing", "smt:priority")
        total = sum(phase.cost(one) for phase in phases.plan(one)["services"])
        self.assertLess(total, 430)


def service_row(mode, turn, p99, rate=None, service="bert", load=0.5):
    row = {"experiment": "services", "mode": mode, "turn": turn, "programs": {"service": service},
           "load": load, "n": 100, "queued_p50": 1, "queued_p99": p99, "served_p50": 1, "served_p99": p99,
           "served_part": 1}
    if rate is not None:
        row["programs"]["first"], row["training_rate"] = "bert-train", rate
    return row


class Summary(unittest.TestCase):
    ROWS = [{"experiment": "services", "mode": "alone", "turn": turn, "programs": {"first": "bert-train"},
             "load": None, "rates": [10.0]} for turn in (0, 1)] + [
        service_row("alone", 0, 2), service_row("alone", 1, 4),
        service_row("mps", 0, 4, 5), service_row("mps", 1, 12, 6)]

    def test_services_are_compared_with_their_own_round(self):
        found = summary.service_figures(self.ROWS)
        self.assertEqual(found["queued_p99", 0.5, "mps"], {"bert + bert-train": {0: 2, 1: 3}})
        self.assertEqual(found["training", 0.5, "mps"], {"bert + bert-train": {0: 0.5, 1: 0.6}})
        self.assertEqual(found["sum", 0.5, "mps"], {"bert + bert-train": {0: 1.0, 1: 1.1}})

    def test_a_round_without_alone_takes_the_others(self):
        rows = [row for row in self.ROWS if row["mode"] != "alone" or row["turn"] == 0]
        self.assertEqual(summary.service_figures(rows)["queued_p99", 0.5, "mps"],
                         {"bert + bert-train": {0: 2, 1: 6}})

    def test_trainings_and_closed_loops(self):
        row = {"experiment": "trainings", "turn": 0}
        rows = [{**row, "mode": "alone", "programs": {"first": "bert-train"}, "rates": [4.0]},
                {**row, "mode": "alone", "programs": {"first": "resnet50-train"}, "rates": [2.0]},
                {**row, "mode": "mps", "programs": {"first": "bert-train", "second": "resnet50-train"},
                 "rates": [2.0, 1.5]}]
        found = summary.training_figures(rows)
        self.assertEqual(found["mps"], {"bert-train + resnet50-train": {0: [0.5, 0.75]}})
        self.assertEqual(summary.sums_of(found)["mps"], {"bert-train + resnet50-train": {0: 1.25}})
        rows = [{"experiment": "closed", "turn": 0, "mode": mode, "programs": {"service": "bert"},
                 "rates": [rate]} for mode, rate in (("alone", 100.0), ("smt-alone", 97.0))]
        self.assertEqual(summary.closed_figures(rows), {"bert": {0: 0.97}})

    def test_tables_of_anything(self):
        for rows, shown in ([], False), (self.ROWS, True), (self.ROWS[:2], False), (self.ROWS[4:], False):
            out = io.StringIO()
            summary.show(rows, out)
            self.assertEqual("bert + bert-train" in out.getvalue(), shown, rows)


class Claims(unittest.TestCase):
    RUN = {"command": "tools/bench/colocate/colocate.py services", "commit": "0000000",
           "machine": "h100-alone", "raw": "not kept"}

    def setUp(self):
        self.data = json.loads(claims.report.DATA.read_text())
        rows = Summary.ROWS + [{**row, "mode": "smt:priority", "queued_p99": 4} for row in Summary.ROWS[4:]]
        rows += [{"experiment": "closed", "turn": turn, "mode": mode, "programs": {"service": "bert"},
                  "rates": [rate]} for turn in (0, 1)
                 for mode, rate in (("alone", 100.0), ("smt-alone", 97.0))]
        base = {"experiment": "trainings", "turn": 0, "load": None}
        rows.append({**base, "mode": "alone", "programs": {"first": "bert-train"}, "rates": [4.0]})
        rows += [{**base, "mode": mode, "programs": {"first": "bert-train", "second": "bert-train"},
                  "rates": rates} for mode, rates in (("mps", [2.0, 2.0]), ("smt:priority", [2.5, 2.5]),
                                                      ("smt:fair,first.SMT_WEIGHT=2", [2.4, 1.2]))]
        self.found = claims.claims_of(rows, "a-run", "smt:priority")

    def test_report_takes_them(self):
        data = claims.merged(self.data, "a-run", self.RUN, self.found)
        self.assertEqual(claims.report.mistakes(data), [])
        self.assertIn("colocate-queued-p99-load-0-5", claims.report.page(data))

    def test_their_values(self):
        by_id = {claim["id"]: claim for claim in self.found}
        one = by_id["colocate-queued-p99-load-0-5"]
        self.assertEqual((one["value"], one["n"], one["better"]), (1.5, 1, "lower"))
        self.assertEqual(one["baselines"], [{"name": "MPS", "value": 2.5, "low": 2.5, "high": 2.5}])
        self.assertEqual(by_id["colocate-trainings-sum"]["value"], 1.25)
        self.assertEqual(by_id["colocate-closed"]["value"], 0.97)
        (weight,) = (claim for name, claim in by_id.items() if "smt-weight-2" in name)
        self.assertEqual((weight["value"], weight["baselines"]), (2.0, [{"name": "wanted", "value": 2.0}]))

    def test_the_file_stays_as_it_is_beside_them(self):
        self.assertEqual(json.loads(claims.results_file.formatted(self.data)), self.data)
        once = claims.merged(self.data, "a-run", self.RUN, self.found)
        text = claims.results_file.formatted(once)
        self.assertEqual(claims.results_file.formatted(json.loads(text)), text)
        again = claims.merged(once, "a-run", self.RUN, [{**self.found[0], "value": 1.0}])
        self.assertEqual(len(claims.report.claims_of(again)), len(claims.report.claims_of(once)))
        before = {claim["id"] for claim in claims.report.claims_of(self.data)}
        fresh = [claim for claim in self.found if claim["id"] not in before]
        self.assertEqual(len(claims.report.claims_of(once)), len(before) + len(fresh))


class Overlap(unittest.TestCase):
    def test_what_is_in_both(self):
        self.assertEqual(overlap.both([[0, 10], [20, 30]], [[5, 25]]), [[5, 10], [20, 25]])
        self.assertEqual(overlap.both([[0, 10]], [[10, 20]]), [])
        self.assertEqual(overlap.both([], [[1, 2]]), [])

    def test_the_window_is_where_both_programs_are(self):
        self.assertEqual(overlap.figures([[0, 10], [20, 30]], [[5, 25], [40, 60]]),
                         {"window": 25, "first": 15, "second": 20, "both": 10})
        self.assertEqual(overlap.figures([[0, 10]], [[20, 30]])["window"], 0)
        self.assertEqual(overlap.figures([], [[20, 30]])["both"], 0)


if __name__ == "__main__":
    unittest.main()
