#!/usr/bin/env python3
"""tools/bench/papers: metrics, what is drawn, and plans, and, with a build folder, runs on the
simulated device: papers_test.py [BUILD]. No figure of a run is asserted."""
import itertools
import json
import os
import pathlib
import re
import subprocess
import sys
import time
import unittest

from measuring import Measuring

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "tools/bench/papers/papers.py"
BUILD = None
FIRST_PAIRS = [("binomial_options", "spmv"), ("pointer_chase", "vector_add"), ("lavamd", "tea")]
FIRST_TRIPLE, FIRST_OF_FIFTEEN = ("cfd", "pathfinder", "matrix_multiply"), ("fdtd3d", "particle_filter")
FIRST_QUEUE = ("binomial_options", "molecular_dynamics", "pathfinder", "pointer_chase")
sys.path[:0] = [str(SCRIPT.parent), *(str(ROOT / "tools/bench" / name) for name in ("harness", "corun", "."))]
import claims  # noqa: E402
import metrics  # noqa: E402
import pair_study  # noqa: E402
import papers  # noqa: E402
import parts  # noqa: E402
import printed  # noqa: E402
import workloads  # noqa: E402


def row(*ends, begin=0.0, **more):
    """Launches behind each other."""
    begins = [begin, *ends[:-1]]
    return {"program": "p", "ok": True, "ends_s": list(ends),
            "times_ms": [1e3 * (end - start) for start, end in zip(begins, ends)], **more}


class Metrics(unittest.TestCase):
    # One program's launches take a second alone, the other's two. Together each takes twice as long.
    HALVES = [(row(2, 4, 6, 8), 1), (row(4, 8), 2)]

    def test_two_that_get_half_of_the_device(self):
        self.assertEqual(metrics.makespan_stp(self.HALVES), 8 / 8)
        each = metrics.progress(self.HALVES)   # from 4, when both are through their first launch, to 8
        self.assertEqual(each, [.5, .5])
        self.assertEqual((metrics.eyerman_stp(each), metrics.antt(each)), (1, 2))

    def test_two_that_do_not_slow_each_other_down(self):
        runs = [(row(1, 2, 3, 4), 1), (row(2, 4), 2)]
        each = metrics.progress(runs)
        self.assertEqual((metrics.makespan_stp(runs), metrics.eyerman_stp(each)), (2, 2))
        self.assertEqual(metrics.antt(each), 1)

    def test_the_makespan_counts_what_one_does_alone_behind_the_other_and_progress_does_not(self):
        runs = [(row(1, 2, 3, 4), 1), (row(2, 4, 6, 8), 2)]   # the second one is alone from 4 on
        self.assertEqual(metrics.makespan_stp(runs), (4 + 8) / 8)
        self.assertEqual(metrics.progress(runs), [1, 1])

    def test_unequal_progress(self):
        each = [.8, .2]
        self.assertAlmostEqual(metrics.eyerman_stp(each), 1)
        self.assertAlmostEqual(metrics.antt(each), (1.25 + 5) / 2)

    def test_the_makespan_begins_with_the_first_launch(self):
        self.assertEqual(metrics.makespan_stp([(row(6, 7, begin=5), 1), (row(9, begin=7), 2)]), 4 / 4)

    def test_no_progress_where_they_did_not_work_together_long_enough(self):
        self.assertIsNone(metrics.progress(self.HALVES, 5))
        self.assertEqual(metrics.progress(self.HALVES, 4), [.5, .5])
        self.assertIsNone(metrics.progress([(row(2, 4), 1), (row(), 2)]))

    def test_queues(self):
        queue = row(3, 5, arrivals_s=[1, 2])
        self.assertEqual(metrics.turnarounds(queue), [2, 3])
        self.assertEqual(metrics.progress_until_done([(queue, 1)]), [2 / 4])

    def test_small_launches_behind_a_large_one(self):
        large = row(10, 20, 32, 42)   # 10 alone; the third one is stopped
        # The first one counts nothing, one arrives while its program's last one runs, the last is behind all.
        small = row(5, 23, 25, 26, 60, begin=4, arrivals_s=[4, 21, 24, 24.5, 55])
        found = parts.behind(large, 10, [(small, .5)])
        self.assertAlmostEqual(found["large"], 1.2)
        self.assertAlmostEqual(found["small"][0], 3)   # 2 and 1, of 0.5
        self.assertEqual(found["launches"], 2)
        self.assertIsNone(parts.behind(large, 10, [(row(60, 61, 63, arrivals_s=[55, 60.5, 62]), .5)]))
        mean = parts.figures([(large, 10), (small, .5)], [1 / found["large"], 1 / found["small"][0]])
        self.assertAlmostEqual(mean["antt"], 2.1)
        self.assertAlmostEqual(mean["eyerman_stp"], 1 / 1.2 + 1 / 3)


