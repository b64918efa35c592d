/* Many clients sell one piece at a time of the same items, by each mechanism in turn, and what comes of it.
 *
 *     hot_rows CLIENTS SECONDS ROUNDS ROWS MECHANISM...
 *
 * A mechanism is one of those below; one of Redis has its socket behind it: redis=/path/to/socket. Each round has a sample of each
 * of so many seconds, every other round in the opposite order. All clients sell the items 1 to ROWS, at random.
 *
 * Prints a line for each sample: round, clients, rows, mechanism, seconds, pieces sold in time, the latency in microseconds that
 * 50, 95 and 99 % of the sales had at most, and the bytes of WAL of a sale, those of folds and vacuum among them. A sale that is
 * under way at the end counts with its time so far. Fails if the pieces that were sold and those that are left are not what was
 * stocked. The connection is that of the environment, the tables are those of hot_rows.sql.
 */
#define _GNU_SOURCE
#include <hiredis/hiredis.h>
#include <libpq-fe.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include "common.h"

enum { MAX_STATEMENTS = 2, MAX_LATENCIES = 400000, MAX_SIDES = 8, KEYS = 1000 };

typedef struct {
    const char *name;
    bool in_transaction; /* of several statements */
    const char *statements[MAX_STATEMENTS];
    const char *left; /* what is left, of all items */
} Mechanism;

#define TAKE(table) "UPDATE hot." table " SET stock = stock - 1 WHERE id = $1 AND stock >= 1"
#define LEFT(table) "SELECT sum(stock) FROM hot." table

/* Redis has no statements. */
static const Mechanism mechanisms[] = {
    {"adjust", false, {"SELECT interlock.adjust('hot.adjust', $1::int, 'stock', -1)"}, "SELECT sum(interlock.escrow_value('hot.adjust', id, 'stock')) FROM hot.adjust"},
    {"conditional", false, {TAKE("conditional")}, LEFT("conditional")},
    {"row_lock", true, {"SELECT stock FROM hot.row_lock WHERE id = $1 FOR UPDATE", TAKE("row_lock")}, LEFT("row_lock")},
    {"key_lock", true, {"SELECT interlock.lock_key('item:' || $1)", TAKE("key_lock")}, LEFT("key_lock")},
    {"retry",
     false,
     {"SELECT 1 / ((interlock.update_with_retry('hot.retry', $1::int, 'hot.take_one(jsonb, jsonb)', "
      "max_retries => 1000)).outcome = 'updated')::int"},
     LEFT("retry")},
    {"line", false, {"INSERT INTO hot.line VALUES ($1, -1)"}, "SELECT coalesce(sum(amount), 0) FROM hot.line"},
    {"redis", false, {NULL}, NULL},
    {"redis_always", false, {NULL}, NULL},
};
enum { MECHANISMS = sizeof mechanisms / sizeof mechanisms[0] };

typedef struct {
    const Mechanism *mechanism;
    const char *socket; /* NULL: PostgreSQL */
} Side;

typedef struct {
    pthread_t thread;
    PGconn *postgres;
    redisContext *redis[MAX_SIDES];
    unsigned seed;
    long sold, in_time;
    float *latencies; /* of the sample */
    long latency_count;
} Client;

static Client *clients;
static int client_count, row_count, side_count, side_now;
static Side sides[MAX_SIDES];
static const Mechanism *mechanism;
static double until;
static pthread_barrier_t barrier;

/* --- One sale ---------------------------------------------------------------- */

static PGresult *check(Client *client, PGresult *result) {
    ExecStatusType status = PQresultStatus(result);
    if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK)
        fail(mechanism->name, PQerrorMessage(client->postgres));
    return result;
}

static void command(Client *client, const char *text) { PQclear(check(client, PQexec(client->postgres, text))); }

