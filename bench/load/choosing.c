/* Many clients add one to the value of rows, by each mechanism in turn, and what comes of it.
 *
 *     choosing CLIENTS SECONDS ROUNDS ROWS THINK
 *
 * ROWS and THINK (milliseconds) are lists, such as 1,10,100. Each pair of them is measured ROUNDS times, and each time all
 * mechanisms one after the other for so many seconds, every other time in the opposite order. The think time is between the
 * read and the write, or before the one statement of a mechanism that has no read.
 *
 * Prints a line for each sample: round, clients, rows, think, mechanism, seconds, operations done, tries, and the latency in
 * microseconds that 50, 95 and 99 % of the operations had at most. An operation lasts from its first try to its success. Those
 * that are not done at the end have the time until then: the latency is at least that. Fails if the values of the rows are not
 * the operations that succeeded. The connection is that of the environment, the tables are those of choosing.sql.
 */
#define _GNU_SOURCE
#include <libpq-fe.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "common.h"

enum { MAX_STATEMENTS = 6, MAX_LATENCIES = 200000 };

typedef struct Client Client;

/* One operation on a row: true if it succeeded, false if it was given up as time is over. Counts its tries. */
typedef bool Operation(Client *client, const char *row);

typedef struct {
    const char *name;
    Operation *run;
    const char *statements[MAX_STATEMENTS];
} Mechanism;

struct Client {
    pthread_t thread;
    PGconn *postgres;
    char holder[24];
    unsigned seed;
    long succeeded;       /* whenever */
    long done, tries;     /* in time */
    double *latencies;    /* of those in time, and of the one that was not done then */
    long latency_count;
};

static Client *clients;
static int client_count;
static int row_count, think, sample; /* of the present sample */
static int pause_for;                /* think, once the sample has begun */
static const Mechanism *mechanism;
static double until;
static pthread_barrier_t barrier;

static bool is_over(void) { return now() >= until; }

/* --- Statements -------------------------------------------------------------- */

static PGresult *check(Client *client, PGresult *result) {
    ExecStatusType status = PQresultStatus(result);
    if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK)
        fail(mechanism->name, PQerrorMessage(client->postgres));
    return result;
}

/* Runs the n-th statement of the mechanism. */
static PGresult *run(Client *client, int n, int count, const char *const *values) {
    char name[64];
    snprintf(name, sizeof name, "%s_%d", mechanism->name, n);
    return check(client, PQexecPrepared(client->postgres, name, count, values, NULL, NULL, 0));
}

/* The same; copies the columns of the first row to `found`. How many rows there were, or were changed. */
typedef char Column[64];
static int fetch(Client *client, int n, int count, const char *const *values, int columns, Column *found) {
    PGresult *result = run(client, n, count, values);
    int rows = PQresultStatus(result) == PGRES_TUPLES_OK ? PQntuples(result) : atoi(PQcmdTuples(result));
    for (int i = 0; i < columns && rows > 0; i++)
        snprintf(found[i], sizeof(Column), "%s", PQgetvalue(result, 0, i));
    PQclear(result);
    return rows;
}

static void command(Client *client, const char *text) { PQclear(check(client, PQexec(client->postgres, text))); }

/* --- Mechanisms -------------------------------------------------------------- */

static void wait_milliseconds(double milliseconds) {
    if (milliseconds > 0)
        usleep((useconds_t)(1000 * milliseconds));
}

static void think_over(void) { wait_milliseconds(pause_for); }

/* Before another try at what others hold: from half of the time that one holds it to one and a half. */
static void back_off(Client *client) { wait_milliseconds((pause_for > 0 ? pause_for : 1) * (0.5 + (double)rand_r(&client->seed) / RAND_MAX)); }

static void one_more(const char *value, Column sum) { snprintf(sum, sizeof(Column), "%d", atoi(value) + 1); }

static bool optimistic(Client *client, const char *row) {
    Column read[2], sum;
    for (; !is_over(); ) {
        client->tries++;
        fetch(client, 0, 1, &row, 2, read);
        think_over();
        one_more(read[0], sum);
        if (fetch(client, 1, 3, (const char *[]){row, sum, read[1]}, 0, NULL) == 1)
            return true;
    }
    return false;
}

static bool merge(Client *client, const char *row) {
    Column read[2], sum, outcome;
    for (; !is_over(); ) {
        client->tries++;
        fetch(client, 0, 1, &row, 2, read);
        think_over();
        one_more(read[0], sum);
        fetch(client, 1, 4, (const char *[]){row, read[1], sum, read[0]}, 1, &outcome);
        if (strcmp(outcome, "conflict") != 0)
            return true;
    }
    return false;
}

static bool one_statement(Client *client, const char *row) {
    client->tries++;
    think_over();
    fetch(client, 0, 1, &row, 0, NULL);
    return true;
}

