#include "net/hosts_file.h"

#include "base/assert.h"
#include "base/log.h"
#include "base/table.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

enum { LOOK_EVERY = 1000, NAME_MAX_BYTES = 253 };

/* A name, with its first addresses in the order of the file. */
struct host_name {
    struct table_entry entry;
    unsigned count;
    struct address *addresses;
    char bytes[];
};

struct hosts_file {
    unsigned magic;
#define HOSTS_FILE_MAGIC 0x405750feu
    char *path;
    uint64_t looked_at; /* milliseconds of the loop's clock */
    bool read, complained;
    struct stat seen;
    struct table names;
};

static void hosts_file_clear(struct hosts_file *hosts) {
    TABLE_FOR_EACH_SAFE(entry, following, &hosts->names) {
        struct host_name *name = CONTAINER_OF(entry, struct host_name, entry);
        table_remove(&hosts->names, entry);
        free(name->addresses);
        free(name);
    }
}

static struct host_name *hosts_file_make_name(struct hosts_file *hosts, struct slice lower) {
    struct host_name *name = xcalloc(1, sizeof *name + lower.length);
    table_add(&hosts->names, &name->entry, slice_copy(name->bytes, lower));
    return name;
}

static void hosts_file_add(struct hosts_file *hosts, const struct address *address,
                           struct slice text) {
    char lower[NAME_MAX_BYTES];
    while (text.length > 0 && text.base[text.length - 1] == '.')
        text.length--;
    if (text.length == 0 || text.length > NAME_MAX_BYTES)
        return;
    slice_put_lower(lower, text);
    text.base = lower;
    struct table_entry *entry = table_find(&hosts->names, text);
    struct host_name *name = entry == NULL ? hosts_file_make_name(hosts, text)
                                           : CONTAINER_OF(entry, struct host_name, entry);
    if (name->count == HOSTS_FILE_ADDRESSES)
        return;
    name->addresses = xrealloc(name->addresses, (name->count + 1) * sizeof *name->addresses);
    name->addresses[name->count++] = *address;
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
    table_init(&hosts->names);
    return hosts;
}

void hosts_file_free(struct hosts_file **hostsp) {
    struct hosts_file *hosts = *hostsp;
    *hostsp = NULL;
    if (hosts == NULL)
        return;
    CHECK_OBJ(hosts, HOSTS_FILE_MAGIC);
    hosts_file_clear(hosts);
    table_release(&hosts->names);
    free(hosts->path);
    FREE_OBJ(hosts);
}

unsigned hosts_file_find(const struct hosts_file *hosts, struct slice name,
                         struct address found[HOSTS_FILE_ADDRESSES]) {
    struct table_entry *entry = hosts == NULL ? NULL : table_find(&hosts->names, name);
    if (entry == NULL)
        return 0;
    const struct host_name *known = CONTAINER_OF(entry, const struct host_name, entry);
    memcpy(found, known->addresses, known->count * sizeof *found);
    return known->count;
}