class Drawn(unittest.TestCase):
    def test_the_papers_sets(self):
        self.assertEqual([len(pairs) for pairs in (workloads.LOW_ISU, workloads.HIGH_ISU, workloads.URGENT,
                                                   workloads.EQUAL)], [15, 6, 28, 28])
        self.assertTrue(set(workloads.ALL) == {path.stem for path in (ROOT / "examples").glob("*.cu")})

    def test_the_same_is_drawn_on_every_machine(self):
        self.assertEqual(workloads.drawn_pairs()[:3], FIRST_PAIRS)
        self.assertEqual(workloads.drawn_triples()[0], FIRST_TRIPLE)
        self.assertEqual(workloads.drawn_queues()[0], FIRST_QUEUE)
        self.assertEqual(workloads.in_drawn_order(workloads.LOW_ISU)[0], FIRST_OF_FIFTEEN)

    def test_nothing_tuned_is_drawn(self):
        drawn = [*workloads.drawn_pairs(), *itertools.chain(*(itertools.combinations(names, 2)
                                                              for names in workloads.drawn_queues()))]
        self.assertTrue(workloads.tuned_pairs().isdisjoint(map(frozenset, drawn)))
        self.assertIn(frozenset(("nbody", "vector_add")), workloads.tuned_pairs())
        for few in (workloads.drawn_pairs(), workloads.drawn_triples(), workloads.drawn_queues()):
            self.assertEqual(len(set(few)), len(few))


def planned(*arguments):
    return subprocess.run([sys.executable, "-B", SCRIPT, "--plan", *arguments], capture_output=True,
                          text=True)


class Plan(unittest.TestCase):
    def test_it_says_what_runs_and_runs_nothing(self):
        done = planned("--build", "/nonexistent", "--budget", "480")
        self.assertEqual(done.returncode, 0, done.stderr)
        for name in (*parts.PARTS, "mixes MIX", "compact fdtd3d+lavamd+black_scholes"):
            self.assertIn(f"\n{name} ", done.stdout)
        self.assertIn("budget 480 s", done.stdout)

    def test_each_mix_has_a_share_of_the_budget_behind_what_is_prepared(self):
        options = type("Options", (), {"device": None, "length": .25, "parts": "mixes,drawn", "select": "",
                                       "modes": None, "known": False, "sweep": "mixes"})
        every = papers.chosen(parts.Runner(papers.Planned(options)), options)
        self.assertEqual([part.label for part in every],
                         [*(f"mixes {mix}" for mix in workloads.MIXES), "drawn"])
        found, left, rounds = papers.costs(every, options), 400, []
        for place, (prepare, one, _) in enumerate(found.values()):
            share = papers.share_s(found, place, left)
            left -= share
            rounds.append((share - prepare) / one)
        self.assertAlmostEqual(left, 0)
        for each in rounds:
            self.assertAlmostEqual(each, rounds[0])
        self.assertEqual(papers.share_s(found, 2, 0), 0)
        self.assertEqual(papers.share_s({"a": (0, 10, 0)}, 0, -1), 0)   # late, and nothing to prepare

    def test_programs_that_are_not_built_are_named(self):
        for script, *arguments in ((SCRIPT,), (SCRIPT.parent / "schedules.py",),
                                   (SCRIPT.parent / "pair_study.py", "one", "two")):
            done = subprocess.run([sys.executable, "-B", script, *arguments, "--programs", "/none"],
                                  capture_output=True, text=True, timeout=30)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn("there is no folder /none", done.stderr)

    def test_an_unknown_part_is_refused(self):
        done = planned("--parts", "pears")
        self.assertEqual(done.returncode, 2)
        self.assertIn("no part pears", done.stderr)

    def test_modes_change_their_order_and_every_pair_has_those_of_its_figures(self):
        runner = parts.Runner(papers.Planned(type("Options", (), {"device": None, "length": .25})))
        part = parts.Behind(runner)
        units = list(part.units(0, part.modes))
        self.assertEqual([sum(mode == each for _, mode in units) for each in part.modes], [28, 28, 40])
        self.assertEqual(sorted(units), sorted(part.units(1, part.modes)))
        both = next(name for name, mode in units if mode == "hpf" and (name, "hpf=") in units)
        self.assertEqual([mode for name, mode in part.units(1, part.modes) if name == both],
                         ["mps", "hpf=", "hpf"])

    def test_small_programs_arrive_behind_a_large_one_that_is_at_work_all_the_time(self):
        runner = parts.Runner(papers.Planned(type("Options", (), {"device": None, "length": .25})))
        runner.stage.alone = {"cfd": 100.0}
        large, small = parts.Behind(runner).jobs(("cfd", "spmv"), "hpf", 0)
        self.assertEqual((large.iterations, large.mean_ms, small.iterations, small.mean_ms), (75, 0, 20, 25))
        self.assertEqual((large.urgent, small.urgent, small.size), (False, True, "small"))


