#include "inject/text_table.h"

#include "base/assert.h"
#include "base/text.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <time.h>

struct text_line {
    int family; /* AF_UNSPEC: the default */
    unsigned char network[16];
    unsigned bits;
    char *text;
};

struct text_table {
    unsigned magic;
#define TEXT_TABLE_MAGIC 0x74787454u
    struct text_line *lines;
    size_t count;
};

/* Reads an address of four or sixteen bytes; AF_UNSPEC when it is none. An IPv4 address that was
 * mapped into IPv6 counts as IPv4. */
static int parse_address(const char *text, unsigned char *address) {
    static const unsigned char mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    if (inet_pton(AF_INET, text, address) == 1)
        return AF_INET;
    if (inet_pton(AF_INET6, text, address) != 1)
        return AF_UNSPEC;
    if (memcmp(address, mapped, sizeof mapped) != 0)
        return AF_INET6;
    memmove(address, address + 12, 4);
    return AF_INET;
}

static bool parse_network(char *text, struct text_line *line) {
    if (strcmp(text, "default") == 0) {
        line->family = AF_UNSPEC;
        return true;
    }
    char *slash = strchr(text, '/');
    uint64_t bits = 0;
    if (slash != NULL)
        *slash = 0;
    line->family = parse_address(text, line->network);
    unsigned most = line->family == AF_INET ? 32 : 128;
    if (line->family == AF_UNSPEC ||
        (slash != NULL && (!slice_to_uint64(slice_from(slash + 1), &bits) || bits > most)))
        return false;
    line->bits = slash == NULL ? most : (unsigned)bits;
    return true;
}

static void text_table_add(struct text_table *table, const struct text_line *line) {
    table->lines = xrealloc(table->lines, (table->count + 1) * sizeof *table->lines);
    table->lines[table->count++] = *line;
}

static bool parse_line(struct text_table *table, char *text) {
    struct text_line line = {0};
    text[strcspn(text, "\r\n")] = 0;
    if (text[0] == 0 || text[0] == '#')
        return true;
    char *tab = strchr(text, '\t');
    if (tab == NULL)
        return false;
    *tab = 0;
    if (!parse_network(text, &line))
        return false;
    line.text = xstrdup(tab + 1);
    text_table_add(table, &line);
    return true;
}

static char *without_mark(char *text) {
    return text + (text_without_mark(slice_from(text)).base - text);
}

struct text_table *text_table_read(const char *path, char *error, size_t error_size) {
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        snprintf(error, error_size, "%s: %s", path, strerror(errno));
        return NULL;
    }
    struct text_table *table;
    ALLOC_OBJ(table, TEXT_TABLE_MAGIC);
    char *text = NULL;
    size_t capacity = 0;
    for (unsigned number = 1; getline(&text, &capacity, file) >= 0; number++)
        if (!parse_line(table, number > 1 ? text : without_mark(text))) {
            snprintf(error, error_size,
                     "%s:%u: expected ADDRESS/BITS or \"default\", a tab, and a text", path,
                     number);
            text_table_free(&table);
            break;
        }
    free(text);
    fclose(file);
    return table;
}

struct text_table *text_table_builtin(void) {
    struct text_table *table;
    ALLOC_OBJ(table, TEXT_TABLE_MAGIC);
    struct text_line line = {.family = AF_UNSPEC, .text = xstrdup("<!-- %{ip} -->\n")};
    text_table_add(table, &line);
    return table;
}

void text_table_free(struct text_table **tablep) {
    struct text_table *table = *tablep;
    *tablep = NULL;
    if (table == NULL)
        return;
    CHECK_OBJ(table, TEXT_TABLE_MAGIC);
    for (size_t i = 0; i < table->count; i++)
        free(table->lines[i].text);
    free(table->lines);
    FREE_OBJ(table);
}

static bool text_table_contains(const struct text_line *line, int family,
                                const unsigned char *address) {
    unsigned whole = line->bits / 8, rest = line->bits % 8;
    if (line->family != family || memcmp(line->network, address, whole) != 0)
        return false;
    return rest == 0 || ((line->network[whole] ^ address[whole]) >> (8 - rest)) == 0;
}

