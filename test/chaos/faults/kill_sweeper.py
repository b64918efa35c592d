"""kill -9 of a worker of the sweeper"""

import signal

from processes import command_of, send, wait_for

ON = "server"


def run(chaos, random):
    def sweepers():
        return [pid for pid in chaos.servers.primary.processes()[1:] if "interlock" in command_of(pid)]

    send(signal.SIGKILL, [random.choice(wait_for("the sweeper", sweepers, 0.05))])
