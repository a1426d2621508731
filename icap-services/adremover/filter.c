#include "adremover/filter_internal.h"

#include "base/assert.h"
#include "base/text.h"
#include "service/service.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

enum { TEXT_BLOCK = 256 * 1024 };

/* Copies of texts that rules point at. */
struct text_block {
    struct text_block *next;
    size_t used, size;
    char bytes[];
};

struct filter *filter_create(void) {
    struct filter *filter;
    ALLOC_OBJ(filter, FILTER_MAGIC);
    filter->fingerprint = SERVICE_FINGERPRINT_SEED;
    return filter;
}

void filter_free(struct filter **filterp) {
    struct filter *filter = *filterp;
    *filterp = NULL;
    if (filter == NULL)
        return;
    CHECK_OBJ(filter, FILTER_MAGIC);
    for (uint32_t i = 0; i < filter->count; i++)
        rule_release(&filter->rules[i]);
    for (int i = 0; i < FILTER_CLASSES; i++)
        rule_index_release(&filter->classes[i]);
    for (struct text_block *block = filter->texts, *next; block != NULL; block = next) {
        next = block->next;
        free(block);
    }
    free(filter->rules);
    FREE_OBJ(filter);
}

const struct filter_counts *filter_counts(const struct filter *filter) {
    return &filter->counts;
}

uint64_t filter_fingerprint(const struct filter *filter) {
    return filter->fingerprint;
}

/* ---- loading ------------------------------------------------------------------------------ */

static char *keep_text(void *filter_pointer, const char *bytes, size_t length) {
    struct filter *filter;
    CAST_OBJ(filter, filter_pointer, FILTER_MAGIC);
    struct text_block *block = filter->texts;
    if (block == NULL || block->size - block->used <= length) {
        size_t size = length >= TEXT_BLOCK ? length + 1 : TEXT_BLOCK;
        block = xmalloc(sizeof *block + size);
        block->next = filter->texts;
        block->used = 0;
        block->size = size;
        filter->texts = block;
    }
    char *text = block->bytes + block->used;
    block->used += length + 1;
    memcpy(text, bytes, length);
    text[length] = 0;
    return text;
}

static void store_rule(struct filter *filter, const struct rule *rule) {
    if (filter->count == filter->capacity) {
        filter->capacity = filter->capacity == 0 ? 256 : filter->capacity * 2;
        filter->rules = xrealloc(filter->rules, filter->capacity * sizeof *filter->rules);
    }
    filter->rules[filter->count++] = *rule;
}

static void count_option(struct filter_counts *counts, struct slice name) {
    char text[FILTER_OPTION_NAME];
    size_t length = name.length < sizeof text - 1 ? name.length : sizeof text - 1;
    for (size_t i = 0; i < length; i++)
        text[i] = (char)ascii_lower((unsigned char)name.base[i]);
    text[length] = 0;
    unsigned at = 0;
    while (at < counts->option_count && strcmp(counts->options[at].name, text) != 0)
        at++;
    if (at == FILTER_OPTIONS_MAX) /* the last one stands for all others */
        snprintf(counts->options[--at].name, FILTER_OPTION_NAME, "(others)");
    else if (at == counts->option_count)
        memcpy(counts->options[counts->option_count++].name, text, length + 1);
    counts->options[at].rules++;
}

static void add_rule(struct filter *filter, struct rule_reading *reading, struct slice line,
                     const char *where, unsigned number) {
    struct rule rule;
    struct filter_counts *counts = &filter->counts;
    switch (rule_parse(&rule, reading, line)) {
    case RULE_GOOD: store_rule(filter, &rule); break;
    case RULE_NONE: break;
    case RULE_COSMETIC: counts->cosmetic++; break;
    case RULE_UNSUPPORTED:
        counts->unsupported++;
        count_option(counts, reading->option);
        break;
    case RULE_BAD:
        if (counts->bad++ == 0)
            snprintf(counts->first_bad, sizeof counts->first_bad, "%s:%u: %.*s", where, number,
                     (int)(line.length < 60 ? line.length : 60), line.base);
        break;
    }
}

static void filter_add_line(struct filter *filter, struct slice line, const char *where,
                            unsigned number) {
    struct rule_reading reading = {.keep = keep_text, .keeper = filter};
    do {
        add_rule(filter, &reading, line, where, number);
    } while (reading.more.length > 0);
}

void filter_add(struct filter *filter, struct slice line, const char *where) {
    CHECK_OBJ(filter, FILTER_MAGIC);
    ASSERT(!filter->sealed);
    filter->fingerprint = service_fingerprint(filter->fingerprint, line.base, line.length);
    filter_add_line(filter, line, where, 1);
}

static char *filter_read_file(const char *path, size_t *length) {
    FILE *file = fopen(path, "re");
    char *text = NULL;
    size_t capacity = 0;
    *length = 0;
    if (file == NULL)
        return NULL;
    do {
        capacity = capacity == 0 ? 1 << 16 : capacity * 2;
        text = xrealloc(text, capacity);
        *length += fread(text + *length, 1, capacity - *length, file);
    } while (*length == capacity);
    int error = ferror(file) ? errno : 0;
    fclose(file);
    if (error == 0)
        return text;
    free(text);
    errno = error;
    return NULL;
}

