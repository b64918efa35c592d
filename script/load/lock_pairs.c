/* Takes locks and gives them back, as fast as they come: each client waits for every answer. Prints pairs a second of each
 * side, a line for each, as if all clients had worked on it alone all the time.
 *
 *     lock_pairs CLIENTS SECONDS SIDE...
 *
 *     redis=SOCKET       SET NX EX with a random value, and a script that deletes the key if it still has that value
 *     lease=CONNINFO     interlock.acquire_lease and interlock.release_lease, prepared
 *     empty=CONNINFO     empty_acquire and empty_release, which do nothing
 *
 * A client with several sides draws one for every fifty pairs.
 */
#include <hiredis/hiredis.h>
#include <libpq-fe.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MAX_SIDES = 8, BATCH = 50, KEYS = 100000 };

typedef struct {
    const char *server;
    const char *acquire; /* NULL: Redis */
    const char *release;
} Side;

typedef struct {
    PGconn *postgres;
    redisContext *redis;
    char sha[64];
} Connection;

typedef struct {
    unsigned seed;
    long pairs[MAX_SIDES];
    double time[MAX_SIDES];
} Client;

static Side sides[MAX_SIDES];
static int side_count;
static double seconds;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

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

static void connect_postgres(Connection *connection, const Side *side) {
    connection->postgres = PQconnectdb(side->server);
    if (PQstatus(connection->postgres) != CONNECTION_OK)
        die(PQerrorMessage(connection->postgres));
    PQclear(checked(connection, PQprepare(connection->postgres, "acquire", side->acquire, 0, NULL)));
    PQclear(checked(connection, PQprepare(connection->postgres, "release", side->release, 0, NULL)));
}

static void lock_in_postgres(Connection *connection, const char *key) {
    const char *values[2] = {key};
    PGresult *lock = checked(connection, PQexecPrepared(connection->postgres, "acquire", 1, values, NULL, NULL, 0));
    if (!PQgetisnull(lock, 0, 0)) {
        values[1] = PQgetvalue(lock, 0, 0);
        PQclear(checked(connection, PQexecPrepared(connection->postgres, "release", 2, values, NULL, NULL, 0)));
    }
    PQclear(lock);
}

/* --- Redis ------------------------------------------------------------------ */

static redisReply *replied(redisReply *reply) {
    if (reply == NULL || reply->type == REDIS_REPLY_ERROR)
        die(reply == NULL ? "Redis has gone" : reply->str);
    return reply;
}

static void connect_redis(Connection *connection, const Side *side) {
    connection->redis = redisConnectUnix(side->server);
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

static void *run(void *argument) {
    Client *client = argument;
    Connection connections[MAX_SIDES] = {0};
    for (int i = 0; i < side_count; i++)
        (sides[i].acquire == NULL ? connect_redis : connect_postgres)(&connections[i], &sides[i]);
    double start = now(), end = start + seconds;
    while (start < end) {
        int side = rand_r(&client->seed) % side_count;
        for (int i = 0; i < BATCH; i++) {
            char key[32];
            snprintf(key, sizeof key, "job:%d", rand_r(&client->seed) % KEYS);
            if (sides[side].acquire == NULL)
                lock_in_redis(&connections[side], key, &client->seed);
            else
                lock_in_postgres(&connections[side], key);
        }
        double stop = now();
        client->pairs[side] += BATCH;
        client->time[side] += stop - start;
        start = stop;
    }
    return NULL;
}

static Side read_side(const char *argument) {
    const char *server = strchr(argument, '=');
    if (server == NULL)
        die("a side is redis=SOCKET, lease=CONNINFO or empty=CONNINFO");
    server++;
    if (strncmp(argument, "redis=", 6) == 0)
        return (Side){server, NULL, NULL};
    if (strncmp(argument, "lease=", 6) == 0)
        return (Side){server, "SELECT (interlock.acquire_lease($1, '30 s')).token", "SELECT interlock.release_lease($1, $2)"};
    return (Side){server, "SELECT 1234567890123 AS token, empty_acquire($1, '30 s')", "SELECT empty_release($1, $2)"};
}

int main(int argc, char **argv) {
    if (argc < 4 || argc - 3 > MAX_SIDES)
        die("usage: lock_pairs CLIENTS SECONDS SIDE...");
    int count = atoi(argv[1]);
    seconds = atof(argv[2]);
    for (int i = 3; i < argc; i++)
        sides[side_count++] = read_side(argv[i]);
    pthread_t threads[count];
    Client *clients = calloc(count, sizeof *clients);
    for (int i = 0; i < count; i++) {
        clients[i].seed = 4711 + i;
        pthread_create(&threads[i], NULL, run, &clients[i]);
    }
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    for (int side = 0; side < side_count; side++) {
        double rate = 0;
        for (int i = 0; i < count; i++)
            rate += clients[i].time[side] > 0 ? clients[i].pairs[side] / clients[i].time[side] : 0;
        printf("%.0f\n", rate);
    }
    return 0;
}
