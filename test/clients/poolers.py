# What docs/operations/poolers.md says: the pages of psycopg 3, psycopg 2 and asyncpg through pgbouncer. Prints TAP.
# needs: python3-psycopg python3-psycopg-pool python3-psycopg2 python3-asyncpg
# needs a pooler

import asyncio
import contextlib
import functools
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import types

import asyncpg
import psycopg
from psycopg.types.json import Jsonb

from client import check_page, eight, fresh_notes, lost_hits, one, sql, stored
from page import OWNER, blocks, check, equal, eventually, finish, load, refused, state

PROGRAM = shutil.which("pgbouncer", path=os.environ.get("PGBOUNCER_PATH", "/usr/sbin"))
ENVIRONMENT = {**os.environ, "LD_LIBRARY_PATH": os.environ.get("PGBOUNCER_LIBRARIES", "")}
VERSION = tuple(int(part) for part in re.findall(r"\d+", subprocess.run(
    [PROGRAM, "--version"], env=ENVIRONMENT, capture_output=True, text=True, check=True).stdout)[:2])
PREPARES = VERSION >= (1, 21)                   # keeps prepared statements of the protocol
print(f"# pgbouncer {VERSION}")


@contextlib.contextmanager
def pooler(mode, connections):
    """A pgbouncer with so many connections to the server; PGHOST says where it is."""
    with tempfile.TemporaryDirectory(dir="/tmp") as directory:
        os.chmod(directory, 0o777)
        path = pathlib.Path(directory)
        (path / "users").write_text(f'"{OWNER}" ""\n"app" ""\n')
        (path / "pgbouncer.ini").write_text(f"""
[databases]
* = host={os.environ["PGHOST"]} port={os.environ["PGPORT"]}
[pgbouncer]
pool_mode = {mode}
default_pool_size = {connections}
auth_type = trust
auth_file = {path}/users
listen_addr =
listen_port = {os.environ["PGPORT"]}
unix_socket_dir = {path}
{"max_prepared_statements = 100" if PREPARES else ""}
{"user = postgres" if os.geteuid() == 0 else ""}
""")
        program = subprocess.Popen([PROGRAM, f"{path}/pgbouncer.ini"], env=ENVIRONMENT, stderr=subprocess.DEVNULL)
        direct = os.environ["PGHOST"]
        try:
            os.environ["PGHOST"] = directory
            eventually(answers)
            yield
        finally:
            os.environ["PGHOST"] = direct
            program.kill()                      # other signals wait for clients, in some versions
            program.wait()


def connect(**options):
    return psycopg.connect(user=OWNER, autocommit=True, **{"prepare_threshold": None, **options})


def answers():
    try:
        connect().close()
        return True
    except psycopg.OperationalError:
        return False


def pid(connection):
    return connection.execute("SELECT pg_backend_pid()").fetchone()[0]


@contextlib.contextmanager
def elsewhere(connection):
    """While it lasts, the connection of the server that would answer next is busy with another client."""
    busy = pid(connection)
    with connect() as other, other.transaction():
        equal(pid(other), busy)
        yield


# --- The pages of the drivers, in transaction mode -----------------------------------------------------------------------

def reset():
    sql("DROP TABLE IF EXISTS note, payment CASCADE")
    sql("DELETE FROM interlock.idempotency")


def under(page):
    def under_lease(key, ttl, work):
        with page.lease(page.connect, key, ttl) as held:
            return work(held) if held else None
    return under_lease


def with_rows(page, rows, **more):
    def repeat(query, attempts):
        def once():
            with page.transaction() as executor:
                executor.execute(query)
        page.retry(once, attempts)

    return types.SimpleNamespace(**{
        "page": page, "rows": rows, "repeat": repeat, "json": Jsonb, "sqlstate": lambda error: error.diag.sqlstate,
        "read": lambda id: rows("SELECT hits FROM plain_note WHERE id = $1", id)[0][0],
        "write": lambda id, hits: rows("UPDATE plain_note SET hits = $1 WHERE id = $2", hits, id), **more})


def typed(query):
    return re.sub(r"\$\d+", "%s", query)


def page_of_psycopg():
    page = load("psycopg", sql)
    page.pool.kwargs["prepare_threshold"] = None

    def rows(query, *values):
        with page.pool.connection() as connection:
            cursor = connection.cursor(row_factory=psycopg.rows.tuple_row)
            cursor.execute(typed(query), values)
            return cursor.fetchall() if cursor.description else []
    check_page(with_rows(page, rows, under_lease=under(page)))
    page.pool.close()


def page_of_psycopg2():
    page = load("psycopg2", sql)

    def rows(query, *values):
        with page.transaction() as cursor:
            cursor.execute(typed(query), values)
            return [tuple(row.values()) for row in cursor.fetchall()] if cursor.description else []
    check_page(with_rows(page, rows, json=page.Json, under_lease=under(page)))
    page.pool.closeall()


