# An application on psycopg 2 with the code of docs/clients/psycopg2.md. Prints TAP.
# needs: python3-psycopg2 python3-psycopg
# only with --all

import datetime
import json
import re
import types

import psycopg2
from psycopg2.extras import Json

from calls import call_all
from client import check_page, fresh_notes, one, sql, stored
from page import OWNER, check, equal, finish, load, refused

page = load("psycopg2", sql)


def typed(query):
    """$1 to $n, as psycopg writes them."""
    return re.sub(r"\$\d+", "%s", query.replace("%", "%%"))


def rows_of(cursor):
    def rows(query, *values):
        cursor.execute(typed(query), values)
        return [tuple(row.values()) for row in cursor.fetchall()] if cursor.description else []
    return rows


def rows(query, *values):
    with page.transaction() as cursor:
        return rows_of(cursor)(query, *values)


def under_lease(key, ttl, work):
    with page.lease(page.connect, key, ttl) as held:
        return work(held) if held else None


def repeat(query, attempts):
    def once():
        with page.transaction() as cursor:
            cursor.execute(query)
    page.retry(once, attempts)


check_page(types.SimpleNamespace(
    page=page, rows=rows, repeat=repeat, json=Json, under_lease=under_lease, sqlstate=lambda error: error.diag.sqlstate,
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
        with page.transaction() as cursor:
            cursor.execute("UPDATE doc SET body = 'new'")
    error = refused(page.HeldError, write)
    assert isinstance(error, psycopg2.errors.LockNotAvailable)
    equal(json.loads(error.__cause__.diag.message_detail)["holder"], "anna")


def memo(version):
    return rows("SELECT outcome FROM interlock.try_versioned_update($1, $2, $3, $4)", "memo", 1, version, Json({}))[0][0]


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


@check("executemany says nothing of a row that has not matched")
def _():
    fresh_notes()
    with page.transaction() as cursor:
        cursor.executemany("UPDATE note SET body = 'many' WHERE id = %s AND version = %s", [(1, 7), (2, 1)])
        equal(cursor.rowcount, 1)               # of the last one


@check("a second write of a transaction compares the version that the first one returned")
def _():
    fresh_notes()
    with page.transaction() as cursor:
        update = "UPDATE note SET hits = hits + 1 WHERE id = 1 AND version = %s RETURNING version"
        version = page.row(cursor, update, 1)["version"]
        cursor.execute("SAVEPOINT inner_one")
        equal(page.row(cursor, update, version)["version"], 3)
        cursor.execute("ROLLBACK TO inner_one")
        equal(page.row(cursor, update, version)["version"], 3)


@check("an upsert in plain SQL raises IL011, versioned_upsert does not")
def _():
    blind = "INSERT INTO note (id, body) OVERRIDING SYSTEM VALUE VALUES (1, 'x') ON CONFLICT (id) DO UPDATE SET body = excluded.body"
    equal(refused(psycopg2.Error, rows, blind).diag.sqlstate, "IL011")
    fresh_notes()
    equal(rows("SELECT interlock.versioned_upsert($1, $2, $3, $4)", "note", 1, 1, Json({"body": "x"})), [(2,)])


page.pool.closeall()
connection = psycopg2.connect(user=OWNER, cursor_factory=psycopg2.extras.RealDictCursor)
connection.autocommit = True
call_all("psycopg2", rows_of(connection.cursor()), Json)
finish()
