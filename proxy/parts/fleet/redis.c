#include "fleet/engine.h"

#include "base/assert.h"
#include "fleet/wire.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/*
 * The engine is a Valkey or Redis server (7 or newer), with or without Sentinel. The stream of the fleet NAME is the key
 * retort:{NAME}:events, the table of nodes the hash retort:{NAME}:nodes: both in one slot of a cluster.
 *
 * The generation is the id of the server's history, which it draws anew when it starts, and when it becomes the one that serves.
 */

enum { KEY = FLEET_NAME_MAX + 32, READ_MOST = 512, NUMBER = 24, WAIT_MOST = 1000, WORDS = 16 };

struct engine {
    unsigned magic;
#define ENGINE_MAGIC 0xe261e0e1u
    struct engine_place place;
    struct wire *wire;
    char events[KEY], nodes[KEY], keep[NUMBER];
    char generation[FLEET_GENERATION];
};

/* ---- answers ----------------------------------------------------------------------------------- */

static bool is_text_reply(const struct reply *reply) {
    return reply != NULL && reply->type == REPLY_TEXT;
}

static const struct reply *element(const struct reply *reply, size_t index) {
    return reply != NULL && index < reply->count ? reply->elements[index] : NULL;
}

/* NULL too when the server says that something is wrong. */
static struct reply *redis_take_within(struct engine *engine, uint64_t patience,
                                       char error[FLEET_ERROR]) {
    struct reply *reply = wire_take_within(engine->wire, patience, error);
    if (reply == NULL || reply->type != REPLY_ERROR)
        return reply;
    snprintf(error, FLEET_ERROR, "the engine says: %.*s", SLICE_PRINT(reply->text));
    reply_free(&reply);
    return NULL;
}

static struct reply *redis_take(struct engine *engine, char error[FLEET_ERROR]) {
    return redis_take_within(engine, 0, error);
}

/* The answer says nothing but whether it went well. */
static bool redis_pass(struct engine *engine, char error[FLEET_ERROR]) {
    struct reply *reply = redis_take(engine, error);
    if (reply == NULL)
        return false;
    reply_free(&reply);
    return true;
}

/* Puts a command; the words are texts, and NULL ends them. */
static void redis_put(struct engine *engine, ...) {
    struct slice words[WORDS];
    size_t count = 0;
    va_list list;
    va_start(list, engine);
    for (const char *word = va_arg(list, const char *); word != NULL;
         word = va_arg(list, const char *))
        words[count++] = slice_from(word);
    va_end(list);
    wire_put(engine->wire, count, words);
}

static bool strange(char error[FLEET_ERROR]) {
    snprintf(error, FLEET_ERROR, "the engine's answer is not that of Valkey or Redis 7");
    return false;
}

/* ---- who serves -------------------------------------------------------------------------------- */

/* The value of a line of INFO. */
static struct slice redis_info_value(struct slice info, struct slice name) {
    struct slice line;
    while (slice_next_line(&info, &line)) {
        if (!slice_starts_with(line, name))
            continue;
        size_t end = line.length - (line.base[line.length - 1] == '\r');
        return slice_make(line.base + name.length, end - name.length);
    }
    return SLICE("");
}

static bool take_info(const struct reply *reply, struct slice *role,
                      char generation[FLEET_GENERATION]) {
    if (!is_text_reply(reply))
        return false;
    struct slice id = redis_info_value(reply->text, SLICE("master_replid:"));
    *role = redis_info_value(reply->text, SLICE("role:"));
    if (id.length >= FLEET_GENERATION || !fleet_name_is_good(id))
        return false;
    memcpy(generation, id.base, id.length);
    generation[id.length] = '\0';
    return true;
}

static bool is_master(struct engine *engine, char error[FLEET_ERROR]) {
    struct slice role = {"", 0};
    redis_put(engine, "INFO", "replication", NULL);
    struct reply *reply = redis_take(engine, error);
    if (reply == NULL)
        return false;
    bool good = take_info(reply, &role, engine->generation);
    if (!good)
        strange(error);
    else if (!slice_equal(role, SLICE("master")))
        snprintf(error, FLEET_ERROR, "the server is only a copy of another one");
    good = good && slice_equal(role, SLICE("master"));
    reply_free(&reply);
    return good;
}