for name, run_page in {"psycopg 3": page_of_psycopg, "psycopg 2": page_of_psycopg2}.items():
    reset()
    state["prefix"] = f"{name}, transaction mode: "
    with pooler("transaction", 4):
        run_page()


# --- What is of a transaction, and what of a session ---------------------------------------------------------------------

reset()
sql(blocks("psycopg", "sql")[0])
sql("CREATE TABLE seat (id int PRIMARY KEY, state text NOT NULL)")
sql("SELECT interlock.define_transitions('seat', 'state', '{\"free\": [\"sold\"]}'), interlock.enable_marker('seat')")
sql("CREATE FUNCTION charge(request jsonb) RETURNS jsonb LANGUAGE sql AS $$ SELECT jsonb_build_object('charged', request) $$")


def functions(connection):
    """Each statement by another connection of the server."""
    def ask(query):
        with elsewhere(connection):
            return connection.execute(query).fetchone()
    fresh_notes()
    sql("DELETE FROM seat")
    sql("INSERT INTO seat VALUES (1, 'free')")
    equal(ask("SELECT interlock.versioned_update('note', 1, 1, '{\"hits\": 1}')"), (2,))
    equal(ask("SELECT outcome FROM interlock.try_versioned_update('note', 1, 1, '{\"hits\": 1}')"), ("conflict",))
    equal(ask("SELECT locked FROM interlock.lock_row('seat', 1, 'anna')"), (True,))
    equal(ask("SELECT locked FROM interlock.lock_row('seat', 1, 'bert')"), (False,))
    equal(ask("SELECT interlock.unlock_row('seat', 1, 'anna')"), (True,))
    move = "SELECT outcome FROM interlock.try_transition('seat', 1, 'free', 'sold', state_column => 'state')"
    equal((ask(move), ask(move)), (("transitioned",), ("state_changed",)))
    outcomes = {ask("SELECT outcome FROM interlock.run_once('POST /payments', 'pooled', 'charge(jsonb)', '5')")[0] for _ in range(2)}
    assert outcomes <= {"completed", "replay"} and "replay" in outcomes, outcomes
    token = ask("SELECT token FROM interlock.acquire_lease('pooled', '5 min')")[0]
    equal(ask("SELECT outcome FROM interlock.acquire_lease('pooled')"), ("held",))
    assert ask(f"SELECT interlock.renew_lease('pooled', {token})")[0]
    equal(ask(f"SELECT interlock.release_lease('pooled', {token})"), (True,))


state["prefix"] = "transaction mode: "
with pooler("transaction", 4), connect() as client:
    @check("functions on rows, leases and run_once, each call by another connection of the server")
    def _():
        functions(client)

    @check("assert_lease, key locks, set_holder and select_for_update last for the transaction")
    def _():
        token = client.execute("SELECT token FROM interlock.acquire_lease('pooled', '5 min')").fetchone()[0]
        with connect() as other, client.transaction():
            client.execute(f"SELECT interlock.assert_lease('pooled', {token})")
            client.execute("SELECT interlock.lock_key('pooled'), interlock.set_holder('anna')")
            client.execute("SELECT FROM interlock.select_for_update('note', '{1}')")
            equal(other.execute("SELECT interlock.try_lock_key('pooled')").fetchone(), (False,))
            equal(other.execute("SELECT pins FROM interlock.leases WHERE key = 'pooled'").fetchone(), (1,))
            equal(other.execute("SELECT count(*) FROM (SELECT FROM note WHERE id = 1 FOR UPDATE SKIP LOCKED) n").fetchone(), (0,))
        equal(sql("SELECT interlock.try_lock_key('pooled'), pins FROM interlock.leases WHERE key = 'pooled'").fetchone(), (True, 0))
        sql("SELECT interlock.break_lease('pooled', 'test')")

    @check("a heartbeat leaves no setting behind")
    def _():
        from lease_heartbeat import lease       # which a page has brought
        with lease(lambda: psycopg.connect(user=OWNER), "pooled", 60) as held:
            assert held
        with elsewhere(client):
            equal(client.execute("SHOW statement_timeout").fetchone(), ("0",))
        equal(client.execute("SHOW statement_timeout").fetchone(), ("0",))

with pooler("transaction", 1), connect() as client, connect() as other:
    @check("a key lock of scope session is of the pooler's session: another client has it and gives it back")
    def _():
        client.execute("SELECT interlock.lock_key('session', scope => 'session')")
        equal(other.execute("SELECT interlock.try_lock_key('session', scope => 'session')").fetchone(), (True,))
        equal(other.execute("SELECT interlock.unlock_key('session')").fetchone(), (True,))
        other.execute("SELECT interlock.unlock_key('session')")

    @check("so is a lease that is bound to it, which stays when the client has gone")
    def _():
        with connect() as gone:
            gone.execute("SELECT FROM interlock.acquire_lease('bound', bind => 'session')")
        equal(one("SELECT outcome FROM interlock.acquire_lease('bound')"), "held")

    @check("SET reaches other clients, SET LOCAL does not")
    def _():
        with client.transaction():
            client.execute("SET LOCAL interlock.lock_order = 'warn'")
        equal(other.execute("SHOW interlock.lock_order").fetchone(), ("off",))
        client.execute("SET interlock.lock_order = 'warn'")
        equal(other.execute("SHOW interlock.lock_order").fetchone(), ("warn",))


