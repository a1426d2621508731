#include "net/hosts_file.h"

#include "base/assert.h"
#include "base/log.h"
#include "net/secret_hash.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

enum { LOOK_EVERY = 1000, NAME_MAX_BYTES = 253, FIRST_TABLE = 64 };

/* One address of one name. Those of a name stand in the order of the file. */
struct host_line {
    struct host_line *next;
    struct address address;
    struct slice name;
    char bytes[];
};

struct hosts_file {
    unsigned magic;
#define HOSTS_FILE_MAGIC 0x405750feu
    char *path;
    uint64_t looked_at; /* milliseconds of the loop's clock */
    bool read, complained;
    struct stat seen;
    struct host_line **table; /* of `size` chains */
    size_t size, count;
};

static struct host_line **hosts_chain_of(const struct hosts_file *hosts, struct slice name) {
    return &hosts->table[secret_hash(name) % hosts->size];
}

static void hosts_append_line(struct hosts_file *hosts, struct host_line *line) {
    struct host_line **at = hosts_chain_of(hosts, line->name);
    while (*at != NULL)
        at = &(*at)->next;
    line->next = NULL;
    *at = line;
}

/* Keeps the chains short. */
static void hosts_file_grow(struct hosts_file *hosts) {
    struct host_line **old = hosts->table;
    size_t size = hosts->size;
    if (hosts->count < size * 2 && old != NULL)
        return;
    hosts->size = old == NULL ? FIRST_TABLE : size * 4;
    hosts->table = xcalloc(hosts->size, sizeof *hosts->table);
    for (size_t i = 0; old != NULL && i < size; i++)
        for (struct host_line *line = old[i], *next; line != NULL; line = next) {
            next = line->next;
            hosts_append_line(hosts, line);
        }
    free(old);
}

static void hosts_file_clear(struct hosts_file *hosts) {
    for (size_t i = 0; i < hosts->size; i++)
        for (struct host_line *line = hosts->table[i], *next; line != NULL; line = next) {
            next = line->next;
            free(line);
        }
    free(hosts->table);
    hosts->table = NULL;
    hosts->size = hosts->count = 0;
}

static void hosts_file_add(struct hosts_file *hosts, const struct address *address,
                           struct slice name) {
    while (name.length > 0 && name.base[name.length - 1] == '.')
        name.length--;
    if (name.length == 0 || name.length > NAME_MAX_BYTES)
        return;
    struct host_line *line = xcalloc(1, sizeof *line + name.length);
    line->address = *address;
    slice_put_lower(line->bytes, name);
    line->name = slice_make(line->bytes, name.length);
    hosts_file_grow(hosts);
    hosts_append_line(hosts, line);
    hosts->count++;
}

static bool is_hosts_blank(char byte) {
    return byte == ' ' || byte == '\t' || byte == '\r' || byte == '\n';
}

/* Takes a word off the front of *rest; empty: there is none. */
static struct slice hosts_next_field(struct slice *rest) {
    const char *at = rest->base, *end = at + rest->length;
    while (at < end && is_hosts_blank(*at))
        at++;
    const char *word = at;
    while (at < end && !is_hosts_blank(*at))
        at++;
    *rest = slice_make(at, (size_t)(end - at));
    return slice_make(word, (size_t)(at - word));
}

static void hosts_file_read_line(struct hosts_file *hosts, struct slice line) {
    const char *comment = line.length > 0 ? memchr(line.base, '#', line.length) : NULL;
    struct address address;
    struct slice name;
    if (comment != NULL)
        line.length = (size_t)(comment - line.base);
    if (!address_parse_ip(&address, hosts_next_field(&line), 0))
        return;
    while ((name = hosts_next_field(&line)).length > 0)
        hosts_file_add(hosts, &address, name);
}

static bool hosts_file_read(struct hosts_file *hosts) {
    FILE *file = fopen(hosts->path, "re");
    char *line = NULL;
    size_t room = 0;
    ssize_t length;
    if (file == NULL)
        return false;
    hosts_file_clear(hosts);
    while ((length = getline(&line, &room, file)) >= 0)
        hosts_file_read_line(hosts, slice_make(line, (size_t)length));
    free(line);
    fclose(file);
    return true;
}

static bool is_unchanged(const struct stat *a, const struct stat *b) {
    return a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec &&
           a->st_size == b->st_size && a->st_ino == b->st_ino && a->st_dev == b->st_dev;
}

static void hosts_file_complain(struct hosts_file *hosts, const char *what) {
    if (!hosts->complained)
        log_warn("the hosts file %s %s; the names read before stay in use (origin.hosts_file)",
                 hosts->path, what);
    hosts->complained = true;
}

void hosts_file_refresh(struct hosts_file *hosts, uint64_t now) {
    struct stat status;
    if (hosts == NULL || (hosts->read && now - hosts->looked_at < LOOK_EVERY))
        return;
    CHECK_OBJ(hosts, HOSTS_FILE_MAGIC);
    bool first = !hosts->read;
    hosts->looked_at = now;
    hosts->read = true;
    if (stat(hosts->path, &status) != 0) {
        if (errno == ENOENT)
            hosts_file_clear(hosts);
        else
            hosts_file_complain(hosts, strerror(errno));
        memset(&hosts->seen, 0, sizeof hosts->seen);
        return;
    }
    if (!first && is_unchanged(&status, &hosts->seen))
        return;
    hosts->seen = status;
    if (!S_ISREG(status.st_mode))
        hosts_file_complain(hosts, "is no regular file");
    else if (status.st_size > HOSTS_FILE_MAX)
        hosts_file_complain(hosts, "is larger than 64 MB");
    else if (!hosts_file_read(hosts))
        hosts_file_complain(hosts, "can not be read");
    else
        hosts->complained = false;
}

struct hosts_file *hosts_file_new(const char *path) {
    struct hosts_file *hosts;
    if (path == NULL)
        return NULL;
    ALLOC_OBJ(hosts, HOSTS_FILE_MAGIC);
    hosts->path = xstrdup(path);
    return hosts;
}

void hosts_file_free(struct hosts_file **hostsp) {
    struct hosts_file *hosts = *hostsp;
    *hostsp = NULL;
    if (hosts == NULL)
        return;
    CHECK_OBJ(hosts, HOSTS_FILE_MAGIC);
    hosts_file_clear(hosts);
    free(hosts->path);
    FREE_OBJ(hosts);
}

unsigned hosts_file_find(const struct hosts_file *hosts, struct slice name,
                         struct address found[HOSTS_FILE_ADDRESSES]) {
    unsigned count = 0;
    if (hosts == NULL || hosts->size == 0)
        return 0;
    for (struct host_line *line = *hosts_chain_of(hosts, name); line != NULL; line = line->next)
        if (slice_equal(line->name, name) && count < HOSTS_FILE_ADDRESSES)
            found[count++] = line->address;
    return count;
}
