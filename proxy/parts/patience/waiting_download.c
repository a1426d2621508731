#include "patience/waiting_download.h"

#include "base/assert.h"

#include <pthread.h>
#include <sys/random.h>

struct waiting_downloads {
    unsigned magic;
#define WAITING_DOWNLOADS_MAGIC 0x9a4ce15au
    pthread_mutex_t lock;
    struct list_link all;
    unsigned count;
    _Atomic uint64_t bytes; /* of all bodies */
};

struct waiting_downloads *waiting_downloads_new(void) {
    struct waiting_downloads *downloads;
    ALLOC_OBJ(downloads, WAITING_DOWNLOADS_MAGIC);
    pthread_mutex_init(&downloads->lock, NULL);
    list_init(&downloads->all);
    return downloads;
}

/* Under the lock. */
static void waiting_download_remove(struct waiting_download *download) {
    list_remove(&download->link);
    download->downloads->count--;
    struct waiting_download *gone = download;
    waiting_download_release(&gone);
}

void waiting_downloads_free(struct waiting_downloads **downloadsp) {
    struct waiting_downloads *downloads = *downloadsp;
    *downloadsp = NULL;
    if (downloads == NULL)
        return;
    CHECK_OBJ(downloads, WAITING_DOWNLOADS_MAGIC);
    LIST_FOR_EACH_SAFE (link, next, &downloads->all)
        waiting_download_remove(CONTAINER_OF(link, struct waiting_download, link));
    pthread_mutex_destroy(&downloads->lock);
    FREE_OBJ(downloads);
}

static bool waiting_download_make_token(char token[WAITING_DOWNLOAD_TOKEN + 1]) {
    static const char digits[] = "0123456789abcdef";
    unsigned char bytes[WAITING_DOWNLOAD_TOKEN / 2];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return false;
    for (size_t i = 0; i < sizeof bytes; i++) {
        token[2 * i] = digits[bytes[i] >> 4];
        token[2 * i + 1] = digits[bytes[i] & 15];
    }
    token[WAITING_DOWNLOAD_TOKEN] = '\0';
    return true;
}

static bool waiting_download_add(struct waiting_downloads *downloads,
                                 struct waiting_download *download) {
    pthread_mutex_lock(&downloads->lock);
    bool room = downloads->count < WAITING_DOWNLOADS_MAX;
    if (room) {
        list_append(&downloads->all, &download->link);
        downloads->count++;
    }
    pthread_mutex_unlock(&downloads->lock);
    return room;
}

struct waiting_download *waiting_downloads_open(struct waiting_downloads *downloads,
                                                const struct address *client, uint64_t now,
                                                int64_t expected, size_t most,
                                                const char *directory) {
    const struct spill_file_limits limits = {
        .memory = WAITING_DOWNLOAD_MEMORY,
        .file = most,
        .directory = directory,
    };
    struct waiting_download *download;
    CHECK_OBJ(downloads, WAITING_DOWNLOADS_MAGIC);
    ALLOC_OBJ(download, WAITING_DOWNLOAD_MAGIC);
    spill_file_init(&download->body, &limits);
    download->downloads = downloads;
    download->references = 2; /* one reference of the table, and one of the caller */
    download->expires = UINT64_MAX;
    download->client = *client;
    download->expected = expected;
    download->asked = now;
    download->most = most;
    if (waiting_download_make_token(download->token) && waiting_download_add(downloads, download))
        return download;
    download->references = 1;
    waiting_download_release(&download);
    return NULL;
}

static bool waiting_download_same_host(const struct address *a, const struct address *b) {
    char first[ADDRESS_TEXT], second[ADDRESS_TEXT];
    return slice_equal(slice_make(first, address_format_ip(a, first)),
                       slice_make(second, address_format_ip(b, second)));
}

struct waiting_download *waiting_downloads_find(struct waiting_downloads *downloads,
                                                struct slice token, const struct address *client,
                                                uint64_t now) {
    struct waiting_download *found = NULL;
    CHECK_OBJ(downloads, WAITING_DOWNLOADS_MAGIC);
    pthread_mutex_lock(&downloads->lock);
    LIST_FOR_EACH (link, &downloads->all) {
        struct waiting_download *download = CONTAINER_OF(link, struct waiting_download, link);
        if (!slice_equal(slice_from(download->token), token) || download->expires <= now)
            continue;
        if (waiting_download_same_host(&download->client, client)) {
            found = download;
            found->references++;
        }
        break;
    }
    pthread_mutex_unlock(&downloads->lock);
    if (found != NULL)
        atomic_store(&found->asked, now);
    return found;
}

