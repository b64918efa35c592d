# OPS-16: three nodes with Patroni's synchronous_mode lose nothing that was acknowledged, and grant nothing twice: after kill -9 of
# the server, kill -9 of a node, a switchover, and a primary that wakes after another one took over. Prints TAP.

import pathlib
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "lib"))

from failovers import run  # noqa: E402

run(["kill", "kill-node", "switchover", "freeze"], synchronous=True)
