#include "content/executor.h"

#include "base/assert.h"
#include "cache/stored.h"
#include "content/injection.h"
#include "content/operation.h"
#include "settings/settings.h"

#include <stdlib.h>

/*
 * The work of the room's thread: one operation of a service, from the store and the disks to its answer.
 */

static struct content_store store_of(const struct content_operation *operation) {
    const struct content_executor *room = operation->account->room;
    return (struct content_store){.cache = room->cache, .second_level = *room->second_level};
}

static struct cache_name work_name(struct content_operation *operation) {
    const struct content_executor *room = operation->account->room;
    struct settings *settings = room->settings(room->context);
    struct cache_name name = content_name(operation->url, settings, &operation->arena);
    name.url = arena_slice(&operation->arena, name.url);
    settings_release(&settings);
    operation->result.url = name.url;
    return name;
}

static void end_well(struct content_operation *operation) {
    content_operation_end(operation, SERVICE_CONTENT_DONE, "");
}

static void end_without(struct content_operation *operation) {
    content_operation_end(operation, SERVICE_CONTENT_NOT_STORED,
                          operation->result.objects == 0 ? "nothing is stored for this URL"
                                                         : "it has no variant of that number");
}

/* The answer outlives the object. */
static void work_describe(struct content_operation *operation, struct object *object) {
    struct service_content_answer *result = &operation->result;
    struct arena *arena = &operation->arena;
    const struct content_store store = store_of(operation);
    struct stored_facts facts;
    stored_look(&store, object, &facts);
    result->http_status = facts.status;
    result->state = slice_from(facts.state);
    result->size = facts.size;
    result->age = facts.age;
    result->fresh_for = facts.left;
    result->stored = facts.stored;
    result->hits = facts.hits;
    result->pinned = facts.pinned;
    result->on_disk = facts.on_disk;
    result->vary = arena_slice(arena, facts.vary);
    result->head = arena_slice(arena, facts.head);
}

/* The variant, described and referenced; NULL: there is none. */
static struct object *work_find(struct content_operation *operation) {
    const struct content_store store = store_of(operation);
    struct cache_walk walk = {0};
    struct object *object = NULL;
    struct cache_name name = work_name(operation);
    stored_variants(&store, &name, &walk);
    operation->result.objects = walk.count;
    if (operation->variant < walk.count)
        object = object_reference(walk.objects[operation->variant]);
    cache_walk_end(&walk);
    if (object != NULL)
        work_describe(operation, object);
    return object;
}

static void work_query(struct content_operation *operation) {
    struct object *object = work_find(operation);
    if (object == NULL)
        end_without(operation);
    else
        end_well(operation);
    object_release(&object);
}

static void end_change(struct content_operation *operation, enum stored_result result) {
    switch (result) {
    case STORED_CHANGED: end_well(operation); break;
    case STORED_NOTHING: end_without(operation); break;
    case STORED_NOT_KEPT:
        content_operation_end(operation, SERVICE_CONTENT_FAILED,
                              "the change is in force, but a disk could not store it, so a restart "
                              "would undo it: see the error log, and repeat it");
    }
}

static void work_change(struct content_operation *operation) {
    const struct content_store store = store_of(operation);
    struct cache_name name = work_name(operation);
    uint64_t *count = &operation->result.objects;
    if (operation->kind == SERVICE_CONTENT_DELETE)
        end_change(operation, stored_delete(&store, &name, PURGE_REMOVE, count));
    else if (operation->kind == SERVICE_CONTENT_EXPIRE)
        end_change(operation, stored_expire(&store, &name, operation->seconds, count));
    else
        end_change(operation, stored_pin(&store, &name, operation->pinned, count));
}

/* Injection. */

static void end_injection(struct content_operation *operation, enum injection_result result,
                          const char *why) {
    struct content_numbers *numbers = operation->account->numbers;
    bool refused = result != INJECTION_NOT_KEPT;
    if (result == INJECTION_GOOD) {
        atomic_fetch_add(&numbers->injected_bytes, operation->given);
        end_well(operation);
        return;
    }
    if (refused)
        atomic_fetch_add(&numbers->refused, 1);
    content_operation_end(operation, refused ? SERVICE_CONTENT_REFUSED : SERVICE_CONTENT_FAILED,
                          why);
}

