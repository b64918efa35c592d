"""lease(connect, key, ttl): a block that runs while a lease is held and renewed, on psycopg 2 or 3. One copy works at a time.

    with lease(lambda: psycopg.connect("dbname=app"), "report:daily", 30) as held:
        if held:
            while not held.lost.is_set(): ...

held.lost is set when the lease is lost, or could not be renewed for three quarters of ttl: stop then. A paused process
sees that too late, so assert held.token in each transaction that writes. The connection is the heartbeat's own.
"""
import contextlib, os, socket, threading, time, uuid


class Held:
    def __init__(self, key, token):
        self.key, self.token, self.lost = key, token, threading.Event()


@contextlib.contextmanager
def lease(connect, key, ttl):
    # Views show it to an administrator. It is of this call alone: an answer that was lost is asked for again by it.
    holder = f"{socket.gethostname()} {os.getpid()} {uuid.uuid4().hex[:8]}"
    connection = None

    def ask(sql, *more):                    # a new connection after an error
        nonlocal connection
        try:
            if connection is None:
                connection = connect()
                connection.autocommit = False
            cursor = connection.cursor()        # LOCAL: a pooler gives the connection to others
            cursor.execute(f"SET LOCAL statement_timeout = {int(ttl * 250)}")
            cursor.execute(sql, (key, *more))
            row = cursor.fetchone()
            connection.commit()
            return row
        except Exception:
            connection = None
            raise

    def acquire():
        return ask("SELECT token FROM interlock.acquire_lease(%s, make_interval(secs => %s), holder => %s, resume => true)",
                   float(ttl), holder)

    def beat():
        renewed, pause = began, ttl / 2
        while not done.wait(pause):
            sent, pause = time.monotonic(), ttl / 10
            try:
                if ask("SELECT interlock.renew_lease(%s, %s)", held.token)[0] is None:
                    return held.lost.set()
                renewed, pause = sent, ttl / 2
            except Exception:               # the server cannot be reached: try again
                pass
            watch(renewed)

    def watch(renewed):                     # by our own clock, also while a request hangs
        nonlocal timer
        timer.cancel()
        timer = threading.Timer(max(renewed + ttl * 0.75 - time.monotonic(), 0), held.lost.set)
        timer.daemon = True
        timer.start()

    began = time.monotonic()                # before the request is sent
    try:
        token = acquire()[0]
    except Exception:
        token = acquire()[0]
    if token is None:
        yield None
        return
    held, done, timer = Held(key, token), threading.Event(), threading.Timer(0, lambda: None)
    watch(began)
    heart = threading.Thread(target=beat, daemon=True)
    heart.start()
    try:
        yield held
    finally:
        done.set()
        heart.join(ttl)
        timer.cancel()
        with contextlib.suppress(Exception):
            ask("SELECT interlock.release_lease(%s, %s)", token)
