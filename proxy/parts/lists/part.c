#include "part.h"

#include "base/assert.h"
#include "base/failure.h"
#include "lists/list_file.h"
#include "lists/name_set.h"
#include "lists/url_set.h"
#include "match/network_set.h"
#include "match/url_class.h"
#include "settings/option_rows.h"
#include "settings/part_settings.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* The part lists: conditions of URL classes whose values stand in files. */

#define CONDITION(member) ONE("url_class", struct url_class_conditions, member)

static const struct option core_rows[] = {
    {CONDITION(host_files), .name = "host_file", .after = "not", STRINGS,
     .check = url_class_check_path,
     DOC "Lists files with further values of host: a name a line, or the lines of a hosts file "
         "(\"0.0.0.0 ads.example.com\"), of which names without a dot are left out. A # begins a "
         "comment. A million names are read in less than a second, and take about 40 MB. A reload "
         "reads the files again. A file that is empty, does not end with a line break, or contains "
         "a line that is not a name is refused, and the configuration at work stays.",
     .example = "\"/etc/retort/blocked.hosts\""},
    {CONDITION(domain_files), .name = "domain_file", .after = "host_file", STRINGS,
     .check = url_class_check_path,
     DOC "Lists files with further values of domain, written as those of host_file. A dot in front "
         "of a domain, as in the lists of Squid, is allowed.",
     .example = "\"/etc/retort/blocked.domains\""},
    {CONDITION(client_files), .name = "client_file", .after = "domain_file", STRINGS,
     .check = url_class_check_path,
     DOC "Lists files with further values of client: an address or a network a line.",
     .example = "\"/etc/retort/offices.networks\""},
    {CONDITION(destination_files), .name = "destination_file", .after = "client_file", STRINGS,
     .check = url_class_check_path,
     DOC "Lists files with further values of destination: an address or a network a line.",
     .example = "\"/etc/retort/blocked.networks\""},
    {CONDITION(url_files), .name = "url_file", .after = "destination_file", STRINGS,
     .check = url_class_check_path,
     DOC "Lists files with URLs, one a line. A line stands for exactly that URL, with its query; a "
         "line that ends with * stands for all URLs that begin like that. Without \"http://\" or "
         "\"https://\" it stands for both. URLs are compared in their normal form, so another "
         "spelling is the same URL. The URL of a CONNECT has no path and is in no such list.",
     .example = "\"/etc/retort/blocked.urls\""},
    {.name = NULL},
};

static const struct part_settings lists_part_settings = {.core_options = core_rows};

/* A larger file is a mistake: a list of ten million names is a quarter of this. */
enum { LIST_FILE_MAX = 1 << 30 };

static bool list_is_blank(char c) {
    return c == ' ' || c == '\t';
}

/* The line without its comment, which begins the line or stands behind a blank. */
static struct slice list_without_comment(struct slice line) {
    for (size_t i = 0; i < line.length; i++)
        if (line.base[i] == '#' && (i == 0 || list_is_blank(line.base[i - 1])))
            return slice_make(line.base, i);
    return line;
}

static bool has_control_character(struct slice line) {
    for (size_t i = 0; i < line.length; i++)
        if (((unsigned char)line.base[i] < 0x20 && line.base[i] != '\t') || line.base[i] == 0x7f)
            return true;
    return false;
}

/* One line, without its line break. */
static bool list_take_line(struct slice line, list_file_take *take, void *arg, char *error,
                           size_t error_size) {
    if (line.length > 0 && line.base[line.length - 1] == '\r')
        line.length--;
    if (line.length > LIST_FILE_LINE_MAX)
        return failure(error, error_size, "the line is too long");
    if (has_control_character(line))
        return failure(error, error_size,
                       "the line contains a control character; the file may be damaged, or half "
                       "written");
    line = slice_trim(list_without_comment(line));
    return line.length == 0 || take(arg, line, error, error_size);
}

bool list_file_parse(struct slice text, list_file_take *take, void *arg, size_t *line, char *error,
                     size_t error_size) {
    *line = 1;
    if (slice_starts_with(text, SLICE("\xef\xbb\xbf"))) /* a mark that some editors write */
        text = slice_make(text.base + 3, text.length - 3);
    if (text.length == 0)
        return failure(error, error_size,
                       "the list is empty; it may be half written. An empty list contains a line "
                       "with a comment: # none");
    for (; text.length > 0; ++*line) {
        const char *newline = memchr(text.base, '\n', text.length);
        if (newline == NULL)
            return failure(error, error_size,
                           "the last line does not end with a line break; the file may be half "
                           "written");
        size_t length = (size_t)(newline - text.base);
        if (!list_take_line(slice_make(text.base, length), take, arg, error, error_size))
            return false;
        text = slice_make(newline + 1, text.length - length - 1);
    }
    return true;
}

static bool list_read_all(int descriptor, char *bytes, size_t size) {
    for (size_t done = 0; done < size;) {
        ssize_t got = read(descriptor, bytes + done, size - done);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        done += (size_t)got;
    }
    return true;
}

