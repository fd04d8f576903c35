#!/usr/bin/env python3
"""tools/bench/models/choices.py keeps kernels apart that have one name, and leaves out what is refused."""

import json
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools/bench/models"))
import choices  # noqa: E402


def kernel(image, grid_class=10):
    return {"kernel": "scale", "symbol": "_Z5scalePf", "image": image, "block": [256, 1, 1],
            "grid_class": grid_class}


def rows(first, second, *blocks, **more):
    return [{"first": first, "second": second, "blocks": list(each), "rates": [0.6, 0.6], "profit": 0.1,
             "paper": 0.2, "told": 0.3, **more} for each in blocks]


class Choices(unittest.TestCase):
    def read(self, all_rows):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump(all_rows, file)
            file.flush()
            return choices.read(file.name)

    def test_kernels_of_one_name_are_kept_apart(self):
        pairs = self.read(rows(kernel("a"), kernel("b"), (1, 3), (2, 2)) +
                          rows(kernel("a"), kernel("c"), (1, 3), (2, 2)) +
                          rows(kernel("a"), kernel("b", 11), (1, 3), (3, 1)))
        self.assertEqual([len(found) for found in pairs.values()], [2, 2, 2])

    def test_refused_and_uncounted_combinations_are_left_out(self):
        refused = rows(kernel("a"), kernel("b"), (3, 1), refused={"pipe": "issue slots", "busy": 1.5})
        uncounted = rows(kernel("a"), kernel("b"), (4, 1))
        del uncounted[0]["told"]
        (found,) = self.read(rows(kernel("a"), kernel("b"), (1, 3), (2, 2)) + refused + uncounted).values()
        self.assertEqual([each[0] for each in found], [(1, 3), (2, 2)])

    def test_null_baselines_by_hand(self):
        # Rows of (CTAs, measured, {form: expected}); the model is right of one pair and wrong of the other.
        told = lambda value: {"R_m": value, "told": value}
        pairs = {("a", "b"): [((1, 3), .1, told(.1)), ((2, 2), .3, told(.3)), ((3, 1), .2, told(.2))],
                 ("a", "c"): [((1, 3), -.1, told(.4)), ((2, 2), .0, told(.1)), ((3, 1), .1, told(.0))]}
        found = choices.forms(pairs)
        self.assertAlmostEqual(sum(found["none"]["off"]), .8)      # each is off by what it was
        self.assertEqual([round(each, 6) for each in found["none"]["below"]], [.3, .1])
        self.assertEqual([round(each, 6) for each in found["halves"]["below"]], [0, .1])   # 2 and 2 of both
        self.assertAlmostEqual(found["halves"]["off"][0], 0)       # the mean of all is 0.1
        self.assertEqual([round(each, 6) for each in found["told"]["below"]], [0, .2])

    def test_halves_is_the_middle_of_what_was_measured(self):
        rows = [((ctas, 7 - ctas), 0, {}) for ctas in (6, 1, 3)]
        self.assertEqual(choices.halves(rows)[0], (3, 4))


if __name__ == "__main__":
    unittest.main()
