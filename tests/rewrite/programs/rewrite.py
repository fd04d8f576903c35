#!/usr/bin/env python3
"""Rewrites a file all kernels of which are to be managed: rewrite.py SMT_REWRITE SOURCE OUTPUT OPTIONS..."""
import subprocess
import sys

program, source, output, *options = sys.argv[1:]
done = subprocess.run([program, source, "-o", output, "--", *options], stderr=subprocess.PIPE, text=True)
refused = [line for line in done.stderr.splitlines() if ": managed" not in line]
print("\n".join(refused))
sys.exit(1 if refused or done.returncode else 0)