static bool log_in(struct engine *engine, const char *user, const char *password,
                   char error[FLEET_ERROR]) {
    if (password == NULL)
        return true;
    if (user != NULL)
        redis_put(engine, "AUTH", user, password, NULL);
    else
        redis_put(engine, "AUTH", password, NULL);
    return redis_pass(engine, error);
}

/* "HOST:PORT", "[ADDRESS]:PORT" */
static bool redis_split(const char *server, struct slice *host, uint16_t *port) {
    const char *colon = strrchr(server, ':');
    uint64_t number;
    if (colon == NULL || !slice_to_uint64(slice_from(colon + 1), &number) || number == 0 ||
        number > UINT16_MAX)
        return false;
    *host = slice_make(server, (size_t)(colon - server));
    if (host->length > 2 && host->base[0] == '[' && host->base[host->length - 1] == ']')
        *host = slice_make(host->base + 1, host->length - 2);
    *port = (uint16_t)number;
    return host->length > 0;
}

static bool connect_to(struct engine *engine, struct slice host, uint16_t port,
                       char error[FLEET_ERROR]) {
    engine->wire = wire_open(
        &(struct wire_target){
            .host = host,
            .port = port,
            .trust = engine->place.trust,
            .timeout = engine->place.timeout,
            .stop = engine->place.stop,
        },
        error);
    return engine->wire != NULL;
}

/* Asks a Sentinel who serves, and goes there. */
static bool redis_follow(struct engine *engine, char error[FLEET_ERROR]) {
    uint64_t port = 0;
    redis_put(engine, "SENTINEL", "get-master-addr-by-name", engine->place.sentinel, NULL);
    struct reply *reply = redis_take(engine, error);
    if (reply == NULL)
        return false;
    const struct reply *host = element(reply, 0), *number = element(reply, 1);
    bool good = is_text_reply(host) && is_text_reply(number) &&
                slice_to_uint64(number->text, &port) && port > 0 && port <= UINT16_MAX;
    if (!good)
        snprintf(error, FLEET_ERROR, "the Sentinel knows no \"%.64s\": see sentinel",
                 engine->place.sentinel);
    wire_close(&engine->wire);
    good = good && connect_to(engine, host->text, (uint16_t)port, error);
    reply_free(&reply);
    return good;
}

static bool try_server(struct engine *engine, const char *server, char error[FLEET_ERROR]) {
    struct slice host;
    uint16_t port;
    if (!redis_split(server, &host, &port)) {
        snprintf(error, FLEET_ERROR, "\"%.200s\" is not HOST:PORT", server);
        return false;
    }
    if (connect_to(engine, host, port, error) &&
        (engine->place.sentinel == NULL ||
         (log_in(engine, NULL, engine->place.sentinel_password, error) &&
          redis_follow(engine, error))) &&
        log_in(engine, engine->place.user, engine->place.password, error) &&
        is_master(engine, error))
        return true;
    wire_close(&engine->wire);
    return false;
}

struct engine *engine_open(const struct engine_place *place, char error[FLEET_ERROR]) {
    struct engine *engine;
    snprintf(error, FLEET_ERROR, "the process ends");
    ALLOC_OBJ(engine, ENGINE_MAGIC);
    engine->place = *place;
    snprintf(engine->events, sizeof engine->events, "retort:{%s}:events", place->fleet);
    snprintf(engine->nodes, sizeof engine->nodes, "retort:{%s}:nodes", place->fleet);
    snprintf(engine->keep, sizeof engine->keep, "%llu", (unsigned long long)place->keep);
    for (char *const *server = place->servers; *server != NULL; server++)
        if (!atomic_load(place->stop) && try_server(engine, *server, error))
            return engine;
    engine_close(&engine);
    return NULL;
}

void engine_close(struct engine **enginep) {
    struct engine *engine = *enginep;
    *enginep = NULL;
    if (engine == NULL)
        return;
    CHECK_OBJ(engine, ENGINE_MAGIC);
    wire_close(&engine->wire);
    FREE_OBJ(engine);
}

const char *engine_generation(const struct engine *engine) {
    CHECK_OBJ(engine, ENGINE_MAGIC);
    return engine->generation;
}

bool engine_is_same(struct engine *engine, char error[FLEET_ERROR]) {
    char before[FLEET_GENERATION];
    CHECK_OBJ(engine, ENGINE_MAGIC);
    memcpy(before, engine->generation, sizeof before);
    if (!is_master(engine, error))
        return false;
    if (strcmp(before, engine->generation) == 0)
        return true;
    snprintf(error, FLEET_ERROR, "another server has begun to serve");
    return false;
}

