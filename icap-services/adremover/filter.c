#include "adremover/filter.h"

#include "adremover/rule_index.h"
#include "base/assert.h"
#include "base/failure.h"
#include "base/text.h"
#include "service/service.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

enum filter_class {
    FILTER_CLASS_IMPORTANT,
    FILTER_CLASS_BLOCKING,
    FILTER_CLASS_EXCEPTIONS,
    FILTER_CLASS_PAGES, /* exceptions for all that belongs to a page */
    FILTER_CLASS_REDIRECTS,
    FILTER_CLASS_REDIRECT_EXCEPTIONS,
    FILTER_CLASS_STRIPS,
    FILTER_CLASS_STRIP_EXCEPTIONS,
    FILTER_CLASSES
};

struct text_block;

struct filter {
    unsigned magic;
#define FILTER_MAGIC 0x46696c74u
    struct rule *rules;
    uint32_t count, capacity;
    struct text_block *texts;
    size_t text_room;
    struct rule_index classes[FILTER_CLASSES];
    struct filter_counts counts;
    uint64_t fingerprint;
    bool sealed;
};

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
    if (text == NULL)
        return failure(error, error_size, "%s: %s", path, strerror(errno));
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
    if (count < 0)
        return failure(error, error_size, "%s: %s", directory, strerror(errno));
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

/* ---- a search in one class ---------------------------------------------------------------- */

struct class_search {
    struct filter_request *request;
    rule_visitor visit;
    void *arg;
    bool *unknown;
};

static bool on_pattern_match(void *arg, const struct rule *rule) {
    enum { STEPS = 16 }; /* the other parts of a rule are looked up in sets */
    struct class_search *search = arg;
    if (!filter_request_work(search->request, STEPS))
        return false;
    enum rule_fit kind = rule_fits_kind(rule, search->request), place;
    if (kind == RULE_MISSES || (place = rule_fits_place(rule, search->request)) == RULE_MISSES)
        return false;
    if ((kind == RULE_UNKNOWN || place == RULE_UNKNOWN) && !rule->exception) {
        if (search->unknown != NULL)
            *search->unknown = true;
        return false;
    }
    return search->visit(search->arg, rule);
}

/* Looks through a class and calls the visitor for each rule that fits in every respect. When it is
 * not known whether a rule fits, an exception counts as fitting; any other rule counts as not
 * fitting, and *unknown becomes true. `unknown` may be NULL. */
static bool filter_search(const struct filter *filter, enum filter_class class,
                          struct filter_request *request, bool *unknown, rule_visitor visit,
                          void *arg) {
    struct class_search search = {request, visit, arg, unknown};
    return rule_index_search(&filter->classes[class], filter->rules, request, on_pattern_match,
                             &search);
}

static bool take_first(void *arg, const struct rule *rule) {
    *(const struct rule **)arg = rule;
    return true;
}

static bool take_important(void *arg, const struct rule *rule) {
    return rule->important && take_first(arg, rule);
}

static const struct rule *filter_match_find(const struct filter *filter, enum filter_class class,
                                            struct filter_request *request, bool *unknown) {
    const struct rule *rule = NULL;
    filter_search(filter, class, request, unknown, take_first, &rule);
    return rule;
}

/* ---- pages that are let alone ------------------------------------------------------------- */

/* Only the host of the page is known for certain. This is a function of its own because it needs
 * much stack. */
static __attribute__((noinline)) const struct rule *
search_pages(const struct filter *filter, struct filter_request *of, rule_visitor visit) {
    const struct rule *rule = NULL;
    struct filter_request page;
    char url[FILTER_HOST_MAX + sizeof "https://[]/"];
    bool is_ipv6 = of->page.length > 0 && memchr(of->page.base, ':', of->page.length) != NULL;
    struct slice parts[] = {is_ipv6 ? SLICE("https://[") : SLICE("https://"), of->page,
                            is_ipv6 ? SLICE("]/") : SLICE("/")};
    size_t length = 0;
    for (int i = 0; i < 3; i++) {
        memcpy(url + length, parts[i].base, parts[i].length);
        length += parts[i].length;
    }
    if (!filter_request_init(&page, slice_make(url, length)))
        return NULL;
    page.types = FILTER_TYPE_DOCUMENT;
    filter_request_set_page(&page, of->page);
    page.work_left = of->work_left;
    filter_search(filter, FILTER_CLASS_PAGES, &page, NULL, visit, &rule);
    of->work_left = page.work_left;
    return rule;
}

