"""Floating-point formats, exactly: values are fractions, rounding is on integers. The expected results of
the conformance cases come from here, so nothing is shared with the interpreter."""
import copy
from fractions import Fraction
from math import isqrt


class Format:
    def __init__(self, name, exponent_bits, fraction_bits, nan):
        self.name, self.exponent_bits, self.fraction_bits, self.nan = name, exponent_bits, fraction_bits, nan
        self.width = 1 + exponent_bits + fraction_bits
        self.bias = (1 << (exponent_bits - 1)) - 1
        self.infinity = ((1 << exponent_bits) - 1) << fraction_bits
        self.sign = 1 << (self.width - 1)
        self.one = self.bias << fraction_bits
        self.flushes = False

    def decode(self, bits):
        """A Fraction, or 'nan', 'inf', '-inf'; zeros are Fractions: ask negative() for their sign."""
        exponent = (bits & ~self.sign) >> self.fraction_bits
        fraction = bits & ((1 << self.fraction_bits) - 1)
        if exponent == (1 << self.exponent_bits) - 1:
            return 'nan' if fraction else ('-inf' if bits & self.sign else 'inf')
        if exponent == 0:
            value = Fraction(fraction) * power(1 - self.bias - self.fraction_bits)
        else:
            value = Fraction(fraction | 1 << self.fraction_bits) * power(exponent -
                                                                         self.bias - self.fraction_bits)
        return -value if bits & self.sign else value

    def negative(self, bits):
        return bool(bits & self.sign)

    def encode(self, value, mode='rn', zero_negative=False):
        if value == 'nan':
            return self.nan
        if value == 'inf':
            return self.infinity
        if value == '-inf':
            return self.sign | self.infinity
        if value == 0:
            return self.sign if zero_negative else 0
        negative = value < 0
        magnitude = abs(value)
        exponent = floor_log2(magnitude)
        if self.flushes and exponent < 1 - self.bias:
            return self.sign if negative else 0
        lowest = max(exponent, 1 - self.bias) - self.fraction_bits
        scaled = magnitude / power(lowest)
        count = scaled.numerator // scaled.denominator
        if rounds_up(scaled - count, count, negative, mode):
            count += 1
        largest = self.infinity - 1
        bits = (max(exponent, 1 - self.bias) + self.bias - 1 << self.fraction_bits) + count
        if bits > largest:
            to_largest = mode == 'rz' or (mode == 'rm' and not negative) or (mode == 'rp' and negative)
            bits = largest if to_largest else self.infinity
        return (self.sign if negative else 0) | bits

    def flushing(self):
        """The format under .ftz, which looks at a result before it is rounded."""
        other = copy.copy(self)
        other.flushes = True
        return other

    def flush(self, bits):
        return bits & self.sign if bits & self.infinity == 0 else bits

    def is_nan(self, bits):
        return bits & ~self.sign > self.infinity


def power(exponent):
    return Fraction(2) ** exponent


def floor_log2(value):
    guess = value.numerator.bit_length() - value.denominator.bit_length()
    while power(guess) > value:
        guess -= 1
    while power(guess + 1) <= value:
        guess += 1
    return guess


def rounds_up(rest, count, negative, mode):
    if rest == 0:
        return False
    if mode == 'rn':
        return rest > Fraction(1, 2) or (rest == Fraction(1, 2) and count & 1 == 1)
    if mode == 'rna':
        return rest >= Fraction(1, 2)
    if mode == 'rz':
        return False
    return negative if mode == 'rm' else not negative


def to_integral(value, mode):
    """A Fraction rounded to an integer."""
    negative = value < 0
    magnitude = abs(value)
    count = magnitude.numerator // magnitude.denominator
    if rounds_up(magnitude - count, count, negative, mode):
        count += 1
    return -count if negative else count


F16 = Format('f16', 5, 10, 0x7fff)
BF16 = Format('bf16', 8, 7, 0x7fff)
F32 = Format('f32', 8, 23, 0x7fffffff)
F64 = Format('f64', 11, 52, 'nan')
TF32 = Format('tf32', 8, 10, None)
FORMATS = {f.name: f for f in (F16, BF16, F32, F64)}


