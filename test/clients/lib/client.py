"""What the page of each client promises, in names that are the same for all of them. A client has

    rows(sql, *values)               a call of the driver, with $1 to $n, as tuples; raises what the driver raises
    json(value)                      JSON, as users of the driver give it
    update, lease                    the calls of bad_input, if a driver needs casts in them
    sqlstate(error)
    page.StaleError                  the library's own error, or that of the page
    page.save_note(id, version, changes)   a save of what a form has sent
    page.add_hit(id)                 reads, adds, saves, and again after a conflict
    page.one_at_a_time(name)         a context in a transaction that has locked the name; one_at_a_time(name, work), if it is async
    page.pay(customer, key, request) an endpoint: {"status", "id"}
    repeat(query, attempts)          the query, as the work of the page's retry()
    under_lease(key, ttl, work)      work(held), or None: held.token, held.lost.wait()
    read(id), write(id, hits)        a careless save, of table plain_note that has no versions

`sql` is a connection of psycopg that looks at what is stored."""
import datetime
import decimal
import json
import pathlib
import threading
import uuid

import psycopg

from page import OWNER, at_once, check, equal, eventually, refused

WORKERS, ROUNDS, IDS = 8, 8, (1, 2)
sql = psycopg.connect("", autocommit=True).execute


def one(query, *values):
    return sql(query, values).fetchone()[0]


def stored(id=1):
    return sql("SELECT body, hits, version FROM note WHERE id = %s", (id,)).fetchone()


def fresh_notes():
    sql("DELETE FROM note WHERE interlock.any_version(version)")
    sql("INSERT INTO note (id, body, hits, version) OVERRIDING SYSTEM VALUE VALUES (1, 'old', 0, 1), (2, 'old', 0, 1)")


def check_page(client):
    check_conflicts(client)
    check_retry(client)
    check_transactions(client)
    check_race(client)
    check_lease(client)
    check_endpoint(client)
    check_bad_input(client)
    check_lost_connections(client)
    check_lost_calls(client)


def check_conflicts(client):
    page = client.page

    @check("the second of two forms that show one version is refused, as the error of the library")
    def _():
        fresh_notes()
        page.save_note(1, 1, {"body": "first"})
        refused(page.StaleError, page.save_note, 1, 1, {"body": "second"})
        equal(stored(), ("first", 0, 2))

    @check("so is one whose row is gone, also when its key is used again")
    def _():
        sql("DELETE FROM note WHERE id = 2 AND version = 1")
        refused(page.StaleError, page.save_note, 2, 1, {"body": "second"})
        sql("INSERT INTO note (id, body, hits) OVERRIDING SYSTEM VALUE VALUES (2, 'new', 0)")
        refused(page.StaleError, page.save_note, 2, 1, {"body": "second"})
        equal(stored(2)[0], "new")

    @check("a form that has lost its version is refused")
    def _():
        fresh_notes()
        refused(Exception, page.save_note, 1, None, {"body": "blind"})
        equal(stored(), ("old", 0, 1))

    @check("and an update that compares nothing is IL011")
    def _():
        error = refused(Exception, client.rows, "UPDATE note SET body = 'blind' WHERE id = 1 RETURNING id")
        equal(client.sqlstate(error), "IL011")


TRIES = {"IL001": 2, "40001": 2, "40P01": 2, "IL002": 1, "IL003": 1, "IL004": 1, "IL005": 1, "IL006": 1, "IL007": 1,
         "IL008": 1, "P0002": 1}


def check_retry(client):
    @check("what reading again cures is repeated, and what is hopeless is tried once")
    def _():
        def tries(code):
            sql("DROP SEQUENCE IF EXISTS tries")
            sql("CREATE SEQUENCE tries")        # counts in transactions that are rolled back, too
            fail = f"DO 'BEGIN PERFORM nextval(''tries''); RAISE EXCEPTION USING ERRCODE = ''{code}''; END'"
            refused(Exception, client.repeat, fail, 2)
            return one("SELECT last_value FROM tries")
        equal({code: tries(code) for code in TRIES}, TRIES)


