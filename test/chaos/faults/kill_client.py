"""kill -9 of a client; another one takes its place"""

ON = "session"


def run(chaos, random):
    chaos.load.kill(random.choice(sorted(chaos.load.clients)))
