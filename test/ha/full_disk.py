# full_disk.py DIRECTORY: the disk of a primary that has just taken over is full. Writes fail with an error that says so, or the server
# ends, and all continues when there is space again. Each node has a disk of its own in the directory: see script/test. Prints TAP.

import pathlib
import sys

sys.dont_write_bytecode = True
TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / "ha/lib"), str(TESTS / "chaos/lib")]

from failovers import run  # noqa: E402

run(["kill-node", "full-disk"], synchronous=True, directory=sys.argv[1])
