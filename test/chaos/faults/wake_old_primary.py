"""the primary is stopped (SIGSTOP), the standby is promoted, and the old primary wakes for a while"""

import signal
import time

from processes import send

ON = "server"


def run(chaos, random):
    old = chaos.servers.primary
    pids = old.processes()
    send(signal.SIGSTOP, pids)
    try:
        time.sleep(random.random() * 3)
        chaos.servers.promote()
        time.sleep(random.random() * 2)
    finally:
        send(signal.SIGCONT, pids)
    time.sleep(random.random() * 6)
    old.kill()
    chaos.servers.make_standby()
