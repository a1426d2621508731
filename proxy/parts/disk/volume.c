#include "disk/volume.h"

#include "base/assert.h"
#include "base/log.h"
#include "base/random.h"
#include "disk/lending.h"
#include "disk/queue.h"
#include "disk/segment.h"
#include "disk/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include <linux/fs.h>

enum {
    SEGMENTS_WANTED = 256,
    SEGMENT_MAX = 64 << 20,
    SEGMENTS_LEAST = 4,
    PAGE = 4096,
    LOCK_PATIENCE = 5000, /* milliseconds, for a volume that another process lends */
};

static const char file_name[] = "retort.cache";

/* Opening. */

static int volume_refuse(char error[SETTINGS_ERROR], const char *path, const char *what,
                         const char *why, const char *advice) {
    snprintf(error, SETTINGS_ERROR, "disk %s: %s: %s; %s", path, what, why, advice);
    return -1;
}

/* A directory stands for the file retort.cache in it. */
static char *file_of(const char *path) {
    struct stat status;
    char *file = NULL;
    if (stat(path, &status) != 0 || !S_ISDIR(status.st_mode))
        return xstrdup(path);
    if (asprintf(&file, "%s/%s", path, file_name) < 0)
        ASSERT(false);
    return file;
}

/* The volume contains the secret of the cache's keys and all cached data. */
static void warn_of_readers(const struct volume *volume) {
    struct stat status;
    if (fstat(volume->fd, &status) == 0 &&
        (status.st_mode & (S_ISREG(status.st_mode) ? S_IRWXG | S_IRWXO : S_IRWXO)) != 0)
        log_warn("disk %s: users other than its owner can read or write it, and so the secret in "
                 "it that protects the cache: run chmod 600",
                 volume->path);
}

static uint64_t device_size(int fd) {
    uint64_t size = 0;
    return ioctl(fd, BLKGETSIZE64, &size) == 0 ? size : 0;
}

static uint64_t size_at(const char *device) {
    int fd = open(device, O_RDONLY | O_CLOEXEC);
    uint64_t size = fd < 0 ? 0 : device_size(fd);
    if (fd >= 0)
        close(fd);
    return size;
}

/* With the slash; the caller frees it. */
static char *volume_directory_of(const char *path) {
    const char *last = strrchr(path, '/');
    return last == NULL ? slice_dup(SLICE("."))
                        : slice_dup(slice_make(path, (size_t)(last - path) + 1));
}

/* 0, or why a file in the directory of this one can't have the size. Where that can't be tried
 * without making a file, the start tells. */
static int size_possible(const char *path, uint64_t size) {
    char *directory = volume_directory_of(path);
    int fd = open(directory, O_RDWR | O_TMPFILE | O_CLOEXEC, 0600), reason = 0;
    if (fd >= 0 && ftruncate(fd, (off_t)size) != 0)
        reason = errno;
    if (fd >= 0)
        close(fd);
    free(directory);
    return reason;
}

/* A slip in the name of a directory is no wish for a new file, as large as the disk, in the directory above. */
bool volume_is_there(const struct disk_settings *settings, char error[SETTINGS_ERROR]) {
    struct stat status;
    bool there = stat(settings->path, &status) == 0;
    if (!there)
        volume_refuse(error, settings->path, "cannot open it", strerror(errno),
                      "correct the path, or make the directory, or an empty file, that retort may "
                      "write");
    return there;
}

/* The file of a directory is made by the start. */
static bool may_open(const char *path) {
    char *directory = volume_directory_of(path);
    bool may = access(path, F_OK) == 0 ? access(path, R_OK | W_OK) == 0
                                       : access(directory, W_OK | X_OK) == 0;
    int reason = errno;
    free(directory);
    errno = reason;
    return may;
}

