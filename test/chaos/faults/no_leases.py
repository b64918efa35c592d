"""one session has all room for leases for a while"""

from hog import hog

ON = "session"


def run(chaos, random):
    hog(chaos, random, "SELECT interlock.acquire_lease('hog/' || %s::text, 3)")
