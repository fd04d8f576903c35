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


if __name__ == "__main__":
    unittest.main()