static void work_store(struct content_operation *operation, struct injection *injection) {
    const struct content_store store = store_of(operation);
    struct cache_name name = work_name(operation);
    struct object *object;
    enum injection_result result = injection_judge(injection);
    if (result == INJECTION_GOOD) {
        result = injection_store(injection, &store, &name, operation->body, &object);
        if (object != NULL)
            work_describe(operation, object);
        operation->result.objects = object != NULL;
        object_release(&object);
    }
    body_release(&operation->body);
    content_operation_let(operation); /* the cache has the bytes now */
    end_injection(operation, result, injection->error);
}

static void work_inject(struct content_operation *operation) {
    struct http_head head;
    struct injection injection = {.response = &head, .lifetime = operation->seconds};
    const struct content_store store = store_of(operation);
    size_t used = injection_read_head(&head, operation->head_text);
    if (used == 0 || used != operation->head_text.length)
        end_injection(operation, INJECTION_BAD,
                      "the head must be that of a whole final response, with an empty line behind "
                      "it: HTTP/1.1 200 OK ...");
    else if (!injection_states_length(&head, operation->given))
        end_injection(operation, INJECTION_BAD,
                      "the response's Content-Length is not the length of its body");
    else if (!injection_fits(&store, operation->given))
        end_injection(operation, INJECTION_TOO_LARGE,
                      "the response is larger than the whole cache");
    else
        work_store(operation, &injection);
}

/* Reading. */

static void work_read_whole(struct content_operation *operation, const struct object *object) {
    uint64_t size = operation->result.size, most = operation->account->limits.object;
    const char *why = NULL;
    if (size > operation->length)
        why = "the object is larger than what is to be read";
    else if (size > most)
        why = "the object is larger than service.content_object allows: read it in parts";
    else if (!content_operation_hold(operation, size))
        why = "the operations of this service hold more bytes than service.content_memory allows";
    if (why != NULL) {
        atomic_fetch_add(&operation->account->numbers->refused, 1);
        content_operation_end(operation, SERVICE_CONTENT_REFUSED, why);
        return;
    }
    operation->part = malloc(size + 1);
    if (operation->part == NULL || !body_copy(object->body, 0, operation->part, size)) {
        content_operation_end(operation, SERVICE_CONTENT_FAILED,
                              operation->part == NULL
                                  ? "there is not enough memory now: try again later"
                                  : "the object can't be read from disk; see the error log");
        return;
    }
    operation->result.body = slice_make(operation->part, size);
    atomic_fetch_add(&operation->account->numbers->read_bytes, size);
    end_well(operation);
}

/* The next part, which the service has room for. */
static void work_read_part(struct content_operation *operation) {
    uint64_t left = operation->result.size - operation->position;
    size_t length = left < CONTENT_PART ? (size_t)left : CONTENT_PART;
    operation->part_begin = operation->part_end = 0;
    if (length > 0 &&
        !body_copy(operation->object->body, operation->position, operation->part, length))
        operation->broken = true;
    else
        operation->part_end = length;
    operation->position += operation->part_end;
    if (operation->broken || operation->position == operation->result.size)
        object_release(&operation->object);
    content_operation_part(operation);
}

static void work_read_begin(struct content_operation *operation, struct object **objectp) {
    if (!content_operation_hold(operation, CONTENT_PART)) {
        atomic_fetch_add(&operation->account->numbers->refused, 1);
        content_operation_end(operation, SERVICE_CONTENT_REFUSED,
                              "the operations of this service hold more bytes than "
                              "service.content_memory allows");
        return;
    }
    operation->part = xmalloc(CONTENT_PART);
    operation->object = *objectp;
    *objectp = NULL;
    work_read_part(operation);
}

static void work_read(struct content_operation *operation) {
    if (operation->base.answer != NULL) {
        work_read_part(operation);
        return;
    }
    struct object *object = work_find(operation);
    enum body_state state = object != NULL ? body_state(object->body) : BODY_FAILED;
    if (object == NULL)
        end_without(operation);
    else if (state == BODY_FAILED)
        content_operation_end(operation, SERVICE_CONTENT_FAILED,
                              "the object can't be read from disk; see the error log");
    else if (state == BODY_ARRIVING)
        content_operation_end(operation, SERVICE_CONTENT_FAILED,
                              "the object has not arrived completely yet");
    else if (operation->whole)
        work_read_whole(operation, object);
    else
        work_read_begin(operation, &object);
    object_release(&object);
}

