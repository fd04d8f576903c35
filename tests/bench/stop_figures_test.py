#!/usr/bin/env python3
"""How long a block takes, and what stops take beyond it: blocks.py and stop_figures.py of
tools/bench/doors."""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools/bench/doors"))
import blocks  # noqa: E402
import stop_figures  # noqa: E402


class Waves(unittest.TestCase):
    def test_ctas_on_a_multiprocessor(self):
        for (threads, registers, shared), wanted in (((64, 16, 0), 32), ((256, 32, 0), 8), ((256, 255, 0), 1),
                                                     ((128, 128, 0), 4), ((384, 168, 0), 1),
                                                     ((96, 40, 0), 16),   # not 17: of four parts
                                                     ((128, 32, 49152), 4), ((32, 16, 0), 32)):
            self.assertEqual(blocks.fits(threads, registers, shared), wanted, (threads, registers, shared))

    def test_the_profiler_says_it_where_the_grid_fills_the_gpu(self):
        event = {"args": {"block": [256, 1, 1], "registers per thread": 32, "blocks per SM": 31.0,
                          "est. achieved occupancy %": 25}}
        self.assertEqual(blocks.ctas_of(event), 2)   # by something that is not known here
        event["args"]["blocks per SM"] = 0.97        # then it is of the grid, not of the kernel
        self.assertEqual(blocks.ctas_of(event), 8)
        del event["args"]["est. achieved occupancy %"]
        self.assertEqual(blocks.ctas_of(event), 8)

    def test_sizes_of_a_full_wave(self):
        sizes = blocks.wave_sizes((65536,), 65536, 2112)
        self.assertEqual(sizes[0], (2112,))
        self.assertEqual(sizes, sorted(sizes, reverse=True))
        sizes = blocks.wave_sizes((8192, 8192, 2048), 64 * 64, 264, "gemm_128x128_tn")
        for rows, columns, inner in sizes:
            self.assertEqual(inner, 2048)
            tiles = rows // 128 * (columns // 128)
            self.assertTrue(rows % 128 == columns % 128 == 0 and .75 * 264 < tiles <= 264, (rows, columns))
        self.assertEqual(sizes[0][0] * sizes[0][1], 264 * 128 * 128)
        # a name without a tile, and one with a wrong tile
        for name in ("kernel", "kernel_256x256", "sm80_nn_n_tilesize256x128x8_stage3"):
            rows, columns, _ = blocks.wave_sizes((8192, 8192, 8192), 32 * 64, 132, name)[0]
            self.assertEqual(rows * columns, 132 * 256 * 128, name)

    def test_a_block_by_waves(self):
        self.assertEqual(blocks.block_by_waves(1000, .9), (1000, "kernel"))
        self.assertEqual(blocks.block_by_waves(1000, 10), (100, "waves"))
        self.assertEqual(blocks.block_by_waves(1000, 10, 130, .98), (130, "one wave"))
        # one CTA a multiprocessor where two fit, and blocks that take longer where all places are taken
        self.assertEqual(blocks.block_by_waves(1000, 10, 130, .5), (100, "waves"))
        self.assertEqual(blocks.block_by_waves(1000, 10, 60, 1), (100, "waves"))

    def test_the_longest_block_in_flight(self):
        self.assertEqual(set(blocks.longest_in_flight([0, 0, 0], [1000, 3000, 9000])), {9})
        # two places: a long block and short ones behind one another, then a short one alone
        found = blocks.longest_in_flight([0, 0, 1000, 2000, 3000], [3000, 1000, 2000, 3000, 4000])
        self.assertEqual(set(found), {1, 3})
        self.assertAlmostEqual(found.count(3) / len(found), .75, delta=.1)


class Beyond(unittest.TestCase):
    STOP = {"value": 50_000}

    def test_of_a_block_and_of_tickets(self):
        ticket = {"value": 50_000, "start_ns": 7000, "end_ns": 47_000, "ticket_blocks": 4}
        self.assertEqual(stop_figures.beyond_of([self.STOP, ticket], 30), [20, 40])
        self.assertEqual(stop_figures.beyond_of([self.STOP, ticket], None), [40])

    def test_groups(self):
        for (name, kernel, waves), group in ((("gemm_fp32", "cutlass", 15), "cuBLAS"),
                                             (("gemm_bf16", "nvjet", 1.0), "persistent"),
                                             (("lt_bias_bf16", "x", None), "cuBLAS"),
                                             (("flash_attention", "cudnn_generated", 3), "cuDNN"),
                                             (("flash_attention", "pytorch_flash", 3), "other"),
                                             (("conv_nhwc_fp32", "sm80", 12), "cuDNN"),
                                             (("triton_matmul", "matmul_kernel", 15), "Triton"),
                                             (("own_long", "spend_0", .5), "own")):
            self.assertEqual(stop_figures.group_of(name, kernel, waves), group, name)

    def test_each_kernel_of_a_group_counts_the_same(self):
        row = lambda name, beyond: {"name": name, "by": "stress", "group": "cuBLAS", "block_by": "one wave",
                                    "beyond": beyond, "beyond_us": stop_figures.spread(beyond)}
        rows = [row("often", [1.0] * 900), row("seldom", [5.0] * 9), {"name": "never", "stops": 0},
                {**row("apart", [9.0]), "group": "persistent"}]
        groups = {group["group"]: group for group in stop_figures.groups_of(rows)}
        self.assertEqual(set(groups), {"cuBLAS", "persistent"})
        found = groups["cuBLAS"]
        self.assertEqual((found["stops"], found["kernels"]), (909, ["often", "seldom"]))
        self.assertEqual(found["worst"], "seldom")
        self.assertEqual((found["beyond_us"]["p50"], found["beyond_us"]["p90"]), (1.0, 5.0))
        self.assertEqual(found["p99_of"], {"often": 1.0, "seldom": 5.0})


if __name__ == "__main__":
    unittest.main()
