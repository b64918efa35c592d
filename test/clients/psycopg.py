# An application on psycopg 3 with the code of docs/clients/psycopg.md. Prints TAP.
# needs: python3-psycopg python3-psycopg-pool

import datetime
import json
import re
import types

import psycopg
from psycopg.types.json import Jsonb

from calls import call_all
from client import check_page, fresh_notes, one, sql, stored
from page import OWNER, check, equal, finish, load, refused

page = load("psycopg", sql)


def typed(query):
    """$1 to $n, as psycopg writes them."""
    return re.sub(r"\$\d+", "%s", query.replace("%", "%%"))


def rows(query, *values):
    with page.pool.connection() as connection:
        cursor = connection.cursor(row_factory=psycopg.rows.tuple_row)
        cursor.execute(typed(query), values)
        return cursor.fetchall() if cursor.description else []


def under_lease(key, ttl, work):
    with page.lease(page.connect, key, ttl) as held:
        return work(held) if held else None


def repeat(query, attempts):
    def once():
        with page.transaction() as connection:
            connection.execute(query)
    page.retry(once, attempts)


check_page(types.SimpleNamespace(
    page=page, rows=rows, repeat=repeat, json=Jsonb, under_lease=under_lease, sqlstate=lambda error: error.diag.sqlstate,
    read=lambda id: rows("SELECT hits FROM plain_note WHERE id = $1", id)[0][0],
    write=lambda id, hits: rows("UPDATE plain_note SET hits = $1 WHERE id = $2", hits, id)))


@check("what the page does under a lease")
def _():
    fresh_notes()
    sql("UPDATE note SET body = '' WHERE id = 1 AND version = 1")
    page.tidy()
    equal((stored(1), stored(2)), (None, ("old", 0, 1)))


@check("a marker of another holder is the error of a lock, with DETAIL")
def _():
    sql("CREATE TABLE doc (id int PRIMARY KEY, body text)")
    sql("SELECT interlock.enable_marker('doc')")
    sql("INSERT INTO doc VALUES (1, 'old')")
    sql("SELECT interlock.lock_row('doc', 1, 'anna')")

    def write():
        with page.transaction() as connection:
            connection.execute("UPDATE doc SET body = 'new'")
    error = refused(page.HeldError, write)
    assert isinstance(error, psycopg.errors.LockNotAvailable)
    equal(json.loads(error.__cause__.diag.message_detail)["holder"], "anna")


def memo(version):
    return rows("SELECT outcome FROM interlock.try_versioned_update($1, $2, $3, $4)", "memo", 1, version, Jsonb({}))[0][0]


@check("an aware datetime is exact, in any time zone")
def _():
    sql("CREATE TABLE memo (id int PRIMARY KEY, updated timestamptz NOT NULL DEFAULT now())")
    sql("SELECT interlock.enable_versioning('memo', 'updated')")
    sql("INSERT INTO memo VALUES (1, '2024-02-29 12:34:56.789123+00')")
    zone = datetime.timezone(datetime.timedelta(hours=5, minutes=45))
    equal(memo(one("SELECT updated FROM memo").astimezone(zone)), "updated")


@check("a naive one is another moment, and refused")
def _():
    equal(memo(one("SELECT updated FROM memo").astimezone(datetime.timezone(datetime.timedelta(hours=5))).replace(tzinfo=None)), "conflict")


@check("executemany counts the rows that have matched")
def _():
    fresh_notes()
    with page.pool.connection() as connection:
        cursor = connection.cursor()
        cursor.executemany("UPDATE note SET body = 'many' WHERE id = %s AND version = %s", [(1, 1), (2, 7)])
        equal(cursor.rowcount, 1)


@check("a second write of a transaction compares the version that the first one returned")
def _():
    fresh_notes()
    with page.pool.connection() as connection:
        update = "UPDATE note SET hits = hits + 1 WHERE id = 1 AND version = %s RETURNING version"
        version = connection.execute(update, (1,)).fetchone()["version"]
        try:
            with connection.transaction():
                equal(connection.execute(update, (version,)).fetchone()["version"], 3)
                raise psycopg.Rollback()
        except psycopg.Rollback:
            pass
        equal(connection.execute(update, (version,)).fetchone()["version"], 3)


@check("an upsert in plain SQL raises IL011, versioned_upsert does not")
def _():
    blind = "INSERT INTO note (id, body) OVERRIDING SYSTEM VALUE VALUES (1, 'x') ON CONFLICT (id) DO UPDATE SET body = excluded.body"
    equal(refused(psycopg.Error, rows, blind).diag.sqlstate, "IL011")
    fresh_notes()
    equal(rows("SELECT interlock.versioned_upsert($1, $2, $3, $4)", "note", 1, 1, Jsonb({"body": "x"})), [(2,)])


page.pool.close()
with psycopg.connect(user=OWNER, autocommit=True) as connection:
    def one_connection(query, *values):
        cursor = connection.execute(typed(query), values)
        return cursor.fetchall() if cursor.description else []
    call_all("psycopg", one_connection, Jsonb)
finish()