static bool filter_load_file(struct filter *filter, const char *path, char *error,
                             size_t error_size) {
    size_t length;
    char *text = filter_read_file(path, &length);
    if (text == NULL) {
        snprintf(error, error_size, "%s: %s", path, strerror(errno));
        return false;
    }
    filter->fingerprint = service_fingerprint(filter->fingerprint, text, length);
    unsigned number = 1;
    const char *first = text_without_mark(slice_make(text, length)).base;
    for (const char *at = first, *end = text + length; at < end; number++) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        const char *stop = newline == NULL ? end : newline;
        size_t size = (size_t)(stop - at);
        if (size > 0 && at[size - 1] == '\r')
            size--;
        filter_add_line(filter, slice_make(at, size), path, number);
        at = stop + 1;
    }
    free(text);
    return true;
}

static int is_list(const struct dirent *entry) {
    return entry->d_name[0] != '.' &&
           slice_ends_with_nocase(slice_from(entry->d_name), SLICE(".txt"));
}

/* In the order of their names, so that the same files have the same fingerprint. A file that can't
 * be read does not keep the others out. */
static bool filter_load_directory(struct filter *filter, const char *directory, char *error,
                                  size_t error_size) {
    struct dirent **entries;
    int count = scandir(directory, &entries, is_list, alphasort);
    bool good = true;
    if (count < 0) {
        snprintf(error, error_size, "%s: %s", directory, strerror(errno));
        return false;
    }
    for (int i = 0; i < count; i++) {
        char *path = NULL;
        ASSERT(asprintf(&path, "%s/%s", directory, entries[i]->d_name) > 0);
        good = filter_load_file(filter, path, error, error_size) && good;
        free(path);
        free(entries[i]);
    }
    free(entries);
    return good;
}

bool filter_load(struct filter *filter, const char *path, char *error, size_t error_size) {
    CHECK_OBJ(filter, FILTER_MAGIC);
    ASSERT(!filter->sealed);
    struct stat status;
    if (stat(path, &status) == 0 && S_ISDIR(status.st_mode))
        return filter_load_directory(filter, path, error, error_size);
    return filter_load_file(filter, path, error, error_size);
}

/* ---- sealing ------------------------------------------------------------------------------ */

static int compare_digests(const void *a, const void *b) {
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return left < right ? -1 : left > right;
}

/* The digests of all rules that badfilter withdraws, sorted. */
static uint64_t *withdrawn_digests(const struct filter *filter, size_t *count) {
    uint64_t *digests = NULL;
    *count = 0;
    for (uint32_t i = 0; i < filter->count; i++) {
        if (!filter->rules[i].bad_filter)
            continue;
        digests = xrealloc(digests, (*count + 1) * sizeof *digests);
        digests[(*count)++] = rule_digest(&filter->rules[i]);
    }
    if (*count > 0)
        qsort(digests, *count, sizeof *digests, compare_digests);
    return digests;
}

static void count_rule(struct filter_counts *counts, const struct rule *rule) {
    counts->rules++;
    counts->exceptions += rule->exception;
    counts->hosts += rule->whole_host;
    counts->regexes += rule->extra != NULL && rule->extra->regex != NULL;
}

/* Removes the rules that are withdrawn, and those that withdraw. */
static void withdraw(struct filter *filter) {
    size_t count;
    uint64_t *digests = withdrawn_digests(filter, &count);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < filter->count; i++) {
        struct rule *rule = &filter->rules[i];
        uint64_t digest = count == 0 ? 0 : rule_digest(rule);
        bool listed =
            count > 0 && bsearch(&digest, digests, count, sizeof digest, compare_digests) != NULL;
        filter->counts.withdrawn += listed && !rule->bad_filter;
        if (listed) {
            rule_release(rule);
            continue;
        }
        count_rule(&filter->counts, rule);
        filter->rules[kept++] = *rule;
    }
    filter->count = kept;
    free(digests);
}

static bool is_of_class(const struct rule *rule, enum filter_class class) {
    bool blocks = rule->action == RULE_BLOCKS || rule->action == RULE_BLOCKS_TO;
    bool names = rule->action == RULE_REDIRECTS || rule->action == RULE_BLOCKS_TO;
    switch (class) {
    case FILTER_CLASS_IMPORTANT: return blocks && !rule->exception && rule->important;
    case FILTER_CLASS_BLOCKING: return blocks && !rule->exception && !rule->important;
    case FILTER_CLASS_EXCEPTIONS: return rule->exception && rule->action == RULE_BLOCKS;
    case FILTER_CLASS_PAGES:
        return rule->exception && rule->action == RULE_BLOCKS &&
               (rule->types & FILTER_TYPE_DOCUMENT) != 0;
    case FILTER_CLASS_REDIRECTS: return names && !rule->exception;
    case FILTER_CLASS_REDIRECT_EXCEPTIONS: return names && rule->exception;
    case FILTER_CLASS_STRIPS: return rule->action == RULE_STRIPS && !rule->exception;
    case FILTER_CLASS_STRIP_EXCEPTIONS: return rule->action == RULE_STRIPS && rule->exception;
    case FILTER_CLASSES: break;
    }
    return false;
}

void filter_seal(struct filter *filter) {
    CHECK_OBJ(filter, FILTER_MAGIC);
    withdraw(filter);
    uint32_t *numbers = xcalloc(filter->count + 1, sizeof *numbers);
    for (int class = 0; class < FILTER_CLASSES; class ++) {
        uint32_t count = 0;
        for (uint32_t i = 0; i < filter->count; i++)
            if (is_of_class(&filter->rules[i], (enum filter_class) class))
                numbers[count++] = i;
        rule_index_build(&filter->classes[class], filter->rules, numbers, count);
    }
    free(numbers);
    filter->sealed = true;
}