bool volume_possible(const struct disk_settings *settings, char error[SETTINGS_ERROR]) {
    static const char advice[] = "choose a directory, a file or a device that retort may write, "
                                 "no link, and a size that it has";
    struct stat status;
    if (!volume_is_there(settings, error))
        return false;
    char *path = file_of(settings->path);
    bool made = stat(path, &status) == 0;
    int reason = 0;
    if (made && !S_ISREG(status.st_mode) && !S_ISBLK(status.st_mode))
        reason = EINVAL;
    else if (!may_open(path))
        reason = errno;
    else if (made && lstat(path, &status) == 0 && S_ISLNK(status.st_mode))
        reason = ELOOP; /* whoever owns the link could lead retort to another file */
    else if (made && S_ISBLK(status.st_mode) && size_at(path) < settings->size)
        reason = ENOSPC;
    bool other = stat(path, &status) != 0 ||
                 (S_ISREG(status.st_mode) && (uint64_t)status.st_size != settings->size);
    int too_large = reason == 0 && other ? size_possible(path, settings->size) : 0;
    if (reason != 0)
        volume_refuse(error, path, "cannot open it", strerror(reason), advice);
    else if (too_large != 0)
        volume_refuse(error, path, "its space can not be reserved", strerror(too_large),
                      "lower size");
    free(path);
    return reason == 0 && too_large == 0;
}

bool volume_fits(const struct disk_settings *settings, char error[SETTINGS_ERROR]) {
    struct stat status;
    struct statvfs file_system;
    char *path = file_of(settings->path), *directory = volume_directory_of(path);
    bool device = stat(path, &status) == 0 && S_ISBLK(status.st_mode);
    bool fits = device || statvfs(directory, &file_system) != 0 ||
                settings->size / file_system.f_frsize < file_system.f_blocks;
    if (!fits)
        volume_refuse(error, path, "there is no room for it",
                      "size is larger than the whole file system", "lower size");
    free(directory);
    free(path);
    return fits;
}

/* A process that was killed keeps its locks a moment longer than its connections. */
static bool volume_lock(const struct volume *volume, unsigned patience) {
    enum { PAUSE = 10 };
    for (unsigned waited = 0; flock(volume->fd, LOCK_EX | LOCK_NB) != 0; waited += PAUSE) {
        if (errno != EWOULDBLOCK || waited >= patience)
            return false;
        usleep(PAUSE * 1000);
    }
    return true;
}

static int open_file(struct volume *volume, char error[SETTINGS_ERROR]) {
    const char *path = volume->path;
    volume->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (volume->fd < 0)
        return volume_refuse(error, path, "cannot open it", strerror(errno),
                             "choose a directory, a file or a device that retort may write");
    if (!volume_lock(volume, volume->hooks.taken ? LOCK_PATIENCE : 0))
        return volume_refuse(error, path, "it is in use", strerror(errno),
                             "stop the other retort, or give each a disk of its own");
    warn_of_readers(volume);
    return 0;
}

/* An attempt to reserve more than there is would take all that is there from everybody else. */
static bool has_room_for(int fd, const struct stat *status, uint64_t wanted) {
    struct statvfs file_system;
    uint64_t taken = (uint64_t)status->st_blocks * 512;
    if (fstatvfs(fd, &file_system) != 0)
        return true;
    return wanted <= taken || (wanted - taken) / file_system.f_frsize < file_system.f_bavail;
}

/* All space is reserved at once, so that it is contiguous and always there. Where this is
 * impossible, the file has holes and a write may fail. */
static int volume_reserve(struct volume *volume, char error[SETTINGS_ERROR]) {
    struct stat status;
    const char *path = volume->path;
    uint64_t wanted = volume->settings->size;
    if (fstat(volume->fd, &status) != 0)
        return volume_refuse(error, path, "its status can not be read", strerror(errno),
                             "choose another path");
    if (S_ISBLK(status.st_mode)) {
        if (device_size(volume->fd) < wanted)
            return volume_refuse(error, path, "the device is too small",
                                 "size is larger than the device",
                                 "lower size to at most the size of the device");
        return 0;
    }
    if (!S_ISREG(status.st_mode))
        return volume_refuse(error, path, "it is neither a file nor a device",
                             "it can't be written", "choose a directory, a file or a device");
    if ((uint64_t)status.st_size != wanted && ftruncate(volume->fd, (off_t)wanted) != 0)
        return volume_refuse(error, path, "its space can not be reserved", strerror(errno),
                             "lower size");
    int failed = has_room_for(volume->fd, &status, wanted)
                     ? posix_fallocate(volume->fd, 0, (off_t)wanted)
                     : ENOSPC;
    if (failed != 0)
        log_warn("disk %s: its whole size can not be reserved: %s; objects that find no space are "
                 "not stored there: free some space, or lower size",
                 path, strerror(failed));
    return 0;
}

