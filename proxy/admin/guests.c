#include "admin/guests.h"

#include "base/assert.h"
#include "base/log.h"

#include <sys/socket.h>

enum { TELL_AGAIN = 60 };

struct guest {
    unsigned magic;
#define GUEST_MAGIC 0x47554553u
    struct list_link link;
    int fd;
    bool shown_out; /* shut down and no longer in the list */
};

void guests_init(struct guests *guests) {
    *guests = (struct guests){0};
    pthread_mutex_init(&guests->lock, NULL);
    list_init(&guests->list);
}

void guests_release(struct guests *guests) {
    pthread_mutex_destroy(&guests->lock);
}

static void guests_tell(struct guests *guests) {
    time_t now = time(NULL);
    if (now - guests->told < TELL_AGAIN)
        return;
    guests->told = now;
    log_warn("admin: more than %d connections are open, so idle ones are closed: find the program "
             "that opens them and does not finish its requests (ss -xp, ss -tp)",
             (int)GUESTS_MOST);
}

/* The lock is held, so the socket is not closed yet. */
static void show_out(struct guests *guests) {
    struct guest *oldest = CONTAINER_OF(list_first(&guests->list), struct guest, link);
    CHECK_OBJ(oldest, GUEST_MAGIC);
    list_remove(&oldest->link);
    guests->count--;
    oldest->shown_out = true;
    shutdown(oldest->fd, SHUT_RDWR);
    guests_tell(guests);
}

struct guest *guest_add(struct guests *guests, int fd) {
    struct guest *guest;
    ALLOC_OBJ(guest, GUEST_MAGIC);
    guest->fd = fd;
    pthread_mutex_lock(&guests->lock);
    if (guests->count == GUESTS_MOST)
        show_out(guests);
    list_append(&guests->list, &guest->link);
    guests->count++;
    pthread_mutex_unlock(&guests->lock);
    return guest;
}

void guest_moves(struct guests *guests, struct guest *guest) {
    CHECK_OBJ(guest, GUEST_MAGIC);
    pthread_mutex_lock(&guests->lock);
    if (!guest->shown_out) {
        list_remove(&guest->link);
        list_append(&guests->list, &guest->link);
    }
    pthread_mutex_unlock(&guests->lock);
}

void guest_remove(struct guests *guests, struct guest **guestp) {
    struct guest *guest = *guestp;
    *guestp = NULL;
    CHECK_OBJ(guest, GUEST_MAGIC);
    pthread_mutex_lock(&guests->lock);
    if (!guest->shown_out) {
        list_remove(&guest->link);
        guests->count--;
    }
    pthread_mutex_unlock(&guests->lock);
    FREE_OBJ(guest);
}
