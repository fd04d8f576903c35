"""How long a block of a kernel takes, for stop_times.py: what fits on an SM, sizes of one full wave, and the
longest block in flight. No library is needed."""
import heapq
import random
import re

WHOLE = 0.95     # of a wave: no fuller one is looked for
ENOUGH = 0.75    # of a wave, with at least that in each place the GPU's state is that of a full one
TRIES = 8        # sizes for one kernel
MOMENTS = 200    # of a launch at which the longest block in flight is asked for


def product_of(values):
    total = 1
    for each in values:
        total *= each
    return total


def fits(threads, registers, shared):
    """CTAs on an SM of sm_90. Its four parts have registers of their own."""
    warps = -(-threads // 32)
    by_registers = 4 * (16384 // (-(-registers * 32 // 256) * 256)) // warps if registers else 32
    by_shared = (228 << 10) // (-(-shared // 128) * 128 + 1024)
    return max(1, min(32, 64 // warps, by_registers, by_shared))


def ctas_of(event):
    """CTAs on an SM, of a kernel in a profile: by the profiler's occupancy where its grid fills the GPU, else
    by what it needs."""
    arguments = event["args"]
    threads = product_of(arguments["block"])
    needs = fits(threads, arguments.get("registers per thread", 0), arguments.get("shared memory", 0))
    told = arguments.get("est. achieved occupancy %", 0)
    warps = -(-threads // 32)
    if not told or arguments.get("blocks per SM", 0) < 64 / warps:
        return needs
    return max(1, round(told / 100 * 64 / warps))


def tile_of(name):
    """(rows, columns) of a tile, where a kernel's name has them."""
    for found in re.finditer(r"(\d+)x(\d+)", name):
        sides = int(found[1]), int(found[2])
        if all(16 <= side <= 512 for side in sides):
            return sides
    return None


def wave_sizes(size, grid, places, name=""):
    """Sizes whose grids have about `places` blocks, the fullest first, none much above. A grid is in
    proportion to a size: of one number, or rows and columns (the third stays)."""
    if len(size) == 1:
        each = size[0] * places / grid
        return list(dict.fromkeys((max(1, int(each * part)),) for part in (1, .99, .97, .95, .9, .8)))
    rows, columns, inner = size
    tile = tile_of(name)
    if not tile or abs(rows * columns / grid / product_of(tile) - 1) > .1:
        tile = square_of(rows * columns / grid)
    found = []
    for count in range(places, int(ENOUGH * places), -1):
        shapes = {(down * one, across * two, inner) for one, two in (tile, tile[::-1])
                  for down, across in divided(count) if down * one <= rows and across * two <= columns}
        likeness = lambda shape: abs(shape[0] * columns - shape[1] * rows) / (shape[0] * columns)
        found += sorted(shapes, key=lambda shape: (likeness(shape), shape))[:2]
        if len(found) >= TRIES:
            break
    return found[:TRIES]


def square_of(area):
    side = 64
    while side * side * 2 < area:
        side *= 2
    return side, max(1, int(area // side))


def divided(count):
    return [(each, count // each) for each in range(1, count + 1) if count % each == 0]


def block_by_waves(kernel_us, waves, wave_us=None, fill=0):
    """(us, how) of a block of a kernel that took kernel_us in so many waves. A wave of its own says it where
    it is full enough, if blocks do not take longer in the mean while all places are taken all the time."""
    if waves <= 1:
        return kernel_us, "kernel"
    mean = kernel_us / waves
    if wave_us is None or fill < ENOUGH or mean > wave_us:
        return mean, "waves"
    return wave_us, "one wave"


def longest_in_flight(begins, ends, seed=1):
    """The times of the longest block in flight, at random moments of a launch: each block that has begun and
    not ended, from its begin to its end. Begins and ends in ns; times in us."""
    first, last, choices = min(begins), max(ends), random.Random(seed)
    moments = sorted(choices.uniform(first, last) for _ in range(MOMENTS))
    order, at, flying, found = sorted(range(len(begins)), key=lambda each: begins[each]), 0, [], []
    for moment in moments:
        while at < len(order) and begins[order[at]] <= moment:
            each = order[at]
            heapq.heappush(flying, (begins[each] - ends[each], ends[each]))
            at += 1
        while flying and flying[0][1] <= moment:   # it has ended; others that have are behind longer ones
            heapq.heappop(flying)
        if flying:
            found.append(-flying[0][0] / 1e3)
    return found
