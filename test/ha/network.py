# A primary that is cut off from the other nodes and from etcd, while clients still reach it, and etcd that is away. Prints TAP.

import pathlib
import sys

sys.dont_write_bytecode = True
TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / "ha/lib"), str(TESTS / "chaos/lib")]

from failovers import run  # noqa: E402

run(["cut", "stop-etcd"], synchronous=True)