/* Before the segments where there is room, otherwise after them. */
static void plan_purges(struct volume_header *header) {
    uint64_t size = header->size / PURGES_SHARE / PAGE * PAGE;
    bool small = size <= PURGES_LEAST;
    header->purges_size = small ? PURGES_LEAST : size < PURGES_MOST ? size : PURGES_MOST;
    header->purges_at = small ? VOLUME_HEADER_SIZE
                              : header->size / PAGE * PAGE - PURGES_AREAS * header->purges_size;
}

static void plan_segments(struct volume_header *header, uint64_t size) {
    uint64_t segment = size / SEGMENTS_WANTED / SEGMENT_UNIT * SEGMENT_UNIT;
    segment = segment < SEGMENT_UNIT ? SEGMENT_UNIT : segment > SEGMENT_MAX ? SEGMENT_MAX : segment;
    memset(header, 0, sizeof *header);
    header->size = size;
    header->segment_size = segment;
    plan_purges(header);
    uint64_t end = header->purges_at > SEGMENTS_AT ? header->purges_at : size;
    header->segment_count = (uint32_t)((end - SEGMENTS_AT) / segment);
    volume_header_seal(header);
}

static bool same_plan(const struct volume_header *a, const struct volume_header *b) {
    return a->size == b->size && a->segment_size == b->segment_size &&
           a->segment_count == b->segment_count;
}

static bool same_secret(const struct volume_header *header) {
    return memcmp(&header->secret, cache_secret(), sizeof header->secret) == 0;
}

static bool volume_read_header(int fd, struct volume_header *header) {
    memset(header, 0, sizeof *header);
    return pread(fd, header, sizeof *header, 0) == (ssize_t)sizeof *header &&
           volume_header_good(header);
}

bool volume_read_secret(const struct disk_settings *settings, struct cache_secret *secret) {
    struct volume_header header, plan;
    char *path = file_of(settings->path);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    plan_segments(&plan, settings->size);
    bool good = fd >= 0 && volume_read_header(fd, &header) && same_plan(&header, &plan);
    if (good)
        *secret = header.secret;
    if (fd >= 0)
        close(fd);
    free(path);
    return good;
}

/* What the header of a volume is for the settings. */
struct header_state {
    struct volume_header found;
    bool usable;   /* its objects count */
    char why[120]; /* why they do not; empty: there was no header */
};

static void volume_explain(const struct volume_header *found, const struct volume_header *plan,
                           bool good, char why[120]) {
    if (good && !same_plan(found, plan))
        snprintf(why, 120, "its size has changed from %lu to %lu bytes", (unsigned long)found->size,
                 (unsigned long)plan->size);
    else if (good)
        snprintf(why, 120,
                 "its secret differs from that of the disks before it in the configuration");
    else if (volume_header_is_of_another_version(found))
        snprintf(why, 120, "it was written by another version of retort");
    else if (found->magic != 0)
        snprintf(why, 120, "its header is damaged or not retort's");
}

static void volume_look(const struct volume *volume, struct header_state *state) {
    struct volume_header plan;
    plan_segments(&plan, volume->settings->size);
    bool good = volume_read_header(volume->fd, &state->found);
    state->usable = good && same_plan(&state->found, &plan) && same_secret(&state->found);
    state->why[0] = '\0';
    if (!state->usable)
        volume_explain(&state->found, &plan, good, state->why);
}

/* The other process may still send from a volume that it has lent, and would lose its cache if this
 * one failed later. So the volume is not emptied. One that is new has no header. */
static int refuse_to_empty(const struct volume *volume, char error[SETTINGS_ERROR]) {
    struct header_state state;
    bool read = read_locks_of_others(volume, 0, 0);
    if (!volume->hooks.taken && !read)
        return 0;
    volume_look(volume, &state);
    if (state.why[0] == '\0')
        return 0;
    if (!volume->hooks.taken)
        return volume_refuse(error, volume->path, "it would start empty", state.why,
                             "another retort still sends from it: wait for its end, or configure "
                             "the disk as that one has it");
    return volume_refuse(error, volume->path, "it would start empty", state.why,
                         "so it can not be taken over: stop the other retort and start this one, "
                         "or configure the disk as the other one has it");
}