static void content_work(struct content_operation *operation) {
    CHECK_OBJ(operation, CONTENT_OPERATION_MAGIC);
    switch (operation->kind) {
    case SERVICE_CONTENT_QUERY: work_query(operation); break;
    case SERVICE_CONTENT_INJECT: work_inject(operation); break;
    case SERVICE_CONTENT_READ: work_read(operation); break;
    default: work_change(operation);
    }
}

/* The next operation of the account whose turn it is. NULL: there is none, or the room stops. */
static struct content_operation *room_next(struct content_executor *room) {
    struct content_operation *operation = NULL;
    pthread_mutex_lock(&room->lock);
    if (!list_empty(&room->turns) && !room->stopping) {
        struct content_account *account =
            CONTAINER_OF(list_first(&room->turns), struct content_account, turn);
        operation = CONTAINER_OF(list_first(&account->waiting), struct content_operation, turn);
        list_remove(&operation->turn);
        list_remove(&account->turn);
        if (!list_empty(&account->waiting))
            list_append(&room->turns, &account->turn);
        operation->stage = CONTENT_BUSY;
    }
    pthread_mutex_unlock(&room->lock);
    return operation;
}

static uint64_t room_work(void *arg) {
    struct content_executor *room;
    struct content_operation *operation;
    CAST_OBJ(room, arg, CONTENT_EXECUTOR_MAGIC);
    while ((operation = room_next(room)) != NULL)
        content_work(operation);
    return THREADS_NEVER;
}

bool content_executor_wake(struct content_executor *room) {
    if (room->stopping || !thread_clock_start(&room->clock, "rt-content"))
        return false;
    thread_clock_wake(&room->clock, 0);
    return true;
}

struct content_executor *content_executor_new(struct cache *cache,
                                              struct second_level *const *second_level,
                                              struct settings *(*settings)(void *context),
                                              void *context) {
    struct content_executor *room;
    ALLOC_OBJ(room, CONTENT_EXECUTOR_MAGIC);
    room->cache = cache;
    room->second_level = second_level;
    room->settings = settings;
    room->context = context;
    pthread_mutex_init(&room->lock, NULL);
    thread_clock_init(&room->clock, room_work, room);
    list_init(&room->accounts);
    list_init(&room->turns);
    return room;
}

void content_executor_add_worker(struct content_executor *room, struct clients *clients) {
    pthread_mutex_lock(&room->lock);
    room->places = xrealloc(room->places, (room->place_count + 1) * sizeof *room->places);
    room->places[room->place_count++] = clients;
    pthread_mutex_unlock(&room->lock);
}

void content_executor_end(struct content_executor *room) {
    if (room == NULL)
        return;
    pthread_mutex_lock(&room->lock);
    room->ending = true;
    pthread_mutex_unlock(&room->lock);
}

static void stop_operations(struct content_executor *room) {
    LIST_FOR_EACH_SAFE (at, after, &room->accounts) {
        struct content_account *account = CONTAINER_OF(at, struct content_account, link);
        LIST_FOR_EACH_SAFE (link, next, &account->operations)
            content_operation_stop(CONTAINER_OF(link, struct content_operation, link));
    }
}

void content_executor_stop(struct content_executor *room) {
    pthread_mutex_lock(&room->lock);
    room->ending = room->stopping = true;
    pthread_mutex_unlock(&room->lock);
    thread_clock_end(&room->clock);
    pthread_mutex_lock(&room->lock);
    stop_operations(room);
    pthread_mutex_unlock(&room->lock);
}

void content_executor_free(struct content_executor **roomp) {
    struct content_executor *room = *roomp;
    *roomp = NULL;
    if (room == NULL)
        return;
    CHECK_OBJ(room, CONTENT_EXECUTOR_MAGIC);
    content_executor_stop(room);
    pthread_mutex_lock(&room->lock);
    bool used = !list_empty(&room->accounts);
    pthread_mutex_unlock(&room->lock);
    if (used)
        return;
    thread_clock_release(&room->clock);
    pthread_mutex_destroy(&room->lock);
    free(room->places);
    FREE_OBJ(room);
}
