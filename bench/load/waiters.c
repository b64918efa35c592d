/* Thousands of sessions that wait for leases, a row and a key, in one process.
 *
 *     waiters COUNT
 *
 * Of ten waiters four wait for one lease, four for a lease each, one for a row and one for a key. All are held by one more session.
 * Prints a line as soon as all are connected and have asked. For each line of its input the holder releases the next kind: then it
 * prints the kind, its waiters, and the seconds until the last of them had it. A waiter releases at once what it was granted. The
 * connection is that of the environment, the table is waits.place of waiters.sh.
 */
#define _GNU_SOURCE
#include <libpq-fe.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>

#include "common.h"

enum { LEASE, LEASES, ROW, KEY, KINDS };

typedef struct {
    const char *name, *hold, *wait, *release; /* the number of a waiter is %d */
} Kind;

#define WAIT "SELECT interlock.release_lease(l.key, l.token) FROM (SELECT k AS key, (interlock.acquire_lease(k, '50 min', wait => '50 min')).token FROM (VALUES "
static const Kind kinds[KINDS] = {
    [LEASE] = {"one lease", "SELECT interlock.acquire_lease('wait/one', '50 min')", WAIT "('wait/one')) k (k)) l",
               "SELECT interlock.release_lease(key, token) FROM interlock.leases WHERE key = 'wait/one'"},
    [LEASES] = {"a lease each", "SELECT count(*) FROM generate_series(1, %d) n, interlock.acquire_lease('each:' || n, '50 min')", WAIT "('each:%d')) k (k)) l",
                "SELECT count(interlock.release_lease(key, token)) FROM interlock.leases WHERE key ^@ 'each:'"},
    [ROW] = {"one row", "UPDATE waits.place SET n = n WHERE id = 1", "UPDATE waits.place SET n = n + 1 WHERE id = 1", "COMMIT"},
    [KEY] = {"one key", "SELECT interlock.lock_key('wait')", "SELECT interlock.lock_key('wait')", "COMMIT"},
};

typedef struct {
    PGconn *connection;
    int kind;
    bool asked;
} Waiter;

static Waiter *waiters;
static struct pollfd *polls;
static PGconn *holders[KINDS];
static int count, left[KINDS], total[KINDS];

static int kind_of(int i) { return i % 10 < 4 ? LEASE : i % 10 < 8 ? LEASES : i % 10 == 8 ? ROW : KEY; }

static void run(PGconn *connection, const char *text, int number) {
    char statement[512];
    snprintf(statement, sizeof statement, text, number);
    PGresult *result = PQexec(connection, statement);
    if (PQresultStatus(result) != PGRES_TUPLES_OK && PQresultStatus(result) != PGRES_COMMAND_OK)
        fail(statement, PQerrorMessage(connection));
    PQclear(result);
}

static void hold(int kind) {
    holders[kind] = PQconnectdb("application_name=holder");
    if (PQstatus(holders[kind]) != CONNECTION_OK)
        fail("connect", PQerrorMessage(holders[kind]));
    if (kind == ROW || kind == KEY)
        run(holders[kind], "BEGIN", 0);
    run(holders[kind], kinds[kind].hold, count);
}

/* --- Waiters ----------------------------------------------------------------- */

static void start(int i) {
    Waiter *waiter = &waiters[i];
    *waiter = (Waiter){PQconnectStart("application_name=waiter"), kind_of(i), false};
    if (waiter->connection == NULL || PQstatus(waiter->connection) == CONNECTION_BAD)
        fail("connect", PQerrorMessage(waiter->connection));
    polls[i] = (struct pollfd){PQsocket(waiter->connection), POLLOUT, 0};
    total[waiter->kind]++;
    left[waiter->kind]++;
}

/* True when it has asked. */
static bool connect_further(int i) {
    Waiter *waiter = &waiters[i];
    PostgresPollingStatusType status = PQconnectPoll(waiter->connection);
    if (status == PGRES_POLLING_FAILED)
        fail("connect", PQerrorMessage(waiter->connection));
    polls[i].fd = PQsocket(waiter->connection);
    polls[i].events = status == PGRES_POLLING_WRITING ? POLLOUT : POLLIN;
    if (status != PGRES_POLLING_OK)
        return false;
    char statement[512];
    snprintf(statement, sizeof statement, kinds[waiter->kind].wait, i);
    if (!PQsendQuery(waiter->connection, statement))
        fail("ask", PQerrorMessage(waiter->connection));
    return waiter->asked = true;
}

static void take_answer(int i) {
    Waiter *waiter = &waiters[i];
    if (!PQconsumeInput(waiter->connection))
        fail("wait", PQerrorMessage(waiter->connection));
    while (!PQisBusy(waiter->connection)) {
        PGresult *result = PQgetResult(waiter->connection);
        if (result == NULL) {
            left[waiter->kind]--;
            polls[i].fd = -1;
            return;
        }
        if (PQresultStatus(result) != PGRES_TUPLES_OK && PQresultStatus(result) != PGRES_COMMAND_OK)
            fail("wait", PQresultErrorMessage(result));
        PQclear(result);
    }
}

/* The number of those that have asked by it. */
static int serve(int from, int to) {
    int asked = 0;
    if (poll(polls + from, (nfds_t)(to - from), 60000) <= 0)
        fail("wait", "nothing happens");
    for (int i = from; i < to; i++)
        if (polls[i].revents != 0 && waiters[i].asked)
            take_answer(i);
        else if (polls[i].revents != 0 && connect_further(i))
            asked++;
    return asked;
}

static void release(int kind) {
    double began = now();
    run(holders[kind], kinds[kind].release, count);
    while (left[kind] > 0)
        serve(0, count);
    printf("%s\t%d\t%.3f\n", kinds[kind].name, total[kind], now() - began);
    fflush(stdout);
}

int main(int argument_count, char **arguments) {
    if (argument_count != 2 || (count = atoi(arguments[1])) < 10)
        fail("start", "waiters COUNT, from 10 on");
    waiters = calloc((size_t)count, sizeof(Waiter));
    polls = calloc((size_t)count, sizeof(struct pollfd));
    for (int kind = 0; kind < KINDS; kind++)
        hold(kind);
    for (int from = 0; from < count; from += 50) { /* fewer than the server's socket keeps waiting */
        int to = from + 50 < count ? from + 50 : count;
        for (int i = from; i < to; i++)
            start(i);
        for (int asked = 0; asked < to - from;)
            asked += serve(from, to);
    }
    printf("waiting\n");
    fflush(stdout);
    char line[16];
    for (int kind = 0; kind < KINDS && fgets(line, sizeof line, stdin) != NULL; kind++)
        release(kind);
    return 0;
}