def check_transactions(client):
    @check("a lock of a name lasts as long as the transaction of the page, and protects nothing outside of one")
    def _():
        def is_free():
            return one("SELECT interlock.try_lock_key('one')")

        def one_at_a_time(name, work):
            with client.page.one_at_a_time(name):
                return work()
        equal(getattr(client, "one_at_a_time", one_at_a_time)("one", is_free), False)
        equal(is_free(), True)
        client.rows("SELECT interlock.lock_key($1)::text", "one")
        equal(is_free(), True)


def lost_hits(table, *works):
    """How many hits were acknowledged, by a worker or by a writer in plain SQL beside them, and are not stored."""
    def raw():
        condition = "AND interlock.any_version(version)" if table == "note" else ""
        with psycopg.connect("", autocommit=True, prepare_threshold=None) as connection:
            for _ in range(ROUNDS):
                for id in IDS:
                    connection.execute(f"UPDATE {table} SET hits = hits + 1 WHERE id = %s {condition}", (id,))
        return ROUNDS * len(IDS)
    before = one(f"SELECT sum(hits) FROM {table}")
    return sum(at_once(*works, raw)) - (one(f"SELECT sum(hits) FROM {table}") - before)


def eight(work):
    """Eight workers, each of which calls work(id) for the one row and the other in turn; its result is how often."""
    def worker(n):
        for turn in range(ROUNDS):
            work(IDS[(n + turn) % 2])
        return ROUNDS
    return [lambda n=n: worker(n) for n in range(WORKERS)]


def check_race(client):
    @check("eight workers on two rows beside a writer in plain SQL: 0 lost")
    def _():
        fresh_notes()
        equal(lost_hits("note", *eight(client.page.add_hit)), 0)

    @check("without versions hits are lost")
    def _():
        sql("DROP TABLE IF EXISTS plain_note")
        sql("CREATE TABLE plain_note (id int PRIMARY KEY, body text NOT NULL DEFAULT '', hits int NOT NULL DEFAULT 0)")
        sql("INSERT INTO plain_note VALUES (1), (2)")
        turn = threading.Barrier(WORKERS, timeout=180)

        def add(id):                            # in each round all of them have read before any of them writes
            hits = client.read(id)
            turn.wait()
            client.write(id, hits + 1)
            turn.wait()
        lost = lost_hits("plain_note", *eight(add))
        assert lost > 0
        print(f"# {lost} of {ROUNDS * (WORKERS + len(IDS))} lost")


def check_lease(client):
    def end():
        return one("SELECT expires_at FROM interlock.lease_of('client')")

    @check("work runs under a lease, which excludes others")
    def _():
        def work(held):
            equal(one("SELECT token FROM interlock.lease_of('client')"), held.token)
            equal(client.under_lease("client", 60, lambda _: "never"), None)
            return "done"
        equal(client.under_lease("client", 60, work), "done")
        equal(one("SELECT count(*) FROM interlock.lease_of('client')"), 0)

    @check("it is renewed, and work whose lease is lost ends")
    def _():
        def work(held):
            first = end()
            eventually(lambda: end() > first)
            sql("SELECT interlock.break_lease('client', 'test')")
            held.lost.wait()
            return "ended"
        equal(client.under_lease("client", 6, work), "ended")


def check_endpoint(client):
    pay = client.page.pay

    def payments(customer):
        return one("SELECT count(*) FROM payment WHERE customer = %s", customer)

    @check("of eight payments with one key one is made")
    def _():
        answers = at_once(*[lambda: pay("anna", "key-1", {"amount": 5})] * WORKERS)
        statuses = {answer["status"] for answer in answers}
        assert 201 in statuses and statuses <= {201, 409}, statuses
        equal(payments("anna"), 1)

    @check("it is replayed, and another request with the key is refused")
    def _():
        id = one("SELECT id FROM payment WHERE customer = 'anna'")
        equal(pay("anna", "key-1", {"amount": 5}), {"status": 201, "id": id})
        equal(pay("anna", "key-1", {"amount": 6})["status"], 422)
        equal(payments("anna"), 1)

    @check("a request without a key is refused, and has not the key of another one without")
    def _():
        for key in (None, ""):
            equal([pay("dora", key, {"amount": 5})["status"] for _ in range(2)], [400, 400])
        equal(payments("dora"), 0)

    @check("a payment that fails leaves its key free")
    def _():
        refused(Exception, pay, "bert", "key-1", {"amount": "much"})
        equal(pay("bert", "key-1", {"amount": 5})["status"], 201)
        equal(payments("bert"), 1)


