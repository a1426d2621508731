#include "fleet/outbox.h"

#include "base/assert.h"
#include "base/random.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH = 1024, HEAD = 128, LENGTH_TEXT = 16 };

struct kept {
    enum fleet_event_kind kind;
    struct fleet_digest digest;
    size_t length; /* of the text */
    char *text;
};

struct contents {
    uint64_t epoch, number, confirmed;
    uint64_t durable; /* the newest event that is on disk */
    struct fleet_digest digest, durable_digest;
    struct kept *events; /* the oldest first, with numbers that follow one another up to `number` */
    size_t count, room;
    uint64_t
        own; /* the first event that this process has added, or has given a number of this epoch */
};

struct fleet_outbox {
    unsigned magic;
#define FLEET_OUTBOX_MAGIC 0xf1ee0b0cu
    pthread_mutex_t lock; /* of all that follows */
    pthread_cond_t written;
    struct fleet_outbox_place place;
    char path[PATH];
    int fd, lock_fd;
    off_t length; /* of the file */
    uint64_t failures;
    int failed_with; /* errno of the last one */
    bool writing;    /* a thread writes, without the lock */
    struct contents has;
};

static uint64_t first_number(const struct fleet_outbox *outbox) {
    return outbox->has.number + 1 - outbox->has.count;
}

/* NULL: it is not kept. */
static struct kept *kept_of(const struct fleet_outbox *outbox, uint64_t number) {
    if (number > outbox->has.number || number < first_number(outbox))
        return NULL;
    return &outbox->has.events[number - first_number(outbox)];
}

static struct slice kept_text(const struct kept *kept) {
    return slice_make(kept->text, kept->length);
}

static void contents_release(struct contents *contents) {
    for (size_t i = 0; i < contents->count; i++)
        free(contents->events[i].text);
    free(contents->events);
}

static void outbox_forget_oldest(struct fleet_outbox *outbox, size_t count) {
    for (size_t i = 0; i < count; i++)
        free(outbox->has.events[i].text);
    outbox->has.count -= count;
    memmove(outbox->has.events, outbox->has.events + count,
            outbox->has.count * sizeof *outbox->has.events);
}

/* Takes the text. */
static void outbox_keep(struct fleet_outbox *outbox, enum fleet_event_kind kind, char *text) {
    if (outbox->has.count == outbox->has.room) {
        outbox->has.room = outbox->has.room == 0 ? 64 : 2 * outbox->has.room;
        outbox->has.events =
            xrealloc(outbox->has.events, outbox->has.room * sizeof *outbox->has.events);
    }
    struct kept *kept = &outbox->has.events[outbox->has.count++];
    *kept = (struct kept){.kind = kind, .length = strlen(text), .text = text};
    kept->digest = fleet_digest_of(kept_text(kept));
    outbox->has.number++;
    outbox->has.digest = kept->digest;
}

static bool fleet_outbox_fail(const struct fleet_outbox *outbox, const char *what,
                              char error[FLEET_ERROR]) {
    snprintf(error, FLEET_ERROR, "cannot %s %.400s: %s; free space there, or let this user write",
             what, outbox->path, strerror(errno));
    return false;
}

/* ---- events ------------------------------------------------------------------------------------ */

/* Makes the next event, which is not on disk yet. */
static void append(struct fleet_outbox *outbox, enum fleet_event_kind kind, struct slice body) {
    struct fleet_event event = {
        .kind = kind,
        .epoch = outbox->has.epoch,
        .number = outbox->has.number + 1,
        .before = outbox->has.digest,
        .body = body,
    };
    snprintf(event.node, sizeof event.node, "%s", outbox->place.node);
    outbox_keep(outbox, kind, fleet_event_write(&event, outbox->place.key));
}

/* Takes back what did not get to the disk. */
static void outbox_take_back(struct fleet_outbox *outbox) {
    while (outbox->has.number > outbox->has.durable) {
        free(outbox->has.events[--outbox->has.count].text);
        outbox->has.number--;
    }
    outbox->has.digest = outbox->has.durable_digest;
}

/* ---- the file ---------------------------------------------------------------------------------- */

static bool write_all(int fd, const char *bytes, size_t length, off_t at) {
    while (length > 0) {
        ssize_t put = pwrite(fd, bytes, length, at);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return false;
        bytes += put;
        length -= (size_t)put;
        at += put;
    }
    return true;
}

