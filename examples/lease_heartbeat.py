"""lease(connect, key, ttl, wait, stop): a block that runs while a lease is held and renewed, on psycopg 2 or 3. One copy works
at a time; the others wait for their turn.

    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    with lease(lambda: psycopg.connect("dbname=app"), "report:daily", 30, wait=60, stop=stop) as held:
        if held:
            while not (held.lost.is_set() or stop.is_set()): ...

wait: how many seconds to wait at most, 0 by default. stop ends the wait. held is None when the time is over. The connection is
the heartbeat's own; a wait listens on it, so let it go past a transaction pooler.

held.lost is set when the lease is lost, or could not be renewed for three quarters of ttl: stop then. A paused process
sees that too late, so assert held.token in each transaction that writes.
"""
import contextlib, os, select, socket, threading, time, uuid


class Held:
    def __init__(self, key, token):
        self.key, self.token, self.lost = key, token, threading.Event()


@contextlib.contextmanager
def lease(connect, key, ttl, wait=0, stop=threading.Event()):
    # Views show it to an administrator. It is of this call alone: an answer that was lost is asked for again by it.
    holder = f"{socket.gethostname()} {os.getpid()} {uuid.uuid4().hex[:8]}"
    connection = began = None
    called = set()                          # numbers of tickets that were notified

    def ask(sql, *more):                    # a new connection after an error
        nonlocal connection
        try:
            if connection is None:
                connection = connect()
                connection.autocommit = False
                if hasattr(connection, "add_notify_handler"):
                    connection.add_notify_handler(lambda notice: called.add(int(notice.payload)))
            cursor = connection.cursor()        # LOCAL: a pooler gives the connection to others
            cursor.execute(f"SET LOCAL statement_timeout = {int(ttl * 250)}")
            cursor.execute(sql, (key, *more) if "%s" in sql else ())
            row = cursor.fetchone() if cursor.description else None
            connection.commit()
            if not hasattr(connection, "add_notify_handler"):
                called.update(int(notice.payload) for notice in connection.notifies)
                connection.notifies.clear()
            return row
        except Exception:
            connection = None
            raise

    def acquire():
        nonlocal began
        began = time.monotonic()            # before the request is sent
        return ask("SELECT token, ticket FROM interlock.acquire_lease(%s, make_interval(secs => %s), holder => %s, "
                   "resume => true, notify => %s)", float(ttl), holder, wait > 0)

    def acquire_in_time():
        limit, listening = time.monotonic() + wait, None
        while True:
            try:
                token, ticket = acquire()
            except Exception:
                token, ticket = acquire()
            if token is not None or time.monotonic() >= limit or stop.is_set():
                return token
            if listening is not connection:     # it can have been notified before: ask once more
                ask("LISTEN interlock_lease")
                listening = connection
            else:
                hear(ticket, min(limit, time.monotonic() + 30))

    def hear(ticket, until):                # half a minute at most, as a notification can be lost
        while ticket not in called and not stop.is_set() and time.monotonic() < until:
            if select.select([connection.fileno()], [], [], max(0, min(1, until - time.monotonic())))[0]:
                ask("SELECT 1")
        called.discard(ticket)

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

    heart = None
    try:
        token = acquire_in_time()
        if token is None:
            yield None
            return
        held, done, timer = Held(key, token), threading.Event(), threading.Timer(0, lambda: None)
        watch(began)
        if wait > 0:
            ask("UNLISTEN interlock_lease")
        heart = threading.Thread(target=beat, daemon=True)
        heart.start()
        yield held
    finally:
        if heart:
            done.set()
            heart.join(ttl)
            timer.cancel()
        # By the name: also the lease of an answer that was lost, and the ticket of a wait that has ended.
        with contextlib.suppress(Exception):
            ask("SELECT interlock.release_lease(%s, holder => %s)", holder)
