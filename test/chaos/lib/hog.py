"""A session that takes all there is of something, and keeps it for a while."""

import threading
import time

import psycopg


def hog(chaos, random, query):
    """The query takes one of them; its parameter is a number."""
    seconds = 1 + random.random() * 4
    threading.Thread(target=hold, args=(chaos.servers.primary.address, query, seconds), daemon=True).start()


def hold(address, query, seconds):
    try:
        with psycopg.connect(address, autocommit=True) as connection:
            end = time.monotonic() + seconds
            for number in range(20000):
                if time.monotonic() > end:
                    return
                try:
                    connection.execute(query, [number])
                except psycopg.errors.OutOfMemory:
                    time.sleep(0.2)
    except psycopg.Error:
        pass  # another fault has ended it
