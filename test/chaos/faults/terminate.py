"""backends are terminated, as pg_terminate_backend does"""

import signal
import time

from processes import send

ON = "session"


def run(chaos, random):
    for _ in range(random.randint(1, 4)):
        backends = chaos.servers.primary.backends()
        send(signal.SIGTERM, random.sample(backends, min(3, len(backends))))
        time.sleep(0.3)
