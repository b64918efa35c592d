# Nodes whose clocks are a minute off, one ahead and one behind, and two failovers. Leases do not depend on clocks. Prints TAP.

import pathlib
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "lib"))

from failovers import run  # noqa: E402

run(["kill-node", "kill-node"], synchronous=True, clocks={"node2": 60, "node3": -60})
