"""out of shared memory: one session has all entries of the lock table for a while"""

from hog import hog

ON = "session"


def run(chaos, random):
    hog(chaos, random, "SELECT pg_advisory_lock(47, %s)")
