"""Writes case files; see ../README.md for their form."""
import random


class CaseFile:
    def __init__(self, title):
        self.lines = [f'# {title}', '# Written by expected/write_cases.py.', '']
        self.count = 0

    def case(self, name, ins, outs, body, rows, **extra):
        """rows: (inputs, outputs) a thread, each a tuple of ints (bits) or words."""
        self.count += 1
        lines = [f'case {name}']
        for key in ('about', 'tolerance', 'shared', 'threads'):
            if key in extra:
                lines.append(f'{key} {extra[key]}')
        lines.append(f'in {ins}'.rstrip())
        lines.append(f'out {outs}'.rstrip())
        if 'module' in extra:
            lines += ['module'] + ['  ' + line for line in extra['module'].strip().split('\n')] + ['end']
        lines += ['body'] + ['  ' + line.strip() for line in body.strip().split('\n')] + ['end']
        in_types, out_types = ins.split(), outs.split()
        for given, expected in rows:
            left = ' '.join(text(value, kind) for value, kind in zip(given, in_types, strict=True))
            right = ' '.join(text(value, kind) for value, kind in zip(expected, out_types, strict=True))
            lines.append(f'row {left} = {right}'.replace('row  =', 'row ='))
        self.lines += lines + ['']

    def write(self, path):
        path.write_text('\n'.join(self.lines))


WIDTHS = {'pred': 1}


def width(kind):
    return WIDTHS.get(kind) or int(''.join(c for c in kind.split('x')[0] if c.isdigit())[-3:]
                                   if 'x2' not in kind else '32')


def text(value, kind):
    if isinstance(value, str):
        return value
    bits = width(kind)
    value &= (1 << bits) - 1
    plain = value < 10 and (kind not in ('f32', 'f64') or value == 0)   # of these, 1 would mean 1.0
    return str(value) if plain else f'0x{value:x}'


def signed(value, bits):
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def as_type(value, kind):
    bits = width(kind)
    return signed(value, bits) if kind[0] == 's' else value & ((1 << bits) - 1)


def interesting(bits):
    """Values where things break, then random ones; the same ones in every run."""
    top = 1 << (bits - 1)
    mask = (1 << bits) - 1
    chosen = [0, 1, 2, mask, mask - 1, top, top - 1, top + 1, 0x55555555555555555555 & mask, 7, 10]
    source = random.Random(bits)
    return chosen + [source.getrandbits(bits) >> source.choice([0, 0, bits // 2]) for _ in range(21)]


def pairs(bits, count=32, seed=1):
    values = interesting(bits)
    source = random.Random(seed)
    fixed = [(a, b) for a in values[:6] for b in values[:6]]
    source.shuffle(fixed)
    return (fixed[:count // 2] + [(source.choice(values), source.choice(values))
                                  for _ in range(count)])[:count]


def triples(bits, count=32, seed=2):
    values = interesting(bits)
    source = random.Random(seed)
    return [tuple(source.choice(values) for _ in range(3)) for _ in range(count)]
