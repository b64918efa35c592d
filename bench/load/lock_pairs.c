/* Takes locks and gives them back, as fast as they come: each client waits for every answer. Prints pairs a second of each
 * side, a line for each, as if all clients had worked on it alone all the time.
 *
 *     lock_pairs CLIENTS SECONDS SIDE...
 *
 *     redis=SOCKET       SET NX EX with a random value, and a script that deletes the key if it still has that value
 *     lease=CONNINFO     interlock.acquire_lease and interlock.release_lease, prepared
 *     call=CONNINFO      the same by the protocol's message for function calls, without a statement
 *     empty=CONNINFO     empty_acquire and empty_release, which do nothing, prepared
 *
 * Several sides take turns, all clients at once. Several clients are spread over the cores, with their sessions.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <endian.h>
#include <hiredis/hiredis.h>
#include <libpq-fe.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <string.h>

#include "common.h"

enum { MAX_SIDES = 8, KEYS = 100000 };

static const double TURN = 0.1; /* seconds */

typedef struct Connection Connection;

typedef struct {
    const char *name;
    void (*connect)(Connection *connection, const char *server);
    void (*lock)(Connection *connection, const char *key, unsigned *seed);
} Kind;

typedef struct {
    const Kind *kind;
    const char *server;
} Side;

struct Connection {
    PGconn *postgres;
    int acquire, release; /* the functions to call, and how many arguments they have */
    int acquire_arguments, release_arguments;
    redisContext *redis;
    char sha[64];
};

typedef struct {
    int number;
    unsigned seed;
    long pairs[MAX_SIDES];
    double time[MAX_SIDES];
} Client;

static Side sides[MAX_SIDES];
static int side_count, client_count;
static double seconds, began;
static pthread_barrier_t all_are_connected;
static cpu_set_t all_cores;

static void die(const char *what) {
    fprintf(stderr, "%s\n", what);
    exit(1);
}

/* --- PostgreSQL ------------------------------------------------------------- */

static PGresult *checked(Connection *connection, PGresult *result) {
    ExecStatusType status = PQresultStatus(result);
    if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK)
        die(PQerrorMessage(connection->postgres));
    return result;
}

static void connect_postgres(Connection *connection, const char *server) {
    connection->postgres = PQconnectdb(server);
    if (PQstatus(connection->postgres) != CONNECTION_OK)
        die(PQerrorMessage(connection->postgres));
}

static void connect_prepared(Connection *connection, const char *server, const char *acquire, const char *release) {
    connect_postgres(connection, server);
    PQclear(checked(connection, PQprepare(connection->postgres, "acquire", acquire, 0, NULL)));
    PQclear(checked(connection, PQprepare(connection->postgres, "release", release, 0, NULL)));
}

static void connect_lease(Connection *connection, const char *server) {
    connect_prepared(connection, server, "SELECT (interlock.acquire_lease($1, '30 s')).token", "SELECT interlock.release_lease($1, $2)");
}

static void connect_empty(Connection *connection, const char *server) {
    connect_prepared(connection, server, "SELECT 1234567890123 AS token, empty_acquire($1, '30 s')", "SELECT empty_release($1, $2)");
}

static void lock_prepared(Connection *connection, const char *key, unsigned *seed) {
    const char *values[2] = {key};
    PGresult *lock = checked(connection, PQexecPrepared(connection->postgres, "acquire", 1, values, NULL, NULL, 0));
    (void)seed;
    if (!PQgetisnull(lock, 0, 0)) {
        values[1] = PQgetvalue(lock, 0, 0);
        PQclear(checked(connection, PQexecPrepared(connection->postgres, "release", 2, values, NULL, NULL, 0)));
    }
    PQclear(lock);
}

/* --- PostgreSQL, function calls ---------------------------------------------- */

static void connect_call(Connection *connection, const char *server) {
    connect_postgres(connection, server);
    PGresult *functions = checked(connection, PQexec(connection->postgres,
        "SELECT oid, pronargs FROM pg_proc WHERE pronamespace = 'interlock'::regnamespace "
        "AND proname IN ('acquire_lease', 'release_lease') ORDER BY proname"));
    connection->acquire = atoi(PQgetvalue(functions, 0, 0));
    connection->acquire_arguments = atoi(PQgetvalue(functions, 0, 1));
    connection->release = atoi(PQgetvalue(functions, 1, 0));
    connection->release_arguments = atoi(PQgetvalue(functions, 1, 1));
    PQclear(functions);
}

static PQArgBlock text(const char *value) { return (PQArgBlock){.len = (int)strlen(value), .u.ptr = (int *)value}; }

/* Values are in the types' binary formats, and all parameters are given. */
static void call(Connection *connection, int function, PQArgBlock *arguments, int count, char *result) {
    int length;
    PQclear(checked(connection, PQfn(connection->postgres, function, (int *)result, &length, 0, arguments, count)));
}

/* The value of a field of a row: that has a count, and before each value its type and its length, -1 for null. */
static const char *field(const char *row, int number) {
    const char *at = row + 4;
    uint32_t length;
    for (;; at += (int)ntohl(length) > 0 ? ntohl(length) : 0) {
        memcpy(&length, at + 4, sizeof length);
        at += 8;
        if (number-- == 0)
            return ntohl(length) == UINT32_MAX ? NULL : at;
    }
}