static bool locked(Client *client, const char *row) {
    Column read, sum;
    client->tries++;
    command(client, "BEGIN");
    fetch(client, 0, 1, &row, 0, NULL);
    if (is_over()) {
        command(client, "ROLLBACK");
        return false;
    }
    fetch(client, 1, 1, &row, 1, &read);
    think_over();
    one_more(read, sum);
    fetch(client, 2, 2, (const char *[]){row, sum}, 0, NULL);
    command(client, "COMMIT");
    return true;
}

static bool leased(Client *client, const char *row) {
    Column token, read, sum, key;
    bool done = false;
    client->tries++;
    snprintf(key, sizeof key, "%d:%s", sample, row);
    fetch(client, 0, 1, (const char *[]){key}, 1, &token);
    if (!is_over()) {
        fetch(client, 1, 1, &row, 1, &read);
        think_over();
        one_more(read, sum);
        command(client, "BEGIN");
        fetch(client, 2, 2, (const char *[]){key, token}, 0, NULL);
        fetch(client, 3, 2, (const char *[]){row, sum}, 0, NULL);
        command(client, "COMMIT");
        done = true;
    }
    fetch(client, 4, 2, (const char *[]){key, token}, 0, NULL);
    return done;
}

static bool marked(Client *client, const char *row) {
    Column answer, read, sum;
    for (; !is_over(); back_off(client)) {
        client->tries++;
        fetch(client, 0, 2, (const char *[]){row, client->holder}, 1, &answer);
        if (answer[0] != 't')
            continue;
        fetch(client, 1, 1, &row, 1, &read);
        think_over();
        one_more(read, sum);
        fetch(client, 2, 3, (const char *[]){row, client->holder, sum}, 0, NULL);
        return true;
    }
    return false;
}

/* Which row is the server's choice. */
static bool claimed(Client *client, const char *row) {
    const char *holder = client->holder;
    Column read[2], sum;
    (void)row;
    for (; !is_over(); back_off(client)) {
        client->tries++;
        if (fetch(client, 0, 1, &holder, 2, read) == 0)
            continue;
        think_over();
        one_more(read[1], sum);
        fetch(client, 1, 3, (const char *[]){read[0], holder, sum}, 0, NULL);
        return true;
    }
    return false;
}

#define READ(table) "SELECT value FROM choosing." table " WHERE id = $1"
#define WRITE(table) "UPDATE choosing." table " SET value = $2::int WHERE id = $1"

static const Mechanism mechanisms[] = {
    {"optimistic",
     optimistic,
     {"SELECT value, version FROM choosing.optimistic WHERE id = $1",
      WRITE("optimistic") " AND version = $3"}},
    {"merge",
     merge,
     {"SELECT value, version FROM choosing.merge WHERE id = $1",
      "SELECT (interlock.try_versioned_update('choosing.merge', $1::int, $2::bigint, jsonb_build_object('value', $3::int), "
      "jsonb_build_object('value', $4::int), 'merge')).outcome"}},
    {"retry",
     one_statement,
     {"SELECT 1 / ((interlock.update_with_retry('choosing.retry', $1::int, 'choosing.add_one(jsonb, jsonb)', "
      "max_retries => 1000)).outcome = 'updated')::int"}},
    {"row_lock",
     locked,
     {"SELECT key FROM interlock.select_for_update('choosing.row_lock', ARRAY[$1::int])", READ("row_lock"), WRITE("row_lock")}},
    {"key_lock", locked, {"SELECT interlock.lock_key('row:' || $1)", READ("key_lock"), WRITE("key_lock")}},
    {"lease",
     leased,
     {"SELECT (interlock.acquire_lease($1, '1 min', wait => '1 min')).token", READ("lease"),
      "SELECT interlock.assert_lease($1, $2::bigint)", WRITE("lease"), "SELECT interlock.release_lease($1, $2::bigint)"}},
    {"marker",
     marked,
     {"SELECT (interlock.lock_row('choosing.marker', $1::int, $2)).locked", READ("marker"),
      "SELECT interlock.save_row('choosing.marker', $1::int, $2, jsonb_build_object('value', $3::int))"}},
    {"conditional", one_statement, {"UPDATE choosing.conditional SET value = value + 1 WHERE id = $1 AND value >= 0"}},
    {"claim",
     claimed,
     {"SELECT current->>'id', current->>'value' FROM interlock.claim_rows('choosing.claim', $1)",
      "SELECT interlock.save_row('choosing.claim', $1::int, $2, jsonb_build_object('value', $3::int))"}},
};
enum { MECHANISMS = sizeof mechanisms / sizeof mechanisms[0] };

/* --- Clients ----------------------------------------------------------------- */

static void connect_client(Client *client, int number) {
    client->seed = (unsigned)number + 1;
    client->latencies = malloc(sizeof(double) * MAX_LATENCIES);
    snprintf(client->holder, sizeof client->holder, "client %d", number);
    client->postgres = PQconnectdb("");
    if (PQstatus(client->postgres) != CONNECTION_OK)
        fail("connect", PQerrorMessage(client->postgres));
    for (int i = 0; i < MECHANISMS; i++)
        for (int n = 0; n < MAX_STATEMENTS && mechanisms[i].statements[n] != NULL; n++) {
            char name[64];
            mechanism = &mechanisms[i];
            snprintf(name, sizeof name, "%s_%d", mechanism->name, n);
            PQclear(check(client, PQprepare(client->postgres, name, mechanism->statements[n], 0, NULL)));
        }
}