static void run(Client *client, int n, const char *row) {
    char name[64];
    snprintf(name, sizeof name, "%s_%d", mechanism->name, n);
    PGresult *result = check(client, PQexecPrepared(client->postgres, name, 1, &row, NULL, NULL, 0));
    if (PQresultStatus(result) == PGRES_COMMAND_OK && strcmp(PQcmdTuples(result), "1") != 0)
        fail(mechanism->name, "nothing is left");
    PQclear(result);
}

static long long redis_number(redisContext *redis, const char *command, int row) {
    redisReply *reply = redisCommand(redis, "%s item:%d", command, row);
    if (reply == NULL || reply->type == REDIS_REPLY_ERROR)
        fail(command, reply == NULL ? redis->errstr : reply->str);
    long long number = reply->type == REDIS_REPLY_STRING ? atoll(reply->str) : reply->integer;
    freeReplyObject(reply);
    return number;
}

static void sell(Client *client) {
    int number = rand_r(&client->seed) % row_count + 1;
    char row[16];
    snprintf(row, sizeof row, "%d", number);
    if (sides[side_now].socket != NULL) {
        if (redis_number(client->redis[side_now], "DECR", number) < 0)
            fail(mechanism->name, "nothing is left");
    } else {
        if (mechanism->in_transaction)
            command(client, "BEGIN");
        for (int n = 0; n < MAX_STATEMENTS && mechanism->statements[n] != NULL; n++)
            run(client, n, row);
        if (mechanism->in_transaction)
            command(client, "COMMIT");
    }
    client->sold++;
}

/* --- Clients ----------------------------------------------------------------- */

static void connect_client(Client *client, int number) {
    client->seed = (unsigned)number + 1;
    client->latencies = malloc(sizeof(float) * MAX_LATENCIES);
    client->postgres = PQconnectdb("");
    if (PQstatus(client->postgres) != CONNECTION_OK)
        fail("connect", PQerrorMessage(client->postgres));
    for (int side = 0; side < side_count; side++) {
        mechanism = sides[side].mechanism;
        if (sides[side].socket != NULL) {
            client->redis[side] = redisConnectUnix(sides[side].socket);
            if (client->redis[side] == NULL || client->redis[side]->err)
                fail("connect to", sides[side].socket);
        }
        for (int n = 0; n < MAX_STATEMENTS && mechanism->statements[n] != NULL; n++) {
            char name[64];
            snprintf(name, sizeof name, "%s_%d", mechanism->name, n);
            PQclear(check(client, PQprepare(client->postgres, name, mechanism->statements[n], 0, NULL)));
        }
    }
}

/* The first sale does not count in time: it makes the plans. */
static void *work(void *argument) {
    Client *client = argument;
    client->sold = client->in_time = client->latency_count = 0;
    sell(client);
    pthread_barrier_wait(&barrier); /* the sample begins between the two */
    pthread_barrier_wait(&barrier);
    for (double start = now(); start < until; start = now()) {
        sell(client);
        double end = now();
        client->in_time += end < until;
        if (client->latency_count < MAX_LATENCIES)
            client->latencies[client->latency_count++] = (float)((end < until ? end : until) - start);
    }
    return NULL;
}

/* --- Samples ----------------------------------------------------------------- */

static int order_of_times(const void *left, const void *right) {
    float a = *(const float *)left, b = *(const float *)right;
    return (a > b) - (a < b);
}

static float *all_latencies(long *count) {
    *count = 0;
    for (int i = 0; i < client_count; i++)
        *count += clients[i].latency_count;
    float *all = malloc(sizeof(float) * (size_t)(*count + 1));
    long next = 0;
    for (int i = 0; i < client_count; i++) {
        memcpy(all + next, clients[i].latencies, sizeof(float) * (size_t)clients[i].latency_count);
        next += clients[i].latency_count;
    }
    qsort(all, (size_t)*count, sizeof(float), order_of_times);
    return all;
}

static double part_of(const float *sorted, long count, double part) { return count == 0 ? 0 : 1e6 * sorted[(long)(part * (double)(count - 1))]; }

static long long number_of(const char *query) {
    PGresult *result = check(&clients[0], PQexec(clients[0].postgres, query));
    long long number = atoll(PQgetvalue(result, 0, 0));
    PQclear(result);
    return number;
}

