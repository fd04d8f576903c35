"""assemble.py PTX_CONFORMANCE PTXAS: every case's PTX goes through NVIDIA's assembler for sm_90."""
import concurrent.futures
import pathlib
import subprocess
import sys
import tempfile

TOGETHER = 32


def problem_of(ptxas, *paths):
    done = subprocess.run([ptxas, '-arch', 'sm_90', '-o', '/dev/null', *map(str, paths)],
                          capture_output=True, text=True)
    return '' if done.returncode == 0 else f'{paths[0].stem}: {done.stderr.strip()}'


def problems_of(ptxas, paths):
    """Together, as ptxas takes longer to start than for a case; by themselves where that fails."""
    if not problem_of(ptxas, *paths):
        return []
    return [problem for path in paths if (problem := problem_of(ptxas, path))]


def main():
    program, ptxas = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([program, '--write', folder], check=True)
        paths = sorted(pathlib.Path(folder).glob('*.ptx'))
        for number, path in enumerate(paths):
            path.write_text(path.read_text().replace('.entry test(', f'.entry test_{number}('))
        groups = [paths[begin:begin + TOGETHER] for begin in range(0, len(paths), TOGETHER)]
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            problems = sum(pool.map(lambda group: problems_of(ptxas, group), groups), [])
    print('\n'.join(problems))
    print(f'{len(paths) - len(problems)} of {len(paths)} cases assemble')
    return 1 if problems or not paths else 0


if __name__ == '__main__':
    sys.exit(main())
