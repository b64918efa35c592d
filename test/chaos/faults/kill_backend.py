"""kill -9 of a backend: the primary ends all others and recovers"""

import signal

from processes import send

ON = "server"


def run(chaos, random):
    backends = chaos.servers.primary.backends()
    send(signal.SIGKILL, random.sample(backends, min(1, len(backends))))