static long long left(void) {
    if (sides[side_now].socket == NULL)
        return number_of(mechanism->left);
    long long sum = 0;
    for (int row = 1; row <= KEYS; row++)
        sum += redis_number(clients[0].redis[side_now], "GET", row);
    return sum;
}

/* Nothing of earlier samples, and no image of a page after a checkpoint that others have paid for. */
static void tidy(void) {
    char text[128];
    if (sides[side_now].socket != NULL) {
        for (int row = 1; row <= KEYS; row++)
            freeReplyObject(redisCommand(clients[0].redis[side_now], "SET item:%d 1000000000", row));
        return;
    }
    if (strcmp(mechanism->name, "line") == 0)
        command(&clients[0], "TRUNCATE hot.line");
    if (strcmp(mechanism->name, "adjust") == 0) {
        command(&clients[0], "SELECT interlock.fold_escrow('hot.adjust')");
        command(&clients[0], "VACUUM interlock_internal.escrow_part");
    }
    snprintf(text, sizeof text, "VACUUM hot.%s", mechanism->name);
    command(&clients[0], text);
}

static void take_sample(int round, double seconds) {
    long long wal = 0;
    long sold = 0, in_time = 0, first = client_count, count;
    tidy();
    long long stocked = left();
    for (int i = 0; i < client_count; i++)
        if (pthread_create(&clients[i].thread, NULL, work, &clients[i]) != 0)
            fail("start", "a thread");
    pthread_barrier_wait(&barrier);
    wal = number_of("SELECT pg_current_wal_insert_lsn() - '0/0'");
    until = now() + seconds;
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < client_count; i++) {
        pthread_join(clients[i].thread, NULL);
        sold += clients[i].sold;
        in_time += clients[i].in_time;
    }
    wal = number_of("SELECT pg_current_wal_insert_lsn() - '0/0'") - wal;
    long long rest = left();
    if (sold + rest != stocked) {
        fprintf(stderr, "%s: %lld were stocked, %ld sold, and %lld are left\n", mechanism->name, stocked, sold, rest);
        exit(1);
    }
    float *latencies = all_latencies(&count);
    printf("%d\t%d\t%d\t%s\t%g\t%ld\t%.0f\t%.0f\t%.0f\t%.0f\n", round, client_count, row_count, mechanism->name, seconds, in_time,
           part_of(latencies, count, 0.5), part_of(latencies, count, 0.95), part_of(latencies, count, 0.99),
           sides[side_now].socket != NULL || sold == first ? 0 : (double)wal / (double)(sold - first));
    fflush(stdout);
    free(latencies);
}

static Side side_of(char *argument) {
    char *socket = strchr(argument, '=');
    if (socket != NULL)
        *socket++ = '\0';
    for (int i = 0; i < MECHANISMS; i++)
        if (strcmp(argument, mechanisms[i].name) == 0 && (socket == NULL) == (mechanisms[i].left != NULL))
            return (Side){&mechanisms[i], socket};
    fail("measure", argument);
    return (Side){0};
}

int main(int count, char **arguments) {
    if (count < 6 || count > 5 + MAX_SIDES)
        fail("start", "see the head of hot_rows.c");
    client_count = atoi(arguments[1]);
    row_count = atoi(arguments[4]);
    side_count = count - 5;
    for (int i = 0; i < side_count; i++)
        sides[i] = side_of(arguments[5 + i]);
    clients = calloc((size_t)client_count, sizeof(Client));
    pthread_barrier_init(&barrier, NULL, (unsigned)client_count + 1);
    for (int i = 0; i < client_count; i++)
        connect_client(&clients[i], i);
    for (int round = 1; round <= atoi(arguments[3]); round++)
        for (int i = 0; i < side_count; i++) {
            side_now = round % 2 ? i : side_count - 1 - i;
            mechanism = sides[side_now].mechanism;
            take_sample(round, atof(arguments[2]));
        }
    return 0;
}