static void lock_by_call(Connection *connection, const char *key, unsigned *seed) {
    uint64_t ttl[2] = {htobe64(30 * 1000 * 1000)}, wait[2] = {0}; /* microseconds, and days and months */
    PQArgBlock null = {.len = -1};
    PQArgBlock acquire[] = {text(key), {.len = sizeof ttl, .u.ptr = (int *)ttl}, {.len = sizeof wait, .u.ptr = (int *)wait},
        null, text("exclusive"), text("ttl"), {.len = 1, .u.ptr = (int *)""}, null, {.len = 1, .u.ptr = (int *)""}};
    char lease[256], released[8];
    (void)seed;
    call(connection, connection->acquire, acquire, connection->acquire_arguments, lease);
    const char *token = field(lease, 1);
    PQArgBlock release[] = {text(key), {.len = 8, .u.ptr = (int *)token}, null};
    if (token != NULL)
        call(connection, connection->release, release, connection->release_arguments, released);
}

/* --- Redis ------------------------------------------------------------------ */

static redisReply *replied(redisReply *reply) {
    if (reply == NULL || reply->type == REDIS_REPLY_ERROR)
        die(reply == NULL ? "Redis has gone" : reply->str);
    return reply;
}

static void connect_redis(Connection *connection, const char *server) {
    connection->redis = redisConnectUnix(server);
    if (connection->redis == NULL || connection->redis->err)
        die("cannot connect to Redis");
    redisReply *loaded = replied(redisCommand(connection->redis, "SCRIPT LOAD %s",
        "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end"));
    snprintf(connection->sha, sizeof connection->sha, "%s", loaded->str);
    freeReplyObject(loaded);
}

static void lock_in_redis(Connection *connection, const char *key, unsigned *seed) {
    char value[32];
    snprintf(value, sizeof value, "%08x%08x", rand_r(seed), rand_r(seed));
    redisReply *set = replied(redisCommand(connection->redis, "SET %s %s NX EX 30", key, value));
    if (set->type == REDIS_REPLY_STATUS)
        freeReplyObject(replied(redisCommand(connection->redis, "EVALSHA %s 1 %s %s", connection->sha, key, value)));
    freeReplyObject(set);
}

/* --- Clients ---------------------------------------------------------------- */

static const Kind kinds[] = {
    {"redis", connect_redis, lock_in_redis},
    {"lease", connect_lease, lock_prepared},
    {"call", connect_call, lock_by_call},
    {"empty", connect_empty, lock_prepared},
};

/* The n-th of those that we may use. */
static cpu_set_t one_core(int n) {
    cpu_set_t one;
    int core = 0;
    CPU_ZERO(&one);
    while (!CPU_ISSET(core, &all_cores) || n-- > 0)
        core++;
    CPU_SET(core, &one);
    return one;
}

/* A client and its session share a core, or where the scheduler puts them would be measured. Redis, which all clients share, is
 * left to the scheduler with them. */
static void settle(const Client *client, const Connection *connection) {
    cpu_set_t core;
    if (client_count == 1)
        return;
    if (connection->postgres == NULL) {
        sched_setaffinity(0, sizeof all_cores, &all_cores);
        return;
    }
    core = one_core(client->number * CPU_COUNT(&all_cores) / client_count);
    sched_setaffinity(0, sizeof core, &core);
    sched_setaffinity(PQbackendPID(connection->postgres), sizeof core, &core);
}

/* The same for all clients. Every other cycle goes backwards, so that nobody always follows the same side. */
static int side_in_turn(double time) {
    int turn = (int)((time - began) / TURN), place = turn % side_count;
    return turn / side_count % 2 == 0 ? place : side_count - 1 - place;
}

static void *run(void *argument) {
    Client *client = argument;
    Connection connections[MAX_SIDES] = {0};
    for (int i = 0; i < side_count; i++)
        sides[i].kind->connect(&connections[i], sides[i].server);
    if (pthread_barrier_wait(&all_are_connected) == PTHREAD_BARRIER_SERIAL_THREAD)
        began = now();
    pthread_barrier_wait(&all_are_connected);
    int last = -1;
    for (double start = now(), stop; start < began + seconds; start = stop) {
        int side = side_in_turn(start);
        char key[32];
        if (side != last)
            settle(client, &connections[side]);
        last = side;
        snprintf(key, sizeof key, "job:%d", rand_r(&client->seed) % KEYS);
        sides[side].kind->lock(&connections[side], key, &client->seed);
        stop = now();
        client->pairs[side]++;
        client->time[side] += stop - start;
    }
    return NULL;
}

static Side read_side(const char *argument) {
    const char *server = strchr(argument, '=');
    for (size_t i = 0; server != NULL && i < sizeof kinds / sizeof *kinds; i++)
        if (strlen(kinds[i].name) == (size_t)(server - argument) && strncmp(argument, kinds[i].name, server - argument) == 0)
            return (Side){&kinds[i], server + 1};
    die("a side is redis=SOCKET, or lease, call or empty=CONNINFO");
    return (Side){0};
}

int main(int argc, char **argv) {
    if (argc < 4 || argc - 3 > MAX_SIDES)
        die("usage: lock_pairs CLIENTS SECONDS SIDE...");
    client_count = atoi(argv[1]);
    seconds = atof(argv[2]);
    for (int i = 3; i < argc; i++)
        sides[side_count++] = read_side(argv[i]);
    pthread_t threads[client_count];
    Client *clients = calloc(client_count, sizeof *clients);
    sched_getaffinity(0, sizeof all_cores, &all_cores);
    pthread_barrier_init(&all_are_connected, NULL, client_count);
    for (int i = 0; i < client_count; i++) {
        clients[i].number = i;
        clients[i].seed = 4711 + i;
        pthread_create(&threads[i], NULL, run, &clients[i]);
    }
    for (int i = 0; i < client_count; i++)
        pthread_join(threads[i], NULL);
    for (int side = 0; side < side_count; side++) {
        double rate = 0;
        for (int i = 0; i < client_count; i++)
            rate += clients[i].time[side] > 0 ? clients[i].pairs[side] / clients[i].time[side] : 0;
        printf("%.0f\n", rate);
    }
    return 0;
}