/* The events behind `after`, as the file has them. */
static char *records_of(const struct fleet_outbox *outbox, uint64_t after, size_t *length) {
    char *text = NULL;
    FILE *out = open_memstream(&text, length);
    ASSERT(out != NULL);
    const struct kept *kept;
    for (uint64_t number = after < first_number(outbox) ? first_number(outbox) : after + 1;
         (kept = kept_of(outbox, number)) != NULL; number++)
        fprintf(out, "%zu %s\n", kept->length, kept->text);
    fclose(out);
    return text;
}

/* A name that was given to another file stays with it behind a loss of power. */
static void outbox_sync_directory(const struct fleet_outbox *outbox) {
    int fd = open(outbox->place.directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        fsync(fd);
        close(fd);
    }
}

/* Writes the file anew, under the lock: it has what is kept. */
static bool rewrite(struct fleet_outbox *outbox, char error[FLEET_ERROR]) {
    char path[PATH + 8], head[HEAD];
    size_t length;
    snprintf(path, sizeof path, "%s.new", outbox->path);
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return fleet_outbox_fail(outbox, "write", error);
    int head_length = snprintf(head, sizeof head, "retort-outbox 1 %s %016" PRIx64 "\n",
                               outbox->place.node, outbox->has.epoch);
    char *records = records_of(outbox, 0, &length);
    bool good = write_all(fd, head, (size_t)head_length, 0) &&
                write_all(fd, records, length, head_length) && fsync(fd) == 0 &&
                rename(path, outbox->path) == 0;
    free(records);
    if (!good) {
        fleet_outbox_fail(outbox, "write", error);
        close(fd);
        unlink(path);
        return false;
    }
    outbox_sync_directory(outbox);
    close(outbox->fd);
    outbox->fd = fd;
    outbox->length = head_length + (off_t)length;
    outbox->has.durable = outbox->has.number;
    outbox->has.durable_digest = outbox->has.digest;
    return true;
}

static bool flush(int fd, const char *records, size_t length, off_t at) {
    return write_all(fd, records, length, at) && fdatasync(fd) == 0;
}

/* Writes what waits, with the lock released meanwhile. */
static void write_out(struct fleet_outbox *outbox) {
    size_t length;
    uint64_t until = outbox->has.number;
    struct fleet_digest digest = outbox->has.digest;
    char *records = records_of(outbox, outbox->has.durable, &length);
    outbox->writing = true;
    pthread_mutex_unlock(&outbox->lock);
    bool good = flush(outbox->fd, records, length, outbox->length);
    int number = errno;
    pthread_mutex_lock(&outbox->lock);
    outbox->writing = false;
    free(records);
    if (good) {
        outbox->length += (off_t)length;
        outbox->has.durable = until;
        outbox->has.durable_digest = digest;
    } else {
        outbox->failures++;
        outbox->failed_with = number;
        outbox_take_back(outbox);
        if (ftruncate(outbox->fd, outbox->length) != 0) {
            /* The next write stands over it. */
        }
    }
    pthread_cond_broadcast(&outbox->written);
}

/* A record; its end in *at. False: there is none that is whole. */
static bool outbox_take_record(struct slice text, size_t *at, struct slice *event) {
    char *rest;
    const char *begin = text.base + *at;
    unsigned long length = strtoul(begin, &rest, 10);
    size_t head = (size_t)(rest - begin) + 1, left = text.length - *at;
    if (rest == begin || *rest != ' ' || length > FLEET_TEXT_MAX || head + length + 1 > left ||
        begin[head + length] != '\n')
        return false;
    *event = slice_make(begin + head, length);
    *at += head + length + 1;
    return true;
}

static bool outbox_take_event(struct fleet_outbox *outbox, struct slice text) {
    struct fleet_event event;
    if (!fleet_event_read(&event, text, outbox->place.key) || event.epoch != outbox->has.epoch ||
        strcmp(event.node, outbox->place.node) != 0 ||
        (outbox->has.count > 0 && event.number != outbox->has.number + 1))
        return false;
    outbox->has.number = event.number - 1;
    outbox_keep(outbox, event.kind, slice_dup(text));
    return true;
}