/* Reads the header, or writes a new one on an empty volume. */
static int begin_header(struct volume *volume, char error[SETTINGS_ERROR]) {
    struct volume_header *header = &volume->header;
    struct header_state state;
    volume_look(volume, &state);
    if (state.usable) {
        *header = state.found;
        return 0;
    }
    if (state.why[0] != '\0')
        log_warn("disk %s: %s: it starts empty", volume->path, state.why);
    plan_segments(header, volume->settings->size);
    random_fill(&header->identity, sizeof header->identity);
    header->secret = *cache_secret();
    volume_header_seal(header);
    if (!volume_blank_purges(volume) ||
        pwrite(volume->fd, header, sizeof *header, 0) != (ssize_t)sizeof *header)
        return volume_refuse(error, volume->path, "cannot write to it", strerror(errno),
                             "check the device and its free space");
    return 0;
}

/* As on machines with larger pages. */
static bool has_larger_folios(void) {
    unsigned long size = 0;
    FILE *file = fopen("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size", "re");
    if (file == NULL)
        return sysconf(_SC_PAGESIZE) != PAGE;
    bool known = fscanf(file, "%lu", &size) == 1;
    fclose(file);
    return !known || size > SEGMENT_UNIT;
}

static int begin_segments(struct volume *volume, char error[SETTINGS_ERROR]) {
    volume->copies = has_larger_folios() || !segment_detach_pages(volume->fd, PAGE, PAGE);
    const struct volume_header *header = &volume->header;
    if (header->segment_count < SEGMENTS_LEAST)
        return volume_refuse(error, volume->path, "it is too small", "a few MB are needed",
                             "raise size");
    if (header->segment_size / RECORD_ALIGN * header->segment_count > UINT32_MAX - 1)
        return volume_refuse(error, volume->path, "it is too large",
                             "a volume can have at most 2 TB", "use several disk sections");
    volume->segments = xcalloc(header->segment_count, sizeof *volume->segments);
    for (uint32_t i = 0; i < header->segment_count; i++) {
        volume->segments[i].run = 1;
        list_init(&volume->segments[i].bodies);
        atomic_init(&volume->segments[i].oldest, UINT64_MAX);
        /* By a process that has ended: the kernel goes on to send what is in its sockets. */
        atomic_init(&volume->segments[i].sent, true);
    }
    volume->index =
        disk_index_new(header->segment_count, segment_blocks(volume), volume->hooks.max_variants);
    volume->open_segment = VOLUME_NONE;
    volume->next_sequence = 1;
    void *map = mmap(NULL, header->size, PROT_READ, MAP_SHARED | MAP_NORESERVE, volume->fd, 0);
    volume->map = map == MAP_FAILED ? NULL : map;
    return 0;
}

static void volume_release(struct volume *volume) {
    segment_release_rescued(volume);
    if (volume->index != NULL)
        disk_index_free(&volume->index);
    if (volume->map != NULL)
        munmap(volume->map, volume->header.size);
    if (volume->fd >= 0)
        close(volume->fd);
    free(volume->absent);
    free(volume->contents);
    free(volume->segments);
    free(volume->path);
    pthread_mutex_destroy(&volume->bodies_lock);
    pthread_mutex_destroy(&volume->lock);
    pthread_cond_destroy(&volume->ready);
}

struct volume *volume_open(const struct disk_settings *settings, const struct volume_hooks *hooks,
                           char error[SETTINGS_ERROR]) {
    struct volume *volume;
    ALLOC_OBJ(volume, VOLUME_MAGIC);
    volume->settings = settings;
    volume->hooks = *hooks;
    volume->path = file_of(settings->path);
    volume->fd = -1;
    pthread_mutex_init(&volume->bodies_lock, NULL);
    pthread_mutex_init(&volume->lock, NULL);
    pthread_cond_init(&volume->ready, NULL);
    list_init(&volume->jobs);
    list_init(&volume->streams);
    list_init(&volume->rescued);
    if (open_file(volume, error) == 0 && refuse_to_empty(volume, error) == 0 &&
        volume_reserve(volume, error) == 0 && begin_header(volume, error) == 0 &&
        begin_segments(volume, error) == 0) {
        volume_recover(volume);
        return volume;
    }
    volume_release(volume);
    FREE_OBJ(volume);
    return NULL;
}