UPDATE_ROW = "SELECT interlock.versioned_update($1, $2, $3, $4)"
ACQUIRE = "SELECT outcome FROM interlock.acquire_lease($1, $2)"
EPOCH = datetime.datetime(1969, 12, 31, 23, 59, 59, tzinfo=datetime.timezone.utc)


def bad_input(client):
    json, update, lease = client.json, getattr(client, "update", UPDATE_ROW), getattr(client, "lease", ACQUIRE)
    yield from {
        "a key of another type": (update, "note", "abc", 1, json({})),
        "None as key": (update, "note", None, 1, json({})),
        "a list as key": (update, "note", [1], 1, json({})),
        "bytes as key": (update, "note", b"\x00\xff", 1, json({})),
        "a UUID as key": (update, "note", uuid.UUID("0d8f0c5e-7a3b-4f0e-9f3a-5d2c1b0a9e8f"), 1, json({})),
        "None as version": (update, "note", 1, None, json({})),
        "NaN as version": (update, "note", 1, float("nan"), json({})),
        "a Decimal that is NaN": (update, "note", 1, decimal.Decimal("NaN"), json({})),
        "a fraction as version": (update, "note", 1, 2.5, json({})),
        "an int beyond bigint": (update, "note", 1, 2 ** 64, json({})),
        "a huge int": (update, "note", 10 ** 400, 1, json({})),
        "a date before 1970 as version": (update, "note", 1, EPOCH, json({})),
        "a naive datetime as version": (update, "note", 1, datetime.datetime(2024, 2, 29), json({})),
        "None as changes": (update, "note", 1, 1, None),
        "a dict as changes, without its wrapper": (update, "note", 1, 1, {"body": {1, 2}}),
        "a number as changes": (update, "note", 1, 1, 7),
        "text as changes": (update, "note", 1, 1, "body"),
        "a list as changes": (update, "note", 1, 1, json(["body"])),
        "an unknown column": (update, "note", 1, 1, json({"title": "x"})),
        "a value of another type": (update, "note", 1, 1, json({"hits": "many"})),
        "NaN as a value": (update, "note", 1, 1, json({"hits": float("nan")})),
        "a character that PostgreSQL has not": (update, "note", 1, 1, json({"body": "a\0b"})),
        "an unknown table": (update, "nothing", 1, 1, json({})),
        "a ttl that is none": (lease, "client", "soon"),
        "NaN as ttl": (lease, "client", float("nan")),
        "a key that is empty": (lease, "", "1 s"),
        "a lease for bytes": (lease, b"\x00", "1 s"),
        "None as key of a lease": (lease, None, "1 s"),
        "a date as ttl": (lease, "client", EPOCH),
        "a list as version": (update, "note", 1, [1, 2], json({})),
        "bytes as version": (update, "note", 1, b"1", json({})),
        "NaN as token": ("SELECT interlock.assert_lease($1, $2)", "client", float("nan")),
        "a token that was never given": ("SELECT interlock.assert_lease($1, $2)", "client", 2 ** 63 - 1),
        "None as idempotency key": ("SELECT interlock.idempotency_claim($1, $2)", "POST /payments", None),
        "bytes as token of a claim": ("SELECT interlock.idempotency_complete($1, $2, $3)", "POST /payments", "client", b"1"),
        "NaN as what a counter is changed by": ("SELECT interlock.adjust($1, $2, $3, $4)", "note", 1, "hits", decimal.Decimal("NaN")),
    }.items()


