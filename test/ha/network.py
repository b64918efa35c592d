# A primary that is cut off from the other nodes and from etcd, while clients still reach it, and etcd that is away. Prints TAP.

import pathlib
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "lib"))

from failovers import run  # noqa: E402

run(["cut", "stop-etcd"], synchronous=True)