/* The rule that lets all of the request's page pass; an important one alone when `important`. */
static const struct rule *filter_find_page(const struct filter *filter,
                                           struct filter_request *request, bool important) {
    return filter->classes[FILTER_CLASS_PAGES].count == 0 || request->page.length == 0
               ? NULL
               : search_pages(filter, request, important ? take_important : take_first);
}

static const struct rule *find_exception(const struct filter *filter,
                                         struct filter_request *request, bool important) {
    const struct rule *rule = NULL;
    filter_search(filter, FILTER_CLASS_EXCEPTIONS, request, NULL,
                  important ? take_important : take_first, &rule);
    return rule != NULL ? rule : filter_find_page(filter, request, important);
}

/* ---- what to answer in place -------------------------------------------------------------- */

/* The best one so far, and the one that is looked at. */
struct redirect {
    const struct filter *filter;
    struct filter_request *request;
    struct slice name, candidate; /* without their priorities */
    long priority;
    bool any, important;
};

/* "noopjs:100" */
static struct slice split_priority(struct slice value, long *priority) {
    const char *colon = memrchr(value.base, ':', value.length);
    *priority = 0;
    if (colon == NULL)
        return value;
    char *end;
    *priority = strtol(colon + 1, &end, 10); /* values have a NUL behind them */
    if (end == colon + 1 || end != value.base + value.length) {
        *priority = 0;
        return value;
    }
    return slice_make(value.base, (size_t)(colon - value.base));
}

static bool cancels_redirect(void *arg, const struct rule *exception) {
    const struct redirect *redirect = arg;
    long priority;
    struct slice name = split_priority(exception->extra->value, &priority);
    return (!redirect->important || exception->important) &&
           (name.length == 0 || slice_equal(name, redirect->candidate));
}

static bool take_best_redirect(void *arg, const struct rule *rule) {
    struct redirect *best = arg;
    long priority;
    best->candidate = split_priority(rule->extra->value, &priority);
    best->important = rule->important;
    if ((best->any && priority <= best->priority) ||
        filter_search(best->filter, FILTER_CLASS_REDIRECT_EXCEPTIONS, best->request, NULL,
                      cancels_redirect, best))
        return false;
    best->name = best->candidate;
    best->priority = priority;
    best->any = true;
    return false;
}

static struct slice find_resource(const struct filter *filter, struct filter_request *request) {
    struct redirect best = {.filter = filter, .request = request, .name = SLICE("")};
    filter_search(filter, FILTER_CLASS_REDIRECTS, request, NULL, take_best_redirect, &best);
    return best.name;
}

/* ---- the answer --------------------------------------------------------------------------- */

static enum filter_verdict set_answer(struct filter_answer *answer, enum filter_verdict verdict,
                                      const struct rule *rule) {
    answer->verdict = verdict;
    answer->rule = rule == NULL ? SLICE("") : slice_make(rule->line, rule->line_length);
    answer->resource = SLICE("");
    return verdict;
}

static enum filter_verdict find_answer(const struct filter *filter, struct filter_request *request,
                                       struct filter_answer *answer) {
    bool unknown = false;
    const struct rule *rule = filter_match_find(filter, FILTER_CLASS_IMPORTANT, request, &unknown);
    bool important = rule != NULL;
    if (!important)
        rule = filter_match_find(filter, FILTER_CLASS_BLOCKING, request, &unknown);
    if (rule == NULL)
        return set_answer(answer, unknown ? FILTER_UNDECIDED : FILTER_PASS, NULL);
    const struct rule *exception = find_exception(filter, request, important);
    if (exception != NULL)
        return set_answer(answer, FILTER_EXCEPTION, exception);
    set_answer(answer, FILTER_BLOCK, rule);
    answer->resource = find_resource(filter, request);
    return FILTER_BLOCK;
}

/* Of a search that was given up nobody knows whether an exception would have followed. */
enum filter_verdict filter_match(const struct filter *filter, struct filter_request *request,
                                 struct filter_answer *answer) {
    CHECK_OBJ(filter, FILTER_MAGIC);
    ASSERT(filter->sealed);
    find_answer(filter, request, answer);
    return request->work_left > 0 ? answer->verdict : set_answer(answer, FILTER_UNDECIDED, NULL);
}

enum { PARAMETERS_MAX = 256 };

struct strip {
    const struct filter *filter;
    struct filter_request *request;
    struct slice parameters[PARAMETERS_MAX];
    bool removed[PARAMETERS_MAX];
    unsigned count;
    const struct rule *first; /* that removed something */
};