class Simulated(Measuring):
    script = SCRIPT
    always = ("--device", "sim", "--sweep", "")

    @property
    def build(self):
        return BUILD

    def test_each_part_from_programs_to_claims(self):
        names = ["+".join(each) for each in (workloads.drawn_pairs()[3], workloads.drawn_queues()[3])]
        names += ["binomial_options+nbody", "spmv behind pathfinder",
                  "cfd then pathfinder and matrix_multiply", "CI", "fdtd3d+lavamd", "sad",
                  "molecular_dynamics behind md5_hash", "cfd:2 spmv:1"]
        modes = set(itertools.chain(*(part.modes for part in papers.PARTS.values())))
        out, code = self.run_all("--rounds", "1", "--budget", "3000", "--modes", ",".join(modes), "--parts",
                                 ",".join(papers.PARTS), "--select", f"^({'|'.join(map(re.escape, names))})$")
        self.assertEqual(code, 0, out)
        found = {(each["part"], each["mode"]) for each in self.rows() if "workload" in each}
        self.assertEqual(found, {(name, mode) for name, part in papers.PARTS.items()
                                 for mode in part.modes})
        self.assertNotIn("no figures", out)
        self.assertIn("0 wrong results", out)
        # How many there are depends on what was at work at the same time.
        self.assertGreater(len(claims.claims_of(self.rows(), "a-run")), 8)
        self.assertIn("papers.py", (self.out / "papers.command").read_text())

    def example(self, arrivals):
        variables = {**os.environ, "SMT_RUNTIME_DIR": str(self.out), "SMT_IDLE_SECONDS": "1"}
        return subprocess.run([BUILD / "bin/smt", "run", "--device", "sim", "--",
                               BUILD / "examples/shared/vector_add", "--size", "trivial", "--iterations", "4",
                               "--arrivals", arrivals], env=variables, capture_output=True, text=True)

    def test_launches_begin_when_they_have_arrived(self):
        begin = time.monotonic() + 1
        done = self.example(f"20,7,{begin:.6f}")
        self.assertEqual(done.returncode, 0, done.stderr)
        out = done.stdout
        arrivals, ends = printed.numbers(printed.ARRIVALS, out), printed.numbers(printed.ENDS, out)
        self.assertEqual((len(arrivals), len(ends)), (4, 4), out)
        self.assertTrue(all(arrival < end for arrival, end in zip(arrivals, ends)))
        self.assertGreaterEqual(arrivals[0], begin - 1e-5)
        gaps = [later - one for one, later in itertools.pairwise(arrivals)]
        again = printed.numbers(printed.ARRIVALS, self.example(f"20,7,{begin:.6f}").stdout)
        for gap, other in zip(gaps, [later - one for one, later in itertools.pairwise(again)]):
            self.assertAlmostEqual(gap, other, 4)   # of one seed
        self.assertEqual(len({round(gap, 5) for gap in gaps}), 3)

    def test_arrivals_that_make_no_sense_are_refused(self):
        for arrivals in ("5", "-1,2,3", "1,2,3x"):
            done = self.example(arrivals)
            self.assertEqual(done.returncode, 2)
            self.assertIn("--arrivals is MS,SEED,SECOND", done.stderr)

    def test_a_run_that_is_cut_off_keeps_its_rows_and_has_its_table(self):
        process = self.start("--parts", "pairs", "--budget", "3000", "--select", "options.nbody")
        self.await_lines(process, r"   binomial_options\+nbody under", 2)
        self.assertIn("wrong results", self.cut_off(process))
        self.assertGreaterEqual(sum("workload" in each for each in self.rows()), 2)

    def test_nothing_begins_that_the_budget_has_no_time_for(self):
        out, code = self.run_all("--parts", "pairs", "--budget", "0.5")
        self.assertEqual(code, 0, out)
        self.assertIn("no time for", out)
        self.assertEqual([each for each in self.rows() if "workload" in each], [])


class SimulatedStudy(Measuring):
    script = ROOT / "tools/bench/papers/pair_study.py"
    always = ("--device", "sim", "fdtd3d", "black_scholes")

    @property
    def build(self):
        return BUILD

    def test_it_says_where_kernels_saturate_and_what_was_ordered(self):
        out, code = self.run_all("--rounds", "1", "--modes", "fifo,compact", "--budget", "1000")
        self.assertEqual(code, 0, out)
        self.assertRegex(out, r"advance +saturates with \d+ CTAs on \d+ SMs")
        self.assertIn("orders under compact", out)
        # Whether anything was, depends on what was at work at the same time.
        self.assertEqual([row["policy"] for row in self.rows("orders")], ["compact"])
        self.assertEqual([row["mode"] for row in self.rows("run")],
                         ["compact logged", "fifo", "compact"])
        self.assertIn("0 wrong results", out)


if __name__ == "__main__":
    if len(sys.argv) > 1 and pathlib.Path(sys.argv[1]).is_dir():
        BUILD = pathlib.Path(sys.argv.pop(1)).resolve()
    else:
        del Simulated, SimulatedStudy
    unittest.main()