static bool list_is_same(const struct stat *a, const struct stat *b) {
    return a->st_size == b->st_size && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
           a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* Reads the whole file into *text, which the caller frees. */
static bool list_read_text(int descriptor, struct slice *text, char *error, size_t error_size) {
    struct stat before, after;
    if (fstat(descriptor, &before) != 0 || !S_ISREG(before.st_mode))
        return failure(error, error_size, "is not a file");
    if (before.st_size > LIST_FILE_MAX)
        return failure(error, error_size, "is larger than 1 GB");
    char *bytes = xmalloc((size_t)before.st_size + 1);
    *text = slice_make(bytes, (size_t)before.st_size);
    if (list_read_all(descriptor, bytes, text->length) && fstat(descriptor, &after) == 0 &&
        list_is_same(&before, &after))
        return true;
    free(bytes);
    return failure(error, error_size,
                   "changed while it was read; write lists to another file and rename it");
}

static bool list_file_read(const char *path, list_file_take *take, void *arg, char *error,
                           size_t error_size) {
    char reason[400];
    struct slice text;
    size_t line;
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (descriptor < 0)
        return failure(error, error_size, "%s: %s", path, strerror(errno));
    bool good = list_read_text(descriptor, &text, reason, sizeof reason);
    close(descriptor);
    if (!good)
        return failure(error, error_size, "%s: %s", path, reason);
    good = list_file_parse(text, take, arg, &line, reason, sizeof reason);
    if (!good)
        snprintf(error, error_size, "%s:%zu: %s", path, line, reason);
    free((char *)(uintptr_t)text.base);
    return good;
}

struct list {
    struct class_list base;
    unsigned magic;
#define LIST_MAGIC 0x434c4953u
    enum class_list_kind kind;
    char *path;
    struct name_set *names; /* of hosts and domains */
    struct network_set *networks;
    struct url_set *urls;
    struct list *next;
};

struct lists {
    struct class_lists base;
    unsigned magic;
#define LISTS_MAGIC 0x434c5353u
    bool skips_files;
    struct list *first;
};

static const struct class_lists_class lists_class;

static struct class_lists *lists_make(bool skips_files) {
    struct lists *lists;
    ALLOC_OBJ(lists, LISTS_MAGIC);
    lists->base.class = &lists_class;
    lists->skips_files = skips_files;
    return &lists->base;
}

static struct list *list_new(enum class_list_kind kind, const char *path) {
    struct list *list;
    ALLOC_OBJ(list, LIST_MAGIC);
    list->base.class = &lists_class;
    list->kind = kind;
    list->path = xstrdup(path);
    switch (kind) {
    case CLASS_LIST_HOSTS:
    case CLASS_LIST_DOMAINS: list->names = name_set_new(); break;
    case CLASS_LIST_NETWORKS: list->networks = network_set_new(); break;
    case CLASS_LIST_URLS: list->urls = url_set_new(); break;
    }
    return list;
}

static void list_free(struct list **listp) {
    struct list *list = *listp;
    *listp = NULL;
    CHECK_OBJ(list, LIST_MAGIC);
    name_set_free(&list->names);
    network_set_free(&list->networks);
    url_set_free(&list->urls);
    free(list->path);
    FREE_OBJ(list);
}

static void lists_release(struct class_lists **listsp) {
    struct lists *lists = CONTAINER_OF(*listsp, struct lists, base);
    *listsp = NULL;
    CHECK_OBJ(lists, LISTS_MAGIC);
    while (lists->first != NULL) {
        struct list *list = lists->first;
        lists->first = list->next;
        list_free(&list);
    }
    FREE_OBJ(lists);
}

/* Lines. */

static bool line_fail(char *error, size_t error_size, struct slice text, const char *reason) {
    return failure(error, error_size, "\"%.*s\" %s", (int)(text.length < 200 ? text.length : 200),
                   text.base, reason);
}

/* Takes the next word of a line; empty: there is none. */
static struct slice list_next_word(struct slice *line) {
    size_t from = 0, to;
    while (from < line->length && (line->base[from] == ' ' || line->base[from] == '\t'))
        from++;
    for (to = from; to < line->length && line->base[to] != ' ' && line->base[to] != '\t';)
        to++;
    struct slice word = slice_make(line->base + from, to - from);
    *line = slice_make(line->base + to, line->length - to);
    return word;
}

static bool list_add_name(struct list *list, struct slice word, char *error, size_t error_size) {
    enum { NAME_MAX_LENGTH = 255 };
    char name[NAME_MAX_LENGTH + 1], address[INET6_ADDRSTRLEN], reason[300];
    struct in6_addr v6;
    bool domains = list->kind == CLASS_LIST_DOMAINS, below = domains;
    struct slice text = word;
    if (domains && text.length > 1 && text.base[0] == '.') /* as Squid's lists have it */
        text = slice_make(text.base + 1, text.length - 1);
    if (text.length > NAME_MAX_LENGTH)
        return line_fail(error, error_size, text, "is too long for a name");
    *slice_put_lower(name, text) = '\0';
    if (strlen(name) != text.length ||
        !(domains ? url_class_check_domain : url_class_check_host)(name, reason, sizeof reason))
        return line_fail(error, error_size, word,
                         domains ? "is not a domain: write \"example.com\", one a line"
                                 : "is not a host: write \"www.example.com\" or "
                                   "\"*.example.com\", one a line");
    struct slice host = url_class_host(slice_from(name));
    if (inet_pton(AF_INET6, name, &v6) == 1)
        host = slice_from(inet_ntop(AF_INET6, &v6, address, sizeof address));
    bool star = slice_starts_with(host, SLICE("*."));
    if (star)
        host = slice_make(host.base + 2, host.length - 2);
    unsigned matches = (below || star ? NAME_SET_BELOW : 0) | (star ? 0 : NAME_SET_ITSELF);
    return name_set_add(list->names, host, matches) ||
           line_fail(error, error_size, word, "does not fit: the list is too large");
}

/* A line of a hosts file is an address and names. Those without a dot are names of the machine that
 * the file was made for. */
static bool add_hosts_line(struct list *list, struct slice names, char *error, size_t error_size) {
    struct slice word;
    while ((word = list_next_word(&names)).length > 0)
        if (memchr(word.base, '.', word.length) != NULL &&
            !list_add_name(list, word, error, error_size))
            return false;
    return true;
}

static bool list_add_names(struct list *list, struct slice line, char *error, size_t error_size) {
    struct slice rest = line, first = list_next_word(&rest);
    struct address address;
    if (slice_trim(rest).length == 0)
        return list_add_name(list, first, error, error_size);
    if (address_parse_ip(&address, first, 0))
        return add_hosts_line(list, rest, error, error_size);
    return line_fail(error, error_size, line,
                     "is not a name: write one name a line, or lines of a hosts file "
                     "(\"0.0.0.0 ads.example.com\")");
}

static bool list_add_network(struct list *list, struct slice line, char *error, size_t error_size) {
    struct network network;
    char reason[NETWORK_REASON + 20];
    if (!network_read(&network, line, reason))
        return line_fail(error, error_size, line, strcat(reason, ", one a line"));
    network_set_add(list->networks, &network);
    return true;
}

static bool list_on_line(void *arg, struct slice line, char *error, size_t error_size) {
    struct list *list = arg;
    CHECK_OBJ(list, LIST_MAGIC);
    switch (list->kind) {
    case CLASS_LIST_NETWORKS: return list_add_network(list, line, error, error_size);
    case CLASS_LIST_URLS: return url_set_add(list->urls, line, error, error_size);
    default: return list_add_names(list, line, error, error_size);
    }
}

bool class_list_check_line(enum class_list_kind kind, struct slice line, char *error,
                           size_t error_size) {
    struct list *list = list_new(kind, "");
    bool good = list_on_line(list, line, error, error_size);
    list_free(&list);
    return good;
}

/* Files. */

static bool list_fill(struct list *list, const struct lists *lists, char *error,
                      size_t error_size) {
    if (!lists->skips_files && !list_file_read(list->path, list_on_line, list, error, error_size))
        return false;
    if (list->networks != NULL)
        network_set_seal(list->networks);
    if (list->urls != NULL)
        url_set_seal(list->urls);
    return true;
}

static const struct class_list *lists_open(struct class_lists *base, enum class_list_kind kind,
                                           const char *path, char *error, size_t error_size) {
    struct lists *lists = CONTAINER_OF(base, struct lists, base);
    CHECK_OBJ(lists, LISTS_MAGIC);
    for (struct list *list = lists->first; list != NULL; list = list->next)
        if (list->kind == kind && strcmp(list->path, path) == 0)
            return &list->base;
    struct list *list = list_new(kind, path);
    if (!list_fill(list, lists, error, error_size)) {
        list_free(&list);
        return NULL;
    }
    list->next = lists->first;
    lists->first = list;
    return &list->base;
}

static const struct list *list_seen(const struct class_list *base) {
    const struct list *list = CONTAINER_OF(base, const struct list, base);
    CHECK_OBJ(list, LIST_MAGIC);
    return list;
}

static bool list_has_host(const struct class_list *list, struct slice host) {
    return name_set_has_host(list_seen(list)->names, url_class_host(host));
}

static bool list_has_address(const struct class_list *list, const struct address *address) {
    return network_set_has(list_seen(list)->networks, address);
}

static bool list_has_url(const struct class_list *list, struct slice url) {
    return url_set_has(list_seen(list)->urls, url);
}

static const struct class_lists_class lists_class = {
    .make = lists_make,
    .release = lists_release,
    .open = lists_open,
    .has_host = list_has_host,
    .has_address = list_has_address,
    .has_url = list_has_url,
};

const struct part part_lists = {.settings = &lists_part_settings, .lists = &lists_class};
