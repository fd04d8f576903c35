#!/usr/bin/env python3
"""Claims of what tools/bench/doors measured, as report.py takes them, and the commands of runs."""
import contextlib
import io
import json
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools/bench/doors"), str(ROOT / "tools/bench/harness")]
import claims  # noqa: E402
import measurement  # noqa: E402
from results_file import report  # noqa: E402

SPREAD = {"p10": -5.0, "p50": 12.0, "p90": 30.0, "p99": 41.0}
STOPS = [
    {"part": "facts", "name": "gemm_fp32"},
    {"part": "stops", "by": "stress", "name": "gemm_fp32", "stops": 900, "block_us": 90.0,
     "block_by": "one wave", "beyond_us": SPREAD, "stop_us": {"p50": 102.0}},
    {"part": "stops", "by": "stress", "name": "gemm_fp32", "stops": 9, "block_us": 4.0,   # of the same step
     "block_by": "one wave", "beyond_us": {**SPREAD, "p50": 0.0}, "stop_us": {"p50": 4.0}},
    {"part": "stops", "by": "urgent", "name": "gemm_fp32", "stops": 0, "steps": 3},
    {"part": "group", "group": "cuBLAS", "by": "stress", "kernels": ["gemm_fp32", "lt_bias_bf16"],
     "stops": 1800, "beyond_us": {**SPREAD, "p50": 14.0, "p99": 50.0}, "worst": "lt_bias_bf16",
     "p50_of": {"gemm_fp32": 12.0, "lt_bias_bf16": 15.5},
     "p99_of": {"gemm_fp32": 41.0, "lt_bias_bf16": 52.0}},
    {"part": "group", "group": "persistent", "by": "stress", "kernels": ["gemm_bf16"], "stops": 70,
     "beyond_us": SPREAD, "p50_of": {"gemm_bf16": 12.0}, "p99_of": {"gemm_bf16": 41.0}, "worst": "gemm_bf16"}]
SHARE = {"gpu_ms": 812.4, "within": .75, "one_wave": .2, "not_at_all": .05}
PROGRAM = {"part": "program", "trials": 5, "half_way": 10_000, "deterministic": True, "bad": False,
           "share": SHARE}
PROGRAMS = [
    {**PROGRAM, "model": "bert_training"}, {"part": "trial", "tenant": "x"},
    {**PROGRAM, "model": "jax_layers", "half_way": 300, "trials": 1, "bad": True, "share": None},
    {**PROGRAM, "model": "gpt2_decode", "deterministic": False, "share": {**SHARE, "within": .25}},
    {**PROGRAM, "model": "matmul", "half_way": 0, "share": None}]


def doors(stopped="a"):
    rows = [{"mode": mode, "model": name, "ms": ms, "hash": stopped if mode == "stops" else "a"}
            for name, of in (("one", {"native": 10, "idle": 11, "used": 12, "stops": 20}),
                             ("two", {"native": 10, "idle": 9, "used": 10, "stops": 20}))
            for mode, ms in of.items()]
    rows += [{"mode": mode, "model": "gpt2", "ms": 1, "hash": "not the same natively"}
             for mode in ("native", "idle", "stops")]
    return rows + [{"mode": "stops", "round": 0, "stopped_half_way": 400}, {"mode": "idle", "seconds": 3}]


