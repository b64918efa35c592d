"""backends are cancelled at random, as pg_cancel_backend does"""

import signal
import time

from processes import send

ON = "session"


def run(chaos, random):
    for _ in range(30):
        backends = chaos.servers.primary.backends()
        send(signal.SIGINT, random.sample(backends, min(2, len(backends))))
        time.sleep(0.03)