/* ---- the stream -------------------------------------------------------------------------------- */

/* Digits, '-' and digits. */
static bool is_id(struct slice text) {
    const char *dash = memchr(text.base, '-', text.length);
    uint64_t number;
    if (dash == NULL || text.length >= FLEET_ID)
        return false;
    size_t length = (size_t)(dash - text.base);
    return slice_to_uint64(slice_make(text.base, length), &number) &&
           slice_to_uint64(slice_make(dash + 1, text.length - length - 1), &number);
}

/* An entry of a stream: [id, ["event", text]]. */
static bool take_entry(const struct reply *entry, struct slice *id, struct slice *text) {
    const struct reply *name = element(entry, 0), *value = element(element(entry, 1), 1);
    if (!is_text_reply(name) || !is_id(name->text))
        return false;
    *id = name->text;
    *text = is_text_reply(value) ? value->text : SLICE("");
    return true;
}

/* `after`: each is behind the one before it; NULL: in any order. */
static bool see_entries(const struct reply *entries, const char *after, engine_see_fn *see,
                        void *arg) {
    struct slice name, text;
    char id[FLEET_ID];
    for (size_t i = 0; element(entries, i) != NULL; i++) {
        if (!take_entry(element(entries, i), &name, &text))
            return false;
        char before[FLEET_ID];
        if (after != NULL)
            snprintf(before, sizeof before, "%s", i == 0 ? after : id);
        memcpy(id, name.base, name.length);
        id[name.length] = '\0';
        if (after != NULL && fleet_id_reaches(before, id))
            return false;
        see(arg, id, text);
    }
    return true;
}

static bool is_entry(const struct reply *entries, const struct fleet_mark *mark) {
    struct slice id, text;
    if (!take_entry(element(entries, 0), &id, &text) || !slice_equal(id, slice_from(mark->id)))
        return false;
    struct fleet_digest digest = fleet_digest_of(text);
    return fleet_digest_equal(&digest, &mark->digest);
}

/* Is the entry there, as it was? */
bool engine_has(struct engine *engine, const struct fleet_mark *mark, bool *there,
                char error[FLEET_ERROR]) {
    CHECK_OBJ(engine, ENGINE_MAGIC);
    redis_put(engine, "XRANGE", engine->events, mark->id, mark->id, NULL);
    struct reply *reply = redis_take(engine, error);
    if (reply == NULL)
        return false;
    *there = is_entry(reply, mark);
    reply_free(&reply);
    return true;
}

static void put_events(struct engine *engine, const struct slice *texts, size_t count) {
    for (size_t i = 0; i < count; i++) {
        const struct slice words[] = {
            SLICE("XADD"),
            slice_from(engine->events),
            SLICE("MAXLEN"),
            SLICE("~"),
            slice_from(engine->keep),
            SLICE("*"),
            SLICE("event"),
            texts[i],
        };
        wire_put(engine->wire, sizeof words / sizeof words[0], words);
    }
}

/* MULTI and each command of it are answered before EXEC is. */
static bool pass_queued(struct engine *engine, size_t count, char error[FLEET_ERROR]) {
    for (size_t i = 0; i < count; i++)
        if (!redis_pass(engine, error))
            return false;
    return true;
}

static bool await_copies(struct engine *engine, bool *copied, char error[FLEET_ERROR]) {
    char copies[NUMBER], patience[NUMBER];
    *copied = true;
    if (engine->place.copies == 0)
        return true;
    uint64_t wait = engine->place.timeout < WAIT_MOST ? engine->place.timeout : WAIT_MOST;
    snprintf(copies, sizeof copies, "%u", engine->place.copies);
    snprintf(patience, sizeof patience, "%llu", (unsigned long long)wait);
    redis_put(engine, "WAIT", copies, patience, NULL);
    struct reply *reply = redis_take_within(engine, wait, error);
    if (reply == NULL)
        return false;
    *copied = reply->type == REPLY_NUMBER && reply->number >= (int64_t)engine->place.copies;
    reply_free(&reply);
    return true;
}