# ---- arithmetic on bits

def finite(*values):
    return not any(isinstance(value, str) for value in values)


def add(f, a, b, mode='rn'):
    x, y = f.decode(a), f.decode(b)
    if 'nan' in (x, y):
        return f.nan
    if not finite(x, y):
        if not finite(x) and not finite(y) and x != y:
            return f.nan
        return f.encode(x if not finite(x) else y)
    total = x + y
    if total == 0:
        both = f.negative(a) and f.negative(b)
        same = f.negative(a) == f.negative(b) and x == 0
        return f.encode(Fraction(0), mode, both if same else mode == 'rm')
    return f.encode(total, mode)


def negate(f, a):
    return a ^ f.sign


def subtract(f, a, b, mode='rn'):
    return add(f, a, b if f.is_nan(b) else negate(f, b), mode)


def multiply(f, a, b, mode='rn'):
    x, y = f.decode(a), f.decode(b)
    negative = f.negative(a) != f.negative(b)
    if 'nan' in (x, y):
        return f.nan
    if not finite(x, y):
        return f.nan if 0 in (x, y) else f.encode('-inf' if negative else 'inf')
    return f.encode(x * y, mode, negative)


def fused(f, a, b, c, mode='rn'):
    x, y, z = f.decode(a), f.decode(b), f.decode(c)
    if 'nan' in (x, y, z):
        return f.nan
    negative = f.negative(a) != f.negative(b)
    if not finite(x, y):
        if 0 in (x, y):
            return f.nan
        product = '-inf' if negative else 'inf'
        return f.nan if not finite(z) and z != product else f.encode(product)
    if not finite(z):
        return f.encode(z)
    total = x * y + z
    if total == 0:
        same = negative == f.negative(c) and x * y == 0
        return f.encode(Fraction(0), mode, negative if same else mode == 'rm')
    return f.encode(total, mode)


def divide(f, a, b, mode='rn'):
    x, y = f.decode(a), f.decode(b)
    negative = f.negative(a) != f.negative(b)
    if 'nan' in (x, y) or (not finite(x) and not finite(y)):
        return f.nan
    if not finite(x):
        return f.encode('-inf' if negative else 'inf')
    if not finite(y):
        return f.encode(Fraction(0), mode, negative)
    if y == 0:
        return f.nan if x == 0 else f.encode('-inf' if negative else 'inf')
    return f.encode(x / y, mode, negative)


def square_root(f, a, mode='rn'):
    x = f.decode(a)
    if x == 'nan' or x == '-inf' or (finite(x) and x < 0):
        return f.nan
    if x == 'inf' or x == 0:
        return a
    # Many more bits than any format has, and one that says whether something is left.
    shift = 2400
    scaled = x * power(shift)
    whole = scaled.numerator // scaled.denominator
    root = isqrt(whole)
    exact = root * root == whole and whole == scaled
    value = Fraction(root) / power(shift // 2)
    if not exact:
        value += power(-shift // 2 - 2)
    return f.encode(value, mode)


def saturate(f, bits):
    value = f.decode(bits)
    if value == 'nan' or value == '-inf' or (finite(value) and value <= 0):
        return 0
    return f.one if value == 'inf' or value > 1 else bits


def minimum(f, a, b, nan=False):
    return extreme(f, a, b, nan, lambda x, y: x < y)


def maximum(f, a, b, nan=False):
    return extreme(f, a, b, nan, lambda x, y: x > y)


def extreme(f, a, b, nan, better):
    if f.is_nan(a) or f.is_nan(b):
        if nan or (f.is_nan(a) and f.is_nan(b)):
            return f.nan
        return b if f.is_nan(a) else a

    def key(bits):
        return -1 - (bits & ~f.sign) if f.negative(bits) else bits
    return a if better(key(a), key(b)) else b
