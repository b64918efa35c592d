"""the disk with the WAL of the primary or of the standby is full until the server ends, or for a while"""

import time

from disks import fill

ON = "server"


def run(chaos, random):
    server = random.choice([chaos.servers.primary, chaos.servers.primary, chaos.servers.standby])
    empty = fill(server.directory / "wal")
    try:
        for _ in range(random.randint(5, 15)):
            time.sleep(1)
            chaos.servers.ask("SELECT pg_switch_wal()", chaos.servers.primary)
            if not server.postmaster():
                break
    finally:
        empty()
    chaos.servers.ensure()
    server.set_log_aside()