static const char *find_text(const struct text_table *table, int family,
                             const unsigned char *address) {
    const char *fallback = NULL;
    for (size_t i = 0; i < table->count; i++) {
        const struct text_line *line = &table->lines[i];
        if (line->family == AF_UNSPEC)
            fallback = fallback == NULL ? line->text : fallback;
        else if (text_table_contains(line, family, address))
            return line->text;
    }
    return fallback;
}

/* The values of the placeholders. */
struct facts {
    struct slice ip, url, user, time;
};

struct output {
    char *bytes;
    size_t length, capacity;
    bool full;
};

static void text_table_put(struct output *out, struct slice bytes) {
    out->full |= bytes.length > out->capacity - out->length;
    if (out->full || bytes.length == 0)
        return;
    memcpy(out->bytes + out->length, bytes.base, bytes.length);
    out->length += bytes.length;
}

static void text_table_put_escaped(struct output *out, struct slice text) {
    for (size_t i = 0; i < text.length; i++)
        switch (text.base[i]) {
        case '&': text_table_put(out, SLICE("&amp;")); break;
        case '<': text_table_put(out, SLICE("&lt;")); break;
        case '>': text_table_put(out, SLICE("&gt;")); break;
        case '"': text_table_put(out, SLICE("&quot;")); break;
        case '\'': text_table_put(out, SLICE("&#39;")); break;
        default: text_table_put(out, slice_make(text.base + i, 1)); break;
        }
}

static size_t expand(const char *text, const struct facts *facts, char *room, size_t capacity) {
    const struct {
        struct slice name, value;
    } variables[] = {{SLICE("%{ip}"), facts->ip},
                     {SLICE("%{url}"), facts->url},
                     {SLICE("%{user}"), facts->user},
                     {SLICE("%{time}"), facts->time}};
    struct output out = {room, 0, capacity, false};
    for (struct slice rest = slice_from(text); rest.length > 0;) {
        size_t i = 0, count = sizeof variables / sizeof *variables;
        while (i < count && !slice_starts_with(rest, variables[i].name))
            i++;
        size_t used = i < count ? variables[i].name.length : 1;
        if (i < count)
            text_table_put_escaped(&out, variables[i].value);
        else
            text_table_put(&out, slice_make(rest.base, 1));
        rest = slice_make(rest.base + used, rest.length - used);
    }
    return out.full ? 0 : out.length;
}

static struct slice text_table_next_line(struct slice *rest) {
    const char *end = memchr(rest->base, '\n', rest->length);
    size_t length = end == NULL ? rest->length : (size_t)(end - rest->base);
    size_t used = end == NULL ? length : length + 1;
    struct slice line = slice_make(rest->base, length);
    *rest = slice_make(rest->base + used, rest->length - used);
    return line;
}

static struct slice time_text(char room[32]) {
    time_t now = time(NULL);
    struct tm parts;
    gmtime_r(&now, &parts);
    return slice_make(room, strftime(room, 32, "%Y-%m-%dT%H:%M:%SZ", &parts));
}

size_t text_table_answer(const struct text_table *table, struct slice about, char *out,
                         size_t capacity) {
    CHECK_OBJ(table, TEXT_TABLE_MAGIC);
    unsigned char bytes[16];
    char text[INET6_ADDRSTRLEN] = "unknown", moment[32];
    int family = AF_UNSPEC;
    if (about.base == NULL)
        about = SLICE("");
    struct slice address = text_table_next_line(&about), url = text_table_next_line(&about),
                 user = text_table_next_line(&about);
    if (address.length < sizeof text) {
        char given[INET6_ADDRSTRLEN];
        memcpy(given, address.base, address.length);
        given[address.length] = 0;
        family = parse_address(given, bytes);
        if (family != AF_UNSPEC)
            inet_ntop(family, bytes, text, sizeof text);
    }
    const char *found = find_text(table, family, bytes);
    struct facts facts = {slice_from(text), url, user, time_text(moment)};
    return found == NULL ? 0 : expand(found, &facts, out, capacity);
}
