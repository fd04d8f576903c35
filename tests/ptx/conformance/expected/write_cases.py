"""write_cases.py [--check] FOLDER: computes the expected results and writes the case files, or says which
differ from what is there."""
import pathlib
import sys

import bitfields
import comparisons
import conversions
import floats
import integers
import memory
import programs

FILES = {
    'integer': integers.arithmetic, 'extended': integers.extended, 'dot': integers.dots,
    'bits': bitfields.all_fields,
    'float': floats.basic, 'float_modified': floats.modified, 'half': floats.halves,
    'approximate': floats.approximate,
    'convert_integer': conversions.integer_conversions, 'convert_float': conversions.float_conversions,
    'compare': comparisons.all_comparisons, 'memory': memory.accesses, 'atomic': memory.atomics,
    'flow': programs.flow,
    'call': programs.calls, 'barrier': programs.barriers, 'warp': programs.whole_warp, 'spin': programs.spin,
    'video': programs.video,
}


def main():
    check = '--check' in sys.argv
    folder = pathlib.Path(sys.argv[-1])
    total = 0
    wrong = []
    for name, make in FILES.items():
        cases = make()
        total += cases.count
        path = folder / f'{name}.cases'
        text = '\n'.join(cases.lines)
        if not check:
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            wrong.append(path.name)
    print(f'{total} cases' + (f'; not as computed: {", ".join(wrong)}' if wrong else ''))
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main())