class Claims(unittest.TestCase):
    RUN = {"command": "tools/bench/doors/stop_times.py", "commit": "0000000", "machine": "h100-alone",
           "raw": "not kept"}

    def setUp(self):
        self.data = json.loads(report.DATA.read_text())
        rows = {"stop_times": STOPS, "program_stops": PROGRAMS, "doors": doors()}
        self.found = claims.claims_of(rows, "a-run")
        self.by_id = {claim["id"]: claim for claim in self.found}

    def test_report_takes_them(self):
        data = claims.results_file.merged(self.data, claims.HOME, "a-run", self.RUN, self.found)
        self.assertEqual(report.mistakes(data), [])
        page = report.page(data)
        self.assertIn("stop-beyond-cublas-stress", page)
        self.assertIn(claims.HOME["title"], page)

    def test_stops(self):
        group = self.by_id["stop-beyond-cublas-stress"]
        self.assertEqual([group[key] for key in ("value", "low", "high", "n")], [14, 12, 15.5, 1800])
        self.assertEqual(group["baselines"],
                         [{"name": "99th percentile", "value": 50, "low": 41, "high": 52}])
        self.assertIn("beyond the whole launch", self.by_id["stop-beyond-persistent-stress"]["claim"])
        one = self.by_id["stop-gemm-fp32-stress"]
        self.assertEqual((one["value"], one["n"], one["baselines"][2]["value"]), (12, 900, 90))
        self.assertNotIn("stop-gemm-fp32-urgent", self.by_id)

    def test_programs(self):
        stops = self.by_id["program-stops"]
        self.assertEqual((stops["value"], stops["n"]), (10_000, 10_300))   # one of two is bad
        self.assertIn("native", stops["claim"])
        self.assertEqual(self.by_id["program-stops-jax-layers"]["value"], 0)
        self.assertTrue({"program-stops-gpt2-decode", "program-stops-matmul"}.isdisjoint(self.by_id))
        share = self.by_id["gpu-time-programs"]
        self.assertEqual([share[key] for key in ("value", "low", "high", "n")], [50, 25, 75, 2])
        rest = self.by_id["gpu-time-bert-training"]["baselines"]
        self.assertEqual([each["value"] for each in rest], [20, 5])

    def test_used_models(self):
        self.assertEqual(self.by_id["door-models-used"]["value"], 1.095)
        idle = self.by_id["door-models-idle"]
        self.assertEqual((idle["n"], idle["low"]), (2, .9))
        self.assertEqual(self.by_id["door-models-stops"]["value"], 400)
        wrong = claims.claims_of({"stop_times": [], "program_stops": [], "doors": doors("b")}, "a-run")
        self.assertEqual(next(each for each in wrong if each["id"] == "door-models-stops")["value"], 0)

    def test_a_claim_stays_in_its_section(self):
        at = lambda data, name: [section["title"] for section in data["sections"]
                                 for claim in section["claims"] if claim["id"] == name]
        data = claims.results_file.merged(self.data, claims.HOME, "a-run", self.RUN, self.found)
        for name in ("program-stops", "door-models-used"):
            self.assertEqual(at(data, name), at(self.data, name))
        again = claims.results_file.merged(data, claims.HOME, "a-run", self.RUN, self.found)
        self.assertEqual(again, data)

    def run_main(self, *arguments):
        out, errors = io.StringIO(), io.StringIO()
        with mock.patch.object(sys, "argv", ["claims.py", *arguments]), \
                contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
            return claims.main(), out.getvalue(), errors.getvalue()

    def test_from_rows_to_the_file(self):
        with tempfile.TemporaryDirectory() as folder:
            folder, data = pathlib.Path(folder), pathlib.Path(folder) / "results.json"
            data.write_text(report.DATA.read_text())
            (folder / "stop_times.jsonl").write_text("\n".join(map(json.dumps, STOPS)))
            (folder / "stop_times.command").write_text("tools/bench/doors/stop_times.py --out OUT\n")
            options = ("--run", "a-run", "--commit", "0", "--machine", "h100-alone", "--raw", "not kept")
            with mock.patch.object(report, "DATA", data):
                code, out, errors = self.run_main(str(folder), *options, "--write")
                self.assertEqual(code, 0, errors)
                self.assertEqual(len(out.splitlines()), 3)
                written = json.loads(data.read_text())
                self.assertEqual(written["runs"]["a-run"]["command"],
                                 "tools/bench/doors/stop_times.py --out OUT")
                of_run = [section["title"] for section in written["sections"]
                          for claim in section["claims"] if claim["run"] == "a-run"]
                self.assertEqual(set(of_run), {claims.HOME["title"]})
                code, _, errors = self.run_main(str(folder / "none"), *options)
                self.assertEqual((code, errors), (1, "no claims\n"))
                code, _, errors = self.run_main(str(folder), *options[:5], "none", *options[6:], "--write")
                self.assertEqual(code, 1)
                self.assertIn("run a-run: unknown machine", errors)
                self.assertEqual(json.loads(data.read_text()), written)

    def test_commands_name_no_places_of_a_machine(self):
        script = str(ROOT / "tools/bench/doors/stop_times.py")
        self.assertEqual(measurement.command_line([script, "--out", "/tmp/x y", "--build=/b", "--by", "a b"]),
                         "tools/bench/doors/stop_times.py --out OUT --build=BUILD --by 'a b'")
        self.assertEqual(measurement.command_line([script, "--profiles", "/tmp/p", "/tmp/x"], "/tmp/x"),
                         "tools/bench/doors/stop_times.py --profiles PROFILES OUT")


if __name__ == "__main__":
    unittest.main()
