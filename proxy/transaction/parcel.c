#include "transaction/parcel.h"

#include "base/assert.h"

#include <pthread.h>
#include <sys/random.h>

struct parcels {
    unsigned magic;
#define PARCELS_MAGIC 0x9a4ce15au
    pthread_mutex_t lock;
    struct list_link all;
    unsigned count;
    _Atomic uint64_t bytes; /* of all bodies */
};

struct parcels *parcels_new(void) {
    struct parcels *parcels;
    ALLOC_OBJ(parcels, PARCELS_MAGIC);
    pthread_mutex_init(&parcels->lock, NULL);
    list_init(&parcels->all);
    return parcels;
}

/* Under the lock. */
static void parcel_take_out(struct parcel *parcel) {
    list_remove(&parcel->link);
    parcel->parcels->count--;
    struct parcel *gone = parcel;
    parcel_release(&gone);
}

void parcels_free(struct parcels **parcelsp) {
    struct parcels *parcels = *parcelsp;
    *parcelsp = NULL;
    if (parcels == NULL)
        return;
    CHECK_OBJ(parcels, PARCELS_MAGIC);
    LIST_FOR_EACH_SAFE (link, next, &parcels->all)
        parcel_take_out(CONTAINER_OF(link, struct parcel, link));
    pthread_mutex_destroy(&parcels->lock);
    FREE_OBJ(parcels);
}

static bool make_token(char token[PARCEL_TOKEN + 1]) {
    static const char digits[] = "0123456789abcdef";
    unsigned char bytes[PARCEL_TOKEN / 2];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return false;
    for (size_t i = 0; i < sizeof bytes; i++) {
        token[2 * i] = digits[bytes[i] >> 4];
        token[2 * i + 1] = digits[bytes[i] & 15];
    }
    token[PARCEL_TOKEN] = '\0';
    return true;
}

static bool parcel_put_in(struct parcels *parcels, struct parcel *parcel) {
    pthread_mutex_lock(&parcels->lock);
    bool room = parcels->count < PARCELS_MAX;
    if (room) {
        list_append(&parcels->all, &parcel->link);
        parcels->count++;
    }
    pthread_mutex_unlock(&parcels->lock);
    return room;
}

struct parcel *parcels_open(struct parcels *parcels, const struct address *client, uint64_t now,
                            int64_t expected, size_t most, const char *directory) {
    const struct spill_file_limits limits = {
        .memory = PARCEL_MEMORY,
        .file = most,
        .directory = directory,
    };
    struct parcel *parcel;
    CHECK_OBJ(parcels, PARCELS_MAGIC);
    ALLOC_OBJ(parcel, PARCEL_MAGIC);
    spill_file_init(&parcel->body, &limits);
    parcel->parcels = parcels;
    parcel->references = 2; /* the table's, and the caller's */
    parcel->expires = UINT64_MAX;
    parcel->client = *client;
    parcel->expected = expected;
    parcel->asked = now;
    parcel->most = most;
    if (make_token(parcel->token) && parcel_put_in(parcels, parcel))
        return parcel;
    parcel->references = 1;
    parcel_release(&parcel);
    return NULL;
}

static bool same_host(const struct address *a, const struct address *b) {
    char first[ADDRESS_TEXT], second[ADDRESS_TEXT];
    return slice_equal(slice_make(first, address_format_ip(a, first)),
                       slice_make(second, address_format_ip(b, second)));
}

struct parcel *parcels_find(struct parcels *parcels, struct slice token,
                            const struct address *client, uint64_t now) {
    struct parcel *found = NULL;
    CHECK_OBJ(parcels, PARCELS_MAGIC);
    pthread_mutex_lock(&parcels->lock);
    LIST_FOR_EACH (link, &parcels->all) {
        struct parcel *parcel = CONTAINER_OF(link, struct parcel, link);
        if (!slice_equal(slice_from(parcel->token), token) || parcel->expires <= now)
            continue;
        if (same_host(&parcel->client, client)) {
            found = parcel;
            found->references++;
        }
        break;
    }
    pthread_mutex_unlock(&parcels->lock);
    if (found != NULL)
        atomic_store(&found->asked, now);
    return found;
}

