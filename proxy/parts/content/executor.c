#include "content/executor.h"

#include "base/assert.h"
#include "content/work.h"

#include <stdlib.h>

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