bool volume_reclaim(struct volume *volume, char error[SETTINGS_ERROR]) {
    if (flock(volume->fd, LOCK_EX | LOCK_NB) != 0) {
        volume_refuse(error, volume->path, "it can't be taken back yet", strerror(errno),
                      "another process uses it");
        return false;
    }
    read_locks_drop(volume);
    return volume_reserve(volume, error) == 0 && begin_header(volume, error) == 0;
}

void volume_close(struct volume **volumep) {
    struct volume *volume = *volumep;
    struct list_link *link;
    *volumep = NULL;
    if (volume == NULL)
        return;
    volume_stop(volume);
    while ((link = list_first(&volume->jobs)) != NULL) {
        struct volume_job *job = CONTAINER_OF(link, struct volume_job, link);
        list_remove(link);
        queue_free_job(job);
    }
    while ((link = list_first(&volume->streams)) != NULL)
        stream_free(CONTAINER_OF(link, struct volume_stream, link));
    volume_release(volume);
    FREE_OBJ(volume);
}

uint64_t volume_clock(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* Reading. */

bool volume_pin(struct volume *volume, const struct disk_place *place, uint64_t *sequence) {
    struct volume_segment *segment = &volume->segments[place->segment];
    atomic_fetch_add(&segment->pins, 1);
    if (!atomic_load(&segment->leaving)) {
        *sequence = atomic_load(&segment->sequence);
        return true;
    }
    atomic_fetch_sub(&segment->pins, 1);
    return false;
}

void volume_unpin(struct volume *volume, const struct disk_place *place) {
    atomic_fetch_sub(&volume->segments[place->segment].pins, 1);
}

void volume_report_read_error(struct volume *volume, uint64_t offset, int error) {
    atomic_fetch_add_explicit(&volume->count.errors, 1, memory_order_relaxed);
    log_error("disk %s: cannot read at %lu: %s; the object is lost: check the device", volume->path,
              (unsigned long)offset, strerror(error));
}

bool volume_read(struct volume *volume, uint64_t offset, void *bytes, size_t length,
                 enum volume_patience patience) {
    char *at = bytes;
    while (length > 0) {
        struct iovec piece = {at, length};
        ssize_t got = preadv2(volume->fd, &piece, 1, (off_t)offset,
                              patience == VOLUME_AT_ONCE ? RWF_NOWAIT : 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0 && patience == VOLUME_AT_ONCE)
            return false; /* a reader that may wait finds out the reason */
        if (got <= 0) {
            volume_report_read_error(volume, offset, got == 0 ? EIO : errno);
            return false;
        }
        at += got;
        offset += (uint64_t)got;
        length -= (size_t)got;
    }
    return true;
}

bool volume_is_resident(const struct volume *volume, uint64_t offset, size_t length) {
    enum { PAGES_MAX = 2 * RECORD_CHUNK / PAGE };
    unsigned char pages[PAGES_MAX];
    uint64_t begin = offset / PAGE * PAGE;
    size_t count = (size_t)((offset + length - begin + PAGE - 1) / PAGE);
    if (volume->map == NULL)
        return true; /* the state is unknown, and asking again would not help */
    if (count > PAGES_MAX || mincore(volume->map + begin, count * PAGE, pages) != 0)
        return false;
    for (size_t i = 0; i < count; i++)
        if ((pages[i] & 1) == 0)
            return false;
    return true;
}

void volume_report_bad(struct volume *volume, uint64_t key, const struct disk_place *place,
                       const char *what) {
    if (!disk_index_remove_place(volume->index, key, place->at))
        return;
    volume_note_lost(volume);
    atomic_fetch_add_explicit(&volume->count.corrupt, 1, memory_order_relaxed);
    log_error("disk %s: the record at %lu is damaged (%s); the object is lost: if this happens "
              "again, check the device",
              volume->path, (unsigned long)volume_offset(place->at), what);
}

void volume_statistics(const struct volume *volume, struct volume_statistics *statistics) {
#define LOAD(name)                                                                                 \
    statistics->name = atomic_load_explicit(&volume->count.name, memory_order_relaxed)
    statistics->objects = disk_index_count(volume->index);
    statistics->capacity = volume->header.segment_size * volume->header.segment_count;
    statistics->index_bytes = disk_index_memory(volume->index);
    LOAD(writes);
    LOAD(bytes_written);
    LOAD(dropped);
    LOAD(errors);
    LOAD(corrupt);
    LOAD(reclaimed);
    LOAD(rewritten);
#undef LOAD
}