static struct slice filter_strip_name_of(struct slice parameter) {
    const char *equals = memchr(parameter.base, '=', parameter.length);
    return equals == NULL ? parameter
                          : slice_make(parameter.base, (size_t)(equals - parameter.base));
}

/* If there are more parameters than there is room for, the last one holds all the rest. It is too
 * long for the name in any rule. */
static void filter_strip_split(struct strip *strip, struct slice query) {
    while (query.length > 0 && strip->count < PARAMETERS_MAX) {
        const char *end = memchr(query.base, '&', query.length);
        size_t length = end == NULL || strip->count + 1 == PARAMETERS_MAX
                            ? query.length
                            : (size_t)(end - query.base);
        strip->parameters[strip->count++] = slice_make(query.base, length);
        size_t used = length < query.length ? length + 1 : length;
        query = slice_make(query.base + used, query.length - used);
    }
}

static bool regex_names(struct strip *strip, const struct regex *regex, struct slice parameter) {
    enum { BYTES_A_STEP = 4, STEPS_MORE = 1 << 15 };
    char lower[FILTER_URL_MAX];
    bool gave_up;
    if (!filter_request_work(strip->request, parameter.length / BYTES_A_STEP))
        return false;
    for (size_t i = 0; i < parameter.length; i++)
        lower[i] = (char)ascii_lower((unsigned char)parameter.base[i]);
    bool named = regex_matches(regex, parameter, lower, &gave_up);
    if (gave_up)
        filter_request_work(strip->request, STEPS_MORE);
    return named;
}

static bool names_parameter(struct strip *strip, const struct rule *rule, struct slice parameter) {
    const struct rule_extra *extra = rule->extra;
    bool named = extra->param_regex != NULL
                     ? regex_names(strip, extra->param_regex, parameter)
                     : extra->value.length == 0 ||
                           slice_equal(filter_strip_name_of(parameter), extra->value);
    return named != extra->value_inverse;
}

static bool cancels(void *arg, const struct rule *exception) {
    const struct rule *rule = arg;
    if (rule->important && !exception->important)
        return false;
    return exception->extra->value.length == 0 ||
           (slice_equal(exception->extra->value, rule->extra->value) &&
            exception->extra->value_inverse == rule->extra->value_inverse);
}

static bool is_excepted(struct strip *strip, const struct rule *rule) {
    return filter_search(strip->filter, FILTER_CLASS_STRIP_EXCEPTIONS, strip->request, NULL,
                         cancels, (void *)rule) ||
           filter_find_page(strip->filter, strip->request, rule->important) != NULL;
}

static bool filter_strip_apply(void *arg, const struct rule *rule) {
    struct strip *strip = arg;
    bool any = false;
    if (!filter_request_work(strip->request, strip->count))
        return true;
    for (unsigned i = 0; i < strip->count; i++)
        any |= !strip->removed[i] && names_parameter(strip, rule, strip->parameters[i]);
    if (!any || is_excepted(strip, rule))
        return false;
    for (unsigned i = 0; i < strip->count; i++)
        strip->removed[i] |= names_parameter(strip, rule, strip->parameters[i]);
    if (strip->first == NULL)
        strip->first = rule;
    return false;
}

/* Writes the parameters that are left behind the `length` bytes of the URL that are there
 * already. */
static size_t filter_strip_join(const struct strip *strip, char *out, size_t length) {
    char separator = '?';
    for (unsigned i = 0; i < strip->count; i++) {
        if (strip->removed[i])
            continue;
        out[length++] = separator;
        memcpy(out + length, strip->parameters[i].base, strip->parameters[i].length);
        length += strip->parameters[i].length;
        separator = '&';
    }
    return length;
}

size_t filter_strip(const struct filter *filter, struct filter_request *request, char *out,
                    size_t capacity, struct slice *rule) {
    CHECK_OBJ(filter, FILTER_MAGIC);
    struct slice url = request->url;
    const char *question = memchr(url.base, '?', url.length);
    if (filter->classes[FILTER_CLASS_STRIPS].count == 0 || question == NULL ||
        capacity < url.length)
        return 0;
    struct strip strip = {.filter = filter, .request = request};
    size_t before = (size_t)(question - url.base);
    filter_strip_split(&strip, slice_make(question + 1, url.length - before - 1));
    filter_search(filter, FILTER_CLASS_STRIPS, request, NULL, filter_strip_apply, &strip);
    if (strip.first == NULL || request->work_left == 0)
        return 0;
    memcpy(out, url.base, before);
    *rule = slice_make(strip.first->line, strip.first->line_length);
    return filter_strip_join(&strip, out, before);
}
