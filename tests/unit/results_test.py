#!/usr/bin/env python3
"""tests/results_test.py finds numbers that differ from results.json, and measured ones without a comment."""

import importlib.util
import pathlib
import unittest

PATH = pathlib.Path(__file__).resolve().parents[1] / "results_test.py"
SPEC = importlib.util.spec_from_file_location("results", PATH)
results = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(results)

VALUES = {"wait": 2.46, "wait.mps": 7554.1, "jobs": 20492}


class Results(unittest.TestCase):
    def found(self, text, all_of_it=False):
        return " ".join(results.mistakes(text, VALUES, all_of_it))

    def right(self, text, all_of_it=False):
        self.assertEqual(self.found(text, all_of_it), "")

    def test_a_number_may_be_rounded(self):
        self.right("It takes 2.5<!--=wait--> us, under MPS 7,554<!--=wait.mps--> us.")
        self.right("**2.46**<!--=wait--> us; 2.5 us<!--=wait-->")
        self.right("20,492<!--=jobs--> jobs")

    def test_a_number_that_differs_is_found(self):
        self.assertIn("2.4 is 2.46", self.found("It takes 2.4<!--=wait--> us."))
        self.assertIn("20,493 is 20492", self.found("20,493<!--=jobs--> jobs"))

    def test_a_comment_needs_a_value_and_a_number(self):
        self.assertIn("no value rest", self.found("2.5<!--=rest--> us"))
        self.assertIn("no number in front", self.found("some<!--=wait--> us"))

    def test_a_link_leads_to_a_claim(self):
        self.assertIn("no claim rest", self.found("[results](results.md#rest)"))
        self.right("[results](docs/results.md#wait)")

    def test_measured_numbers_without_a_comment_are_found(self):
        for text in ("Measured: it takes 3 us.", "On an H200 it is 0.82 of that.", "Under MPS 20 % less.",
                     "It takes 2.5<!--=wait--> us, and then 7 ms more.",
                     "[results](results.md#wait): 12 GB/s"):
            self.assertIn("no comment behind", self.found(text), text)

    def test_what_is_given_is_said_to_be(self):
        self.right("Measured: with tickets of 8 us<!--=given--> it takes 2.5<!--=wait--> us.")

    def test_other_numbers_are_left_alone(self):
        self.right("A turn is 10 ms.\n\nMeasured: 2.5<!--=wait--> us.\n")
        self.right("- A turn is 10 ms.\n- Measured: 2.5<!--=wait--> us.\n")
        self.right("An H200 with CUDA 13.0, `--last 5.0`, 132 multiprocessors, file a-1.5b.txt")
        self.right("Text\n\n    MPS took 3.5 ms\n", all_of_it=True)

    def test_in_the_readme_every_measure_needs_one(self):
        self.assertIn("no comment behind 10", self.found("A turn is 10 ms.", all_of_it=True))


if __name__ == "__main__":
    unittest.main()
