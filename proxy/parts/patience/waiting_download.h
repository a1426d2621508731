/*
 * A waiting download: a response that services finish while its client looks at a waiting page
 * (patience/waiting_page.h). It is kept until the client collects it.
 *
 * The worker that makes it:
 *
 *     struct waiting_download *download =
 *         waiting_downloads_open(downloads, &client, now, expected, most, directory);
 *     if (download == NULL) ...                              the table is full
 *     ... the page's URL contains download->token ...
 *     if (!waiting_download_append(download, bytes, count))  too many bytes, or the disk is full
 *         waiting_download_failed(download, "reason", now + keep);
 *     else
 *         waiting_download_ready(download, head, now + keep);
 *     waiting_download_release(&download);                   it stays in the table
 *
 * The worker that is asked for it:
 *
 *     struct waiting_download *download = waiting_downloads_find(downloads, token, &client, now);
 *     if (download != NULL && waiting_download_state(download) == WAITING_DOWNLOAD_READY)
 *         body = waiting_download_body(&download, arena, loop);   the source takes the reference
 *
 * A token can't be guessed, and is good only for the address that it was made for. A body stands in
 * memory up to WAITING_DOWNLOAD_MEMORY bytes, and beyond that in a file without a name. All bodies
 * together are limited. A download leaves the table when its time is over; a client that is being
 * sent it still gets the rest.
 *
 * Threads: any; a mutex guards the table. Only the worker that opened a download writes it; others
 * read its head, body and error once its state says that they are complete.
 */
#ifndef RETORT_PATIENCE_WAITING_DOWNLOAD_H
#define RETORT_PATIENCE_WAITING_DOWNLOAD_H

#include "base/arena.h"
#include "base/list.h"
#include "base/spill_file.h"
#include "event/source.h"
#include "http/head.h"
#include "net/address.h"

#include <stdatomic.h>

enum {
    WAITING_DOWNLOAD_TOKEN = 32,
    WAITING_DOWNLOAD_MEMORY = 64 * 1024,
    WAITING_DOWNLOADS_MAX = 1000
};

enum waiting_download_state {
    WAITING_DOWNLOAD_COMING,
    WAITING_DOWNLOAD_READY,
    WAITING_DOWNLOAD_FAILED
};

struct waiting_downloads;

struct waiting_download {
    unsigned magic;
#define WAITING_DOWNLOAD_MAGIC 0x9a4ce100u
    _Atomic unsigned references;
    struct list_link link; /* in the table, whose mutex guards this and `expires` */
    struct waiting_downloads *downloads;
    uint64_t expires; /* of the loops' clock; TIMER_NEVER: while it is coming */
    char token[WAITING_DOWNLOAD_TOKEN + 1];
    struct address client;
    _Atomic int state;
    _Atomic uint64_t received; /* bytes that have come from the origin */
    int64_t expected;          /* -1: not known */
    _Atomic uint64_t asked;    /* when the client last asked for it */
    const char *error;
    char *head; /* status line, fields and the empty line; owned */
    size_t head_length;
    struct spill_file body;
    uint64_t counted; /* bytes of it, among those of all bodies */
    size_t most;      /* bytes of all bodies */
};

struct waiting_downloads *waiting_downloads_new(void);
void waiting_downloads_free(struct waiting_downloads **downloadsp);

/* `most`: bytes of all bodies; `directory`: for files, in use until the download is ready. */
struct waiting_download *waiting_downloads_open(struct waiting_downloads *downloads,
                                                const struct address *client, uint64_t now,
                                                int64_t expected, size_t most,
                                                const char *directory);
struct waiting_download *waiting_downloads_find(struct waiting_downloads *downloads,
                                                struct slice token, const struct address *client,
                                                uint64_t now);
/* Removes the downloads whose time is over. Returns when the time of the next one is over;
 * TIMER_NEVER: there is none. */
uint64_t waiting_downloads_expire(struct waiting_downloads *downloads, uint64_t now);
void waiting_download_release(struct waiting_download **downloadp);

static inline enum waiting_download_state
waiting_download_state(const struct waiting_download *download) {
    return (enum waiting_download_state)atomic_load_explicit(&download->state,
                                                             memory_order_acquire);
}

bool waiting_download_append(struct waiting_download *download, const char *bytes, size_t count);
void waiting_download_ready(struct waiting_download *download, const struct http_head *head,
                            uint64_t expires);
void waiting_download_failed(struct waiting_download *download, const char *error,
                             uint64_t expires);
struct source *waiting_download_body(struct waiting_download **downloadp, struct arena *arena,
                                     struct loop *loop);

#endif