/* The answer of EXEC: [INFO, XRANGE, an id for each event]. */
static bool take_executed(struct engine *engine, const struct reply *reply,
                          const struct fleet_mark *behind, size_t count,
                          struct engine_appended *appended, char error[FLEET_ERROR]) {
    char generation[FLEET_GENERATION];
    struct slice role;
    const struct reply *last = element(reply, 1 + count);
    if (!is_text_reply(last) || !is_id(last->text))
        return strange(error);
    if (!take_info(element(reply, 0), &role, generation) ||
        strcmp(generation, engine->generation) != 0) {
        snprintf(error, FLEET_ERROR, "another server has begun to serve");
        return false;
    }
    appended->follows = behind == NULL || is_entry(element(reply, 1), behind);
    memcpy(appended->id, last->text.base, last->text.length);
    appended->id[last->text.length] = '\0';
    return true;
}

bool engine_append(struct engine *engine, const struct fleet_mark *behind,
                   const struct slice *texts, size_t count, struct engine_appended *appended,
                   char error[FLEET_ERROR]) {
    CHECK_OBJ(engine, ENGINE_MAGIC);
    *appended = (struct engine_appended){0};
    const char *id = behind != NULL ? behind->id : "-";
    redis_put(engine, "MULTI", NULL);
    redis_put(engine, "INFO", "replication", NULL);
    redis_put(engine, "XRANGE", engine->events, id, id, "COUNT", "1", NULL);
    put_events(engine, texts, count);
    redis_put(engine, "EXEC", NULL);
    if (!pass_queued(engine, 3 + count, error))
        return false;
    struct reply *reply = redis_take(engine, error);
    if (reply == NULL)
        return false;
    bool good = take_executed(engine, reply, behind, count, appended, error);
    reply_free(&reply);
    return good && await_copies(engine, &appended->copied, error);
}

bool engine_read(struct engine *engine, const char *after, uint64_t patience, engine_see_fn *see,
                 void *arg, char error[FLEET_ERROR]) {
    char most[NUMBER], wait[NUMBER];
    CHECK_OBJ(engine, ENGINE_MAGIC);
    snprintf(most, sizeof most, "%d", READ_MOST);
    snprintf(wait, sizeof wait, "%llu", (unsigned long long)patience);
    redis_put(engine, "XREAD", "COUNT", most, "BLOCK", wait, "STREAMS", engine->events, after,
              NULL);
    struct reply *reply = redis_take_within(engine, patience, error);
    if (reply == NULL)
        return false;
    const struct reply *entries = element(element(reply, 0), 1);
    bool good =
        reply->type == REPLY_NOTHING || (entries != NULL && see_entries(entries, after, see, arg));
    reply_free(&reply);
    return good || strange(error);
}

bool engine_look_back(struct engine *engine, unsigned most, engine_see_fn *see, void *arg,
                      char error[FLEET_ERROR]) {
    char count[NUMBER];
    CHECK_OBJ(engine, ENGINE_MAGIC);
    snprintf(count, sizeof count, "%u", most);
    redis_put(engine, "XREVRANGE", engine->events, "+", "-", "COUNT", count, NULL);
    struct reply *reply = redis_take(engine, error);
    if (reply == NULL)
        return false;
    bool good = see_entries(reply, NULL, see, arg);
    reply_free(&reply);
    return good || strange(error);
}

/* ---- the table of nodes ------------------------------------------------------------------------ */

bool engine_set(struct engine *engine, const char *node, struct slice value,
                char error[FLEET_ERROR]) {
    CHECK_OBJ(engine, ENGINE_MAGIC);
    const struct slice words[] = {value.base != NULL ? SLICE("HSET") : SLICE("HDEL"),
                                  slice_from(engine->nodes), slice_from(node), value};
    wire_put(engine->wire, value.base != NULL ? 4 : 3, words);
    return redis_pass(engine, error);
}

bool engine_get(struct engine *engine, engine_see_fn *see, void *arg, char error[FLEET_ERROR]) {
    CHECK_OBJ(engine, ENGINE_MAGIC);
    redis_put(engine, "HGETALL", engine->nodes, NULL);
    struct reply *reply = redis_take(engine, error);
    if (reply == NULL)
        return false;
    for (size_t i = 0; element(reply, i + 1) != NULL; i += 2) {
        const struct reply *name = element(reply, i), *value = element(reply, i + 1);
        if (is_text_reply(name) && is_text_reply(value) && fleet_name_is_good(name->text))
            see(arg, name->text.base, value->text);
    }
    reply_free(&reply);
    return true;
}