# --- Statement mode ------------------------------------------------------------------------------------------------------

state["prefix"] = "statement mode: "
with pooler("statement", 1), connect() as client, connect() as other:
    @check("functions on rows, leases and run_once by single statements")
    def _():
        global elsewhere
        in_transactions, elsewhere = elsewhere, lambda connection: contextlib.nullcontext()
        try:
            sql("DELETE FROM interlock.idempotency")
            functions(client)
        finally:
            elsewhere = in_transactions

    @check("a transaction is refused, so nothing can be asserted for it")
    def _():
        with connect() as third:
            refused(psycopg.Error, third.execute, "BEGIN")

    @check("a key lock ends with its statement")
    def _():
        client.execute("SELECT interlock.lock_key('statement')")
        equal(one("SELECT interlock.try_lock_key('statement')"), True)

    @check("what is bound to the session, and SET, reach other clients")
    def _():
        client.execute("SELECT interlock.lock_key('session', scope => 'session')")
        equal(other.execute("SELECT interlock.unlock_key('session')").fetchone(), (True,))
        client.execute("SET interlock.lock_order = 'warn'")
        equal(other.execute("SHOW interlock.lock_order").fetchone(), ("warn",))


# --- Prepared statements -------------------------------------------------------------------------------------------------

def twice(client, query, *values):
    """Prepared by one connection of the server, executed by another one."""
    client.execute(query, values, prepare=True)
    with elsewhere(client):
        return client.execute(query, values, prepare=True)


state["prefix"] = "prepared statements: "
with pooler("transaction", 4):
    @check("of the protocol: work by any connection of the server from pgbouncer 1.21 on, and not before")
    def _():
        fresh_notes()
        with connect(prepare_threshold=0) as client:
            update = "UPDATE note SET hits = hits + 1 WHERE id = %s AND version = %s"
            lease = "SELECT outcome FROM interlock.acquire_lease(%s, %s)"
            if PREPARES:
                equal(twice(client, update, 1, 1).rowcount, 0)
                equal(stored(), ("old", 1, 2))
                equal(twice(client, lease, "prepared", "1 min").fetchone(), ("held",))
                error = refused(psycopg.Error, twice, client, "UPDATE note SET hits = 0 WHERE id = %s", 1)
                equal(error.diag.sqlstate, "IL011")
            else:
                refused(psycopg.Error, twice, client, lease, "prepared", "1 min")

    @check("PREPARE is of the pooler's session, always")
    def _():
        with connect() as client:
            client.execute("PREPARE mine AS SELECT interlock.version()")
            with elsewhere(client):
                refused(psycopg.Error, client.execute, "EXECUTE mine")


def check_asyncpg(**options):
    page = load("asyncpg", lambda query: None)
    page.asyncpg = types.SimpleNamespace(**{**vars(asyncpg), **{
        name: functools.partial(getattr(asyncpg, name), **options) for name in ("connect", "create_pool")}})

    async def run():
        await page.start()
        await asyncio.gather(*[page.add_hit(1 + n % 2) for n in range(64)])
        answers = await asyncio.gather(*[page.pay("anna", "pooled", {"amount": 5}) for _ in range(8)])
        async with page.lease("pooled", 60) as held:
            assert held
        await page.pool.close()
        return {answer["status"] for answer in answers}
    fresh_notes()
    sql("DELETE FROM payment")
    sql("DELETE FROM interlock.idempotency")
    statuses = asyncio.run(run())
    assert 201 in statuses and statuses <= {201, 409}, statuses
    equal(one("SELECT sum(hits) FROM note"), 64)
    equal(one("SELECT count(*) FROM payment"), 1)


def check_psycopg():
    page = load("psycopg", lambda query: None)
    page.pool.kwargs["prepare_threshold"] = 0
    fresh_notes()
    try:
        equal(lost_hits("note", *eight(page.add_hit)), 0)
    finally:
        page.pool.close()


with pooler("transaction", 4):
    for name, run in {"asyncpg": check_asyncpg, "psycopg 3": check_psycopg}.items():
        @check(f"the page of {name} works with them from pgbouncer 1.21 on, and not before")
        def _():
            if PREPARES:
                run()
            else:
                refused(Exception, run)

    @check("and that of asyncpg without its cache of statements, in any version")
    def _():
        check_asyncpg(statement_cache_size=0)

finish()
