"""one session has all room for names of key locks for a while"""

from hog import hog

ON = "session"


def run(chaos, random):
    hog(chaos, random, "SELECT interlock.lock_key('hog ' || %s::text, 'session')")
