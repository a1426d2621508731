#include "content/room.h"

#include "base/assert.h"
#include "content/work.h"

#include <signal.h>
#include <stdlib.h>

/* The next operation of the account whose turn it is. NULL: the room stops. */
static struct content_operation *room_await(struct content_room *room) {
    struct content_operation *operation = NULL;
    pthread_mutex_lock(&room->lock);
    while (list_empty(&room->turns) && !room->stopping)
        pthread_cond_wait(&room->news, &room->lock);
    if (!room->stopping) {
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

static void *room_main(void *arg) {
    struct content_room *room;
    struct content_operation *operation;
    CAST_OBJ(room, arg, CONTENT_ROOM_MAGIC);
    while ((operation = room_await(room)) != NULL)
        content_work(operation);
    return NULL;
}

bool content_room_wake(struct content_room *room) {
    sigset_t all, before;
    if (!room->started && !room->stopping) {
        sigfillset(&all);
        pthread_sigmask(SIG_BLOCK, &all, &before);
        room->started = pthread_create(&room->thread, NULL, room_main, room) == 0;
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    pthread_cond_signal(&room->news);
    return room->started && !room->stopping;
}

struct content_room *content_room_new(const struct content_store *store,
                                      struct settings *(*settings)(void *context), void *context) {
    struct content_room *room;
    ALLOC_OBJ(room, CONTENT_ROOM_MAGIC);
    room->store = *store;
    room->settings = settings;
    room->context = context;
    pthread_mutex_init(&room->lock, NULL);
    pthread_cond_init(&room->news, NULL);
    list_init(&room->accounts);
    list_init(&room->turns);
    return room;
}

void content_room_add_place(struct content_room *room, struct clients *clients) {
    pthread_mutex_lock(&room->lock);
    room->places = xrealloc(room->places, (room->place_count + 1) * sizeof *room->places);
    room->places[room->place_count++] = clients;
    pthread_mutex_unlock(&room->lock);
}

void content_room_end(struct content_room *room) {
    if (room == NULL)
        return;
    pthread_mutex_lock(&room->lock);
    room->ending = true;
    pthread_mutex_unlock(&room->lock);
}

static void stop_operations(struct content_room *room) {
    LIST_FOR_EACH_SAFE (at, after, &room->accounts) {
        struct content_account *account = CONTAINER_OF(at, struct content_account, link);
        LIST_FOR_EACH_SAFE (link, next, &account->operations)
            content_operation_stop(CONTAINER_OF(link, struct content_operation, link));
    }
}

void content_room_stop(struct content_room *room) {
    pthread_mutex_lock(&room->lock);
    bool joins = room->started && !room->stopping;
    room->ending = room->stopping = true;
    pthread_cond_signal(&room->news);
    pthread_mutex_unlock(&room->lock);
    if (joins)
        pthread_join(room->thread, NULL);
    pthread_mutex_lock(&room->lock);
    stop_operations(room);
    pthread_mutex_unlock(&room->lock);
}

void content_room_free(struct content_room **roomp) {
    struct content_room *room = *roomp;
    *roomp = NULL;
    if (room == NULL)
        return;
    CHECK_OBJ(room, CONTENT_ROOM_MAGIC);
    content_room_stop(room);
    ASSERT(list_empty(&room->accounts));
    pthread_cond_destroy(&room->news);
    pthread_mutex_destroy(&room->lock);
    free(room->places);
    FREE_OBJ(room);
}