/* What a write has left half done at the end of the file is cut off. */
static enum fleet_outbox_found read_file(struct fleet_outbox *outbox, struct slice text,
                                         char error[FLEET_ERROR]) {
    char node[FLEET_NAME_MAX];
    int head = 0;
    struct slice event;
    if (sscanf(text.base, "retort-outbox 1 %63s %16" SCNx64 "%n", node, &outbox->has.epoch,
               &head) != 2 ||
        head == 0 || text.base[head] != '\n' || strcmp(node, outbox->place.node) != 0) {
        snprintf(error, FLEET_ERROR,
                 "%.400s is not that of the node %s: give each node a state directory of its own, "
                 "or remove the file",
                 outbox->path, outbox->place.node);
        return FLEET_OUTBOX_FAILED;
    }
    size_t at = (size_t)head + 1, whole = at;
    while (outbox_take_record(text, &at, &event)) {
        if (outbox_take_event(outbox, event)) {
            whole = at;
            continue;
        }
        if (outbox->has.count > 0) /* half of it was written */
            break;
        snprintf(error, FLEET_ERROR,
                 "%.300s has events that another key has signed: put the key_file back that it was "
                 "written with, or remove the file, and with it what was not told yet",
                 outbox->path);
        return FLEET_OUTBOX_FAILED;
    }
    outbox->length = (off_t)whole;
    outbox->has.durable = outbox->has.number;
    outbox->has.durable_digest = outbox->has.digest;
    outbox->has.own = outbox->has.number + 1;
    if (ftruncate(outbox->fd, outbox->length) != 0) {
        fleet_outbox_fail(outbox, "write", error);
        return FLEET_OUTBOX_FAILED;
    }
    return outbox->has.count > 0 ? FLEET_OUTBOX_KNOWN : FLEET_OUTBOX_NEW;
}