uint64_t waiting_downloads_expire(struct waiting_downloads *downloads, uint64_t now) {
    uint64_t next = UINT64_MAX;
    CHECK_OBJ(downloads, WAITING_DOWNLOADS_MAGIC);
    pthread_mutex_lock(&downloads->lock);
    LIST_FOR_EACH_SAFE (link, following, &downloads->all) {
        struct waiting_download *download = CONTAINER_OF(link, struct waiting_download, link);
        if (download->expires <= now)
            waiting_download_remove(download);
        else if (download->expires < next)
            next = download->expires;
    }
    pthread_mutex_unlock(&downloads->lock);
    return next;
}

static void waiting_download_drop_body(struct waiting_download *download) {
    download->downloads->bytes -= download->counted;
    download->counted = 0;
    spill_file_release(&download->body);
}

void waiting_download_release(struct waiting_download **downloadp) {
    struct waiting_download *download = *downloadp;
    *downloadp = NULL;
    if (download == NULL)
        return;
    CHECK_OBJ(download, WAITING_DOWNLOAD_MAGIC);
    if (--download->references > 0)
        return;
    waiting_download_drop_body(download);
    free(download->head);
    FREE_OBJ(download);
}

bool waiting_download_append(struct waiting_download *download, const char *bytes, size_t count) {
    CHECK_OBJ(download, WAITING_DOWNLOAD_MAGIC);
    ASSERT(waiting_download_state(download) == WAITING_DOWNLOAD_COMING);
    download->counted += count;
    return atomic_fetch_add(&download->downloads->bytes, count) + count <= download->most &&
           spill_file_append(&download->body, bytes, count);
}

static void waiting_download_finish(struct waiting_download *download,
                                    enum waiting_download_state state, uint64_t expires) {
    ASSERT(waiting_download_state(download) == WAITING_DOWNLOAD_COMING);
    pthread_mutex_lock(&download->downloads->lock);
    download->expires = expires;
    pthread_mutex_unlock(&download->downloads->lock);
    atomic_store_explicit(&download->state, state, memory_order_release);
}

void waiting_download_ready(struct waiting_download *download, const struct http_head *head,
                            uint64_t expires) {
    CHECK_OBJ(download, WAITING_DOWNLOAD_MAGIC);
    size_t length = http_head_write_response(head, NULL, 0);
    download->head = xmalloc(length + 3);
    http_head_write_response(head, download->head, length + 1);
    memcpy(download->head + length, "\r\n", 3);
    download->head_length = length + 2;
    waiting_download_finish(download, WAITING_DOWNLOAD_READY, expires);
}

void waiting_download_failed(struct waiting_download *download, const char *error,
                             uint64_t expires) {
    CHECK_OBJ(download, WAITING_DOWNLOAD_MAGIC);
    download->error = error;
    waiting_download_drop_body(download); /* its space may be needed before its time is over */
    waiting_download_finish(download, WAITING_DOWNLOAD_FAILED, expires);
}

/* A download that is being delivered. */
struct collecting {
    struct source source;
    struct waiting_download *download;
    struct spill_file_cursor cursor;
};

static enum source_status collecting_read(struct source *source, char *buffer, size_t capacity,
                                          size_t *got) {
    struct collecting *collecting = CONTAINER_OF(source, struct collecting, source);
    ssize_t count =
        spill_file_peek(&collecting->download->body, &collecting->cursor, buffer, capacity);
    *got = count > 0 ? (size_t)count : 0;
    return count > 0 ? SOURCE_DATA : count == 0 ? SOURCE_END : SOURCE_FAILED;
}

static void collecting_close(struct source *source) {
    waiting_download_release(&CONTAINER_OF(source, struct collecting, source)->download);
}

static const struct source_class collecting_class = {"download", collecting_read, collecting_close,
                                                     NULL};

struct source *waiting_download_body(struct waiting_download **downloadp, struct arena *arena,
                                     struct loop *loop) {
    struct collecting *collecting = arena_zalloc(arena, sizeof *collecting);
    ASSERT(waiting_download_state(*downloadp) == WAITING_DOWNLOAD_READY);
    collecting->download = *downloadp;
    *downloadp = NULL;
    source_init(&collecting->source, &collecting_class, loop,
                (int64_t)spill_file_length(&collecting->download->body));
    return &collecting->source;
}