uint64_t parcels_expire(struct parcels *parcels, uint64_t now) {
    uint64_t next = UINT64_MAX;
    CHECK_OBJ(parcels, PARCELS_MAGIC);
    pthread_mutex_lock(&parcels->lock);
    LIST_FOR_EACH_SAFE (link, following, &parcels->all) {
        struct parcel *parcel = CONTAINER_OF(link, struct parcel, link);
        if (parcel->expires <= now)
            parcel_take_out(parcel);
        else if (parcel->expires < next)
            next = parcel->expires;
    }
    pthread_mutex_unlock(&parcels->lock);
    return next;
}

static void forget_body(struct parcel *parcel) {
    parcel->parcels->bytes -= parcel->counted;
    parcel->counted = 0;
    spill_file_release(&parcel->body);
}

void parcel_release(struct parcel **parcelp) {
    struct parcel *parcel = *parcelp;
    *parcelp = NULL;
    if (parcel == NULL)
        return;
    CHECK_OBJ(parcel, PARCEL_MAGIC);
    if (--parcel->references > 0)
        return;
    forget_body(parcel);
    free(parcel->head);
    FREE_OBJ(parcel);
}

bool parcel_append(struct parcel *parcel, const char *bytes, size_t count) {
    CHECK_OBJ(parcel, PARCEL_MAGIC);
    ASSERT(parcel_state(parcel) == PARCEL_COMING);
    parcel->counted += count;
    return atomic_fetch_add(&parcel->parcels->bytes, count) + count <= parcel->most &&
           spill_file_append(&parcel->body, bytes, count);
}

static void parcel_settle(struct parcel *parcel, enum parcel_state state, uint64_t expires) {
    ASSERT(parcel_state(parcel) == PARCEL_COMING);
    pthread_mutex_lock(&parcel->parcels->lock);
    parcel->expires = expires;
    pthread_mutex_unlock(&parcel->parcels->lock);
    atomic_store_explicit(&parcel->state, state, memory_order_release);
}

void parcel_ready(struct parcel *parcel, const struct http_head *head, uint64_t expires) {
    CHECK_OBJ(parcel, PARCEL_MAGIC);
    size_t length = http_head_write_response(head, NULL, 0);
    parcel->head = xmalloc(length + 3);
    http_head_write_response(head, parcel->head, length + 1);
    memcpy(parcel->head + length, "\r\n", 3);
    parcel->head_length = length + 2;
    parcel_settle(parcel, PARCEL_READY, expires);
}

void parcel_failed(struct parcel *parcel, const char *error, uint64_t expires) {
    CHECK_OBJ(parcel, PARCEL_MAGIC);
    parcel->error = error;
    forget_body(parcel); /* others may need the room before its time is over */
    parcel_settle(parcel, PARCEL_FAILED, expires);
}

/* One that is being collected. */
struct collecting {
    struct source source;
    struct parcel *parcel;
    struct spill_file_cursor cursor;
};

static enum source_status collecting_read(struct source *source, char *buffer, size_t capacity,
                                          size_t *got) {
    struct collecting *collecting = CONTAINER_OF(source, struct collecting, source);
    ssize_t count =
        spill_file_peek(&collecting->parcel->body, &collecting->cursor, buffer, capacity);
    *got = count > 0 ? (size_t)count : 0;
    return count > 0 ? SOURCE_DATA : count == 0 ? SOURCE_END : SOURCE_FAILED;
}

static void collecting_close(struct source *source) {
    parcel_release(&CONTAINER_OF(source, struct collecting, source)->parcel);
}

static const struct source_class collecting_class = {"parcel", collecting_read, collecting_close,
                                                     NULL};

struct source *parcel_body(struct parcel **parcelp, struct arena *arena, struct loop *loop) {
    struct collecting *collecting = arena_zalloc(arena, sizeof *collecting);
    ASSERT(parcel_state(*parcelp) == PARCEL_READY);
    collecting->parcel = *parcelp;
    *parcelp = NULL;
    source_init(&collecting->source, &collecting_class, loop,
                (int64_t)spill_file_length(&collecting->parcel->body));
    return &collecting->source;
}