def check_bad_input(client):
    fresh_notes()
    for name, (query, *values) in bad_input(client):
        @check(f"{name} is an error and changes nothing")
        def _():
            refused(Exception, client.rows, query, *values)
            equal(stored(), ("old", 0, 1))
            equal(one("SELECT count(*) FROM interlock.leases"), 0)

    @check("then the connection is as good as before")
    def _():
        client.page.save_note(1, 1, {"body": "new"})
        equal(stored(), ("new", 0, 2))


KILL = """SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid() AND state = 'active'
      AND query ~ 'interlock|note|payment'
      AND (wait_event_type = 'Lock' OR query ~ 'acquire_lease' AND wait_event_type = 'Extension')"""


def check_lost_connections(client):
    page = client.page

    def lost(lock, call):
        """The session that waits for our lock is ended by an administrator; its client sees an error."""
        with psycopg.connect(user=OWNER) as holder:
            holder.execute(lock)

            def kill():
                eventually(lambda: one(KILL) > 0)
            at_once(lambda: refused(Exception, call) and None, kill)
            holder.rollback()

    @check("a connection that is lost while a save waits: nothing is written, and the save can be repeated")
    def _():
        fresh_notes()
        lost("SELECT FROM note WHERE id = 1 FOR UPDATE", lambda: page.save_note(1, 1, {"body": "new"}))
        equal(stored()[0], "old")
        page.save_note(1, 1, {"body": "new"})
        equal(stored(), ("new", 0, 2))

    @check("a save that is repeated though it came through is a conflict")
    def _():
        refused(page.StaleError, page.save_note, 1, 1, {"body": "new"})

    @check("while a payment is made: the next one with the key makes it")
    def _():
        lost("LOCK TABLE payment", lambda: page.pay("carl", "key-1", {"amount": 5}))
        equal(page.pay("carl", "key-1", {"amount": 5})["status"], 201)
        equal(one("SELECT count(*) FROM payment WHERE customer = 'carl'"), 1)

    @check("while a lock of a name waits: it is free afterwards")
    def _():
        lost("SELECT interlock.lock_key('client')", lambda: client.rows("SELECT interlock.lock_key($1)", "client"))
        equal(client.rows("SELECT interlock.try_lock_key($1)", "client")[0][0], True)

    @check("while a lease is waited for: it is not granted to the dead")
    def _():
        acquire = "SELECT outcome FROM interlock.acquire_lease($1, '5 min', CAST($2 AS interval))"
        sql("SELECT FROM interlock.acquire_lease('client', '5 min')")
        lost("SELECT", lambda: client.rows(acquire, "client", datetime.timedelta(minutes=5)))
        sql("SELECT interlock.break_lease('client', 'test')")
        eventually(lambda: client.rows(acquire, "client", datetime.timedelta(0))[0][0] == "acquired")
        sql("SELECT interlock.break_lease('client', 'test')")


LOST = json.loads(pathlib.Path(__file__).with_name("lost.json").read_text())    # client.mjs says what is in it


def check_lost_calls(client):
    for query in LOST["setup"]:
        sql(query)
    for call in LOST["calls"]:
        @check(f"{call['name']} that is lost in the middle changes nothing and can be repeated, also after an unknown outcome")
        def _():
            before = one(LOST["state"])
            refused(Exception, client.rows, f"""WITH done AS MATERIALIZED ({call['sql']})
                SELECT (SELECT count(done) FROM done), pg_terminate_backend(pg_backend_pid()), pg_sleep(600)::text""")
            eventually(lambda: works(client))   # a pool may hand out the lost connection
            equal(one(LOST["state"]), before)
            equal(client.rows(call["sql"])[0][0], call["first"])
            if call["again"] is None:
                refused(Exception, client.rows, call["sql"])
            else:
                equal(client.rows(call["sql"])[0][0], call["again"])
    for query in LOST["teardown"]:
        sql(query)


def works(client):
    try:
        return client.rows("SELECT 1")
    except Exception:
        return False