static bool operate(Client *client) {
    char row[16];
    snprintf(row, sizeof row, "%d", rand_r(&client->seed) % row_count + 1);
    bool done = mechanism->run(client, row);
    client->succeeded += done;
    return done;
}

/* The first operation does not count: it makes the plans. */
static void *work(void *argument) {
    Client *client = argument;
    client->succeeded = 0;
    operate(client);
    pthread_barrier_wait(&barrier); /* the sample is set between the two */
    pthread_barrier_wait(&barrier);
    client->done = client->tries = client->latency_count = 0;
    while (!is_over()) {
        double start = now();
        long tries = client->tries;
        bool in_time = operate(client) && !is_over();
        double end = in_time ? now() : until;
        if (client->latency_count < MAX_LATENCIES)
            client->latencies[client->latency_count++] = end - start;
        client->done += in_time;
        if (!in_time && client->tries == tries + 1)
            client->tries--; /* what the end cut off was no conflict */
    }
    return NULL;
}

/* --- Samples ----------------------------------------------------------------- */

static int order_of_times(const void *left, const void *right) {
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static double *all_latencies(long *count) {
    *count = 0;
    for (int i = 0; i < client_count; i++)
        *count += clients[i].latency_count;
    double *all = malloc(sizeof(double) * (size_t)(*count + 1));
    long next = 0;
    for (int i = 0; i < client_count; i++) {
        memcpy(all + next, clients[i].latencies, sizeof(double) * (size_t)clients[i].latency_count);
        next += clients[i].latency_count;
    }
    qsort(all, (size_t)*count, sizeof(double), order_of_times);
    return all;
}

static double part_of(const double *sorted, long count, double part) { return 1e6 * sorted[(long)(part * (double)(count - 1))]; }

static void check_sum(void) {
    char query[128];
    long succeeded = 0;
    for (int i = 0; i < client_count; i++)
        succeeded += clients[i].succeeded;
    snprintf(query, sizeof query, "SELECT sum(value) FROM choosing.%s", mechanism->name);
    PGresult *result = check(&clients[0], PQexec(clients[0].postgres, query));
    long sum = atol(PQgetvalue(result, 0, 0));
    PQclear(result);
    if (sum != succeeded) {
        fprintf(stderr, "%s: %ld operations succeeded, and the rows have %ld\n", mechanism->name, succeeded, sum);
        exit(1);
    }
}

static void fill_table(void) {
    char text[256];
    snprintf(text, sizeof text,
             "TRUNCATE choosing.%1$s; INSERT INTO choosing.%1$s (id) SELECT generate_series(1, %2$d); ANALYZE choosing.%1$s",
             mechanism->name, row_count);
    command(&clients[0], text);
}

static void take_sample(int round, double seconds) {
    sample++;
    fill_table();
    until = now() + 3600;
    pause_for = 0;
    for (int i = 0; i < client_count; i++)
        if (pthread_create(&clients[i].thread, NULL, work, &clients[i]) != 0)
            fail("start", "a thread");
    pthread_barrier_wait(&barrier);
    pause_for = think;
    until = now() + seconds;
    pthread_barrier_wait(&barrier);
    long done = 0, tries = 0, count;
    for (int i = 0; i < client_count; i++) {
        pthread_join(clients[i].thread, NULL);
        done += clients[i].done;
        tries += clients[i].tries;
    }
    check_sum();
    double *latencies = all_latencies(&count);
    printf("%d\t%d\t%d\t%d\t%s\t%g\t%ld\t%ld\t%.0f\t%.0f\t%.0f\n", round, client_count, row_count, think, mechanism->name, seconds, done, tries,
           part_of(latencies, count, 0.5), part_of(latencies, count, 0.95), part_of(latencies, count, 0.99));
    fflush(stdout);
    free(latencies);
}

/* The next number of a list; 0 at its end. */
static bool next_of(const char **list, int *value) {
    if (**list == '\0')
        return false;
    char *end;
    *value = (int)strtol(*list, &end, 10);
    *list = end + (*end == ',');
    return true;
}

int main(int count, char **arguments) {
    if (count != 6)
        fail("start", "see the head of choosing.c");
    client_count = atoi(arguments[1]);
    clients = calloc((size_t)client_count, sizeof(Client));
    pthread_barrier_init(&barrier, NULL, (unsigned)client_count + 1);
    for (int i = 0; i < client_count; i++)
        connect_client(&clients[i], i);
    for (int round = 1; round <= atoi(arguments[3]); round++)
        for (const char *rows = arguments[4]; next_of(&rows, &row_count);)
            for (const char *thinks = arguments[5]; next_of(&thinks, &think);)
                for (int i = 0; i < MECHANISMS; i++) {
                    mechanism = &mechanisms[round % 2 ? i : MECHANISMS - 1 - i];
                    take_sample(round, atof(arguments[2]));
                }
    return 0;
}
