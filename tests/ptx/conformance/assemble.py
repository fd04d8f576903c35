"""assemble.py PTX_CONFORMANCE PTXAS: every case's PTX goes through NVIDIA's assembler for sm_90."""
import concurrent.futures
import pathlib
import subprocess
import sys
import tempfile


def assemble(ptxas, path):
    done = subprocess.run([ptxas, '-arch', 'sm_90', '-o', '/dev/null', str(path)],
                          capture_output=True, text=True)
    return '' if done.returncode == 0 else f'{path.stem}: {done.stderr.strip()}'


def main():
    program, ptxas = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([program, '--write', folder], check=True)
        paths = sorted(pathlib.Path(folder).glob('*.ptx'))
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            problems = [problem for problem in pool.map(lambda path: assemble(ptxas, path), paths) if problem]
    print('\n'.join(problems))
    print(f'{len(paths) - len(problems)} of {len(paths)} cases assemble')
    return 1 if problems or not paths else 0


if __name__ == '__main__':
    sys.exit(main())
