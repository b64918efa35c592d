# OPS-16: three nodes with Patroni's synchronous_mode lose nothing that was acknowledged, and grant nothing twice: after kill -9 of
# the server, kill -9 of a node, a switchover, and a primary that wakes after another one took over. Prints TAP.

import pathlib
import sys

sys.dont_write_bytecode = True
TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / "ha/lib"), str(TESTS / "chaos/lib")]

from failovers import run  # noqa: E402

run(["kill", "kill-node", "switchover", "freeze"], synchronous=True)
