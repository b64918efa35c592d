# Without synchronous_mode a failover may lose what was acknowledged last, which is counted. Leases are not granted twice to
# clients that follow the rules of a heartbeat, with a time to live below interlock.lease_durable_after. Prints TAP.

import pathlib
import sys

sys.dont_write_bytecode = True
TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / "ha/lib"), str(TESTS / "chaos/lib")]

from failovers import run  # noqa: E402

run(["kill-node", "kill-node"], synchronous=False)
