"""the standby is stopped (SIGSTOP) for a while"""

import signal
import time

from processes import send

ON = "server"


def run(chaos, random):
    pids = chaos.servers.standby.processes()
    send(signal.SIGSTOP, pids)
    try:
        time.sleep(random.random() * 6)
    finally:
        send(signal.SIGCONT, pids)
