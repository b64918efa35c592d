# Nodes whose clocks are a minute off, one ahead and one behind, and two failovers. Leases do not depend on clocks. Prints TAP.

import pathlib
import sys

sys.dont_write_bytecode = True
TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / "ha/lib"), str(TESTS / "chaos/lib")]

from failovers import run  # noqa: E402

run(["kill-node", "kill-node"], synchronous=True, clocks={"node2": 60, "node3": -60})
