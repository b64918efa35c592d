"""the disk with the primary's data is full for a while"""

import time

from disks import fill

ON = "server"


def run(chaos, random):
    server = chaos.servers.primary
    empty = fill(server.directory / "data")
    try:
        time.sleep(1 + random.random() * 6)
    finally:
        empty()
    chaos.servers.ensure()
    server.set_log_aside()