static enum fleet_outbox_found load(struct fleet_outbox *outbox, char error[FLEET_ERROR]) {
    struct stat about;
    outbox->fd = open(outbox->path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (outbox->fd < 0 || fstat(outbox->fd, &about) != 0) {
        fleet_outbox_fail(outbox, "open", error);
        return FLEET_OUTBOX_FAILED;
    }
    if (about.st_size == 0)
        return FLEET_OUTBOX_NEW;
    char *text = xmalloc((size_t)about.st_size + 1);
    ssize_t got = pread(outbox->fd, text, (size_t)about.st_size, 0);
    enum fleet_outbox_found found = FLEET_OUTBOX_FAILED;
    if (got == about.st_size) {
        text[got] = '\0';
        found = read_file(outbox, slice_make(text, (size_t)got), error);
    } else {
        fleet_outbox_fail(outbox, "read", error);
    }
    free(text);
    return found;
}

/* The lock is on a file of its own, since the other one is replaced. */
static enum fleet_outbox_found take_lock(struct fleet_outbox *outbox, char error[FLEET_ERROR]) {
    char path[PATH + 8];
    snprintf(path, sizeof path, "%s.lock", outbox->path);
    outbox->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (outbox->lock_fd < 0) {
        fleet_outbox_fail(outbox, "lock", error);
        return FLEET_OUTBOX_FAILED;
    }
    if (flock(outbox->lock_fd, LOCK_EX | LOCK_NB) == 0)
        return FLEET_OUTBOX_KNOWN;
    if (errno == EWOULDBLOCK)
        return FLEET_OUTBOX_BUSY;
    fleet_outbox_fail(outbox, "lock", error);
    return FLEET_OUTBOX_FAILED;
}

enum fleet_outbox_found fleet_outbox_open(struct fleet_outbox **outboxp,
                                          const struct fleet_outbox_place *place,
                                          char error[FLEET_ERROR]) {
    struct fleet_outbox *outbox;
    ALLOC_OBJ(outbox, FLEET_OUTBOX_MAGIC);
    outbox->place = *place;
    outbox->fd = -1;
    pthread_mutex_init(&outbox->lock, NULL);
    pthread_cond_init(&outbox->written, NULL);
    snprintf(outbox->path, sizeof outbox->path, "%s/outbox", place->directory);
    enum fleet_outbox_found found = take_lock(outbox, error);
    if (found == FLEET_OUTBOX_KNOWN)
        found = load(outbox, error);
    *outboxp = outbox;
    if (found == FLEET_OUTBOX_FAILED || found == FLEET_OUTBOX_BUSY)
        fleet_outbox_close(outboxp);
    return found;
}

void fleet_outbox_close(struct fleet_outbox **outboxp) {
    struct fleet_outbox *outbox = *outboxp;
    *outboxp = NULL;
    if (outbox == NULL)
        return;
    CHECK_OBJ(outbox, FLEET_OUTBOX_MAGIC);
    contents_release(&outbox->has);
    if (outbox->fd >= 0)
        close(outbox->fd);
    if (outbox->lock_fd >= 0)
        close(outbox->lock_fd);
    pthread_mutex_destroy(&outbox->lock);
    pthread_cond_destroy(&outbox->written);
    FREE_OBJ(outbox);
}

/* ---- what it does ------------------------------------------------------------------------------ */

/* The body of an event that is kept. */
static struct slice outbox_body_of(const struct fleet_outbox *outbox, const struct kept *kept) {
    struct fleet_event event;
    bool good = fleet_event_read(&event, kept_text(kept), outbox->place.key);
    ASSERT(good);
    return event.body;
}

bool fleet_outbox_begin(struct fleet_outbox *outbox, const struct fleet_end *end,
                        char error[FLEET_ERROR]) {
    char text[FLEET_END_TEXT];
    CHECK_OBJ(outbox, FLEET_OUTBOX_MAGIC);
    pthread_mutex_lock(&outbox->lock);
    /* Who adds knows its event by the number, until it is on disk. */
    while (outbox->writing || outbox->has.durable != outbox->has.number)
        pthread_cond_wait(&outbox->written, &outbox->lock);
    struct contents before = outbox->has;
    uint64_t first = first_number(outbox);
    outbox->has = (struct contents){.own = 1};
    random_fill(&outbox->has.epoch, sizeof outbox->has.epoch);
    append(outbox, FLEET_START, fleet_end_write(end, text));
    for (size_t i = 0; i < before.count; i++)
        if (first + i > before.confirmed && before.events[i].kind != FLEET_START)
            append(outbox, before.events[i].kind, outbox_body_of(outbox, &before.events[i]));
    bool good = rewrite(outbox, error);
    contents_release(good ? &before : &outbox->has);
    if (!good)
        outbox->has = before;
    pthread_mutex_unlock(&outbox->lock);
    return good;
}

bool fleet_outbox_add(struct fleet_outbox *outbox, enum fleet_event_kind kind, struct slice body,
                      uint64_t *number, char error[FLEET_ERROR]) {
    CHECK_OBJ(outbox, FLEET_OUTBOX_MAGIC);
    if (body.length > FLEET_BODY_MAX) {
        snprintf(error, FLEET_ERROR, "it is longer than %u bytes: tell the fleet less at a time",
                 FLEET_BODY_MAX);
        return false;
    }
    pthread_mutex_lock(&outbox->lock);
    if ((size_t)outbox->length + body.length > outbox->place.most) {
        pthread_mutex_unlock(&outbox->lock);
        snprintf(error, FLEET_ERROR,
                 "%.400s has %zu bytes that the engine has not taken yet: see why it is away",
                 outbox->path, outbox->place.most);
        return false;
    }
    append(outbox, kind, body);
    uint64_t mine = outbox->has.number, failures = outbox->failures;
    while (outbox->has.durable < mine && outbox->failures == failures) {
        if (outbox->writing)
            pthread_cond_wait(&outbox->written, &outbox->lock);
        else
            write_out(outbox);
    }
    bool good = outbox->failures == failures;
    errno = outbox->failed_with;
    pthread_mutex_unlock(&outbox->lock);
    *number = mine;
    return good || fleet_outbox_fail(outbox, "write", error);
}

bool fleet_outbox_next(struct fleet_outbox *outbox, uint64_t after,
                       struct fleet_outbox_entry *entry) {
    CHECK_OBJ(outbox, FLEET_OUTBOX_MAGIC);
    pthread_mutex_lock(&outbox->lock);
    uint64_t number = after < first_number(outbox) ? first_number(outbox) : after + 1;
    const struct kept *kept = number <= outbox->has.durable ? kept_of(outbox, number) : NULL;
    if (kept != NULL) {
        entry->number = number;
        entry->text = slice_make(slice_dup(kept_text(kept)), kept->length);
    }
    pthread_mutex_unlock(&outbox->lock);
    return kept != NULL;
}

struct fleet_end fleet_outbox_end(struct fleet_outbox *outbox, uint64_t number) {
    CHECK_OBJ(outbox, FLEET_OUTBOX_MAGIC);
    pthread_mutex_lock(&outbox->lock);
    const struct kept *kept = kept_of(outbox, number);
    struct fleet_end end = {.known = true, .epoch = outbox->has.epoch};
    if (kept != NULL) {
        end.number = number;
        end.digest = kept->digest;
    }
    pthread_mutex_unlock(&outbox->lock);
    return end;
}

/* Drops what nobody asks for any more, when that is half of the file. */
static void drop_old(struct fleet_outbox *outbox) {
    char error[FLEET_ERROR];
    uint64_t first = first_number(outbox);
    bool large = (size_t)outbox->length > outbox->place.most / 2;
    uint64_t kept = large ? FLEET_OUTBOX_KEPT / 64 : FLEET_OUTBOX_KEPT;
    if (outbox->writing || outbox->has.durable != outbox->has.number ||
        outbox->has.confirmed < first + 2 * kept)
        return;
    outbox_forget_oldest(outbox, outbox->has.confirmed - first - kept);
    rewrite(outbox, error); /* else the file stays longer than it need be */
}

void fleet_outbox_confirm(struct fleet_outbox *outbox, const struct fleet_event *event,
                          const struct fleet_digest *digest) {
    CHECK_OBJ(outbox, FLEET_OUTBOX_MAGIC);
    pthread_mutex_lock(&outbox->lock);
    const struct kept *kept = kept_of(outbox, event->number);
    if (event->epoch == outbox->has.epoch && kept != NULL &&
        event->number > outbox->has.confirmed && event->number <= outbox->has.durable &&
        fleet_digest_equal(&kept->digest, digest))
        outbox->has.confirmed = event->number;
    drop_old(outbox);
    pthread_mutex_unlock(&outbox->lock);
}

enum fleet_outbox_owner fleet_outbox_owner(struct fleet_outbox *outbox,
                                           const struct fleet_event *event,
                                           const struct fleet_digest *digest) {
    CHECK_OBJ(outbox, FLEET_OUTBOX_MAGIC);
    enum fleet_outbox_owner owner = FLEET_OUTBOX_EARLIER;
    pthread_mutex_lock(&outbox->lock);
    const struct kept *kept = kept_of(outbox, event->number);
    if (event->epoch != outbox->has.epoch)
        owner = FLEET_OUTBOX_OTHER;
    else if (event->number > outbox->has.number ||
             (kept != NULL && !fleet_digest_equal(&kept->digest, digest)))
        owner = FLEET_OUTBOX_FORKED;
    else if (kept != NULL && event->number >= outbox->has.own)
        owner = FLEET_OUTBOX_MINE;
    pthread_mutex_unlock(&outbox->lock);
    return owner;
}

bool fleet_outbox_follows(struct fleet_outbox *outbox, const struct fleet_end *end) {
    struct fleet_end start;
    CHECK_OBJ(outbox, FLEET_OUTBOX_MAGIC);
    pthread_mutex_lock(&outbox->lock);
    const struct kept *first = kept_of(outbox, 1);
    bool follows = first != NULL && fleet_end_read(&start, outbox_body_of(outbox, first)) &&
                   start.known && start.epoch == end->epoch && start.number == end->number &&
                   fleet_digest_equal(&start.digest, &end->digest);
    pthread_mutex_unlock(&outbox->lock);
    return follows;
}

struct fleet_outbox_state fleet_outbox_state(struct fleet_outbox *outbox) {
    CHECK_OBJ(outbox, FLEET_OUTBOX_MAGIC);
    pthread_mutex_lock(&outbox->lock);
    struct fleet_outbox_state state = {
        .epoch = outbox->has.epoch,
        .number = outbox->has.durable,
        .confirmed = outbox->has.confirmed,
        .digest = outbox->has.durable_digest,
        .bytes = (size_t)outbox->length,
    };
    pthread_mutex_unlock(&outbox->lock);
    return state;
}
