/* Locks and unlocks keys of a Redis server the way its documentation says: SET NX EX with a random value, and a
 * script that deletes the key if it still has that value. Prints pairs a second.
 *
 *     redis_lock SOCKET CLIENTS SECONDS
 */
#include <hiredis/hiredis.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char *path;
static double seconds;
static long keys = 100000;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

static void *client(void *arg) {
    long *pairs = arg;
    unsigned seed = (unsigned)(size_t)arg;
    redisContext *redis = redisConnectUnix(path);
    if (redis == NULL || redis->err) {
        fprintf(stderr, "cannot connect to %s\n", path);
        exit(1);
    }
    redisReply *loaded = redisCommand(redis, "SCRIPT LOAD %s",
        "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end");
    char sha[64];
    strcpy(sha, loaded->str);
    freeReplyObject(loaded);
    double end = now() + seconds;
    while (now() < end) {
        char key[32], value[32];
        snprintf(key, sizeof key, "job:%ld", rand_r(&seed) % keys);
        snprintf(value, sizeof value, "%08x%08x", rand_r(&seed), rand_r(&seed));
        redisReply *set = redisCommand(redis, "SET %s %s NX EX 30", key, value);
        int locked = set != NULL && set->type == REDIS_REPLY_STATUS;
        freeReplyObject(set);
        if (locked) {
            freeReplyObject(redisCommand(redis, "EVALSHA %s 1 %s %s", sha, key, value));
            ++*pairs;
        }
    }
    redisFree(redis);
    return NULL;
}

int main(int argc, char **argv) {
    if (argc != 4) {
        fprintf(stderr, "usage: redis_lock SOCKET CLIENTS SECONDS\n");
        return 2;
    }
    path = argv[1];
    int clients = atoi(argv[2]);
    seconds = atof(argv[3]);
    pthread_t threads[clients];
    long pairs[clients * 16];
    memset(pairs, 0, sizeof pairs);
    for (int i = 0; i < clients; i++)
        pthread_create(&threads[i], NULL, client, &pairs[i * 16]);
    long sum = 0;
    for (int i = 0; i < clients; i++) {
        pthread_join(threads[i], NULL);
        sum += pairs[i * 16];
    }
    printf("%.0f\n", sum / seconds);
    return 0;
}
