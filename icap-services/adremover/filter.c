#include "adremover/filter.h"

#include "adremover/rule.h"
#include "base/assert.h"
#include "http/url.h"
#include "service/service.h"

#include <errno.h>
#include <stdio.h>

enum { WORDS_MAX = 512, NOBODY = 0 };

/* A hash table from a 32-bit key to a chain of rules. Different words with one key share a chain:
 * that costs a look, no more. */
struct index {
    uint32_t *keys, *first; /* `first` counts rules from 1; 0: free */
    uint32_t mask;
};

struct text_block {
    struct text_block *next;
    char bytes[];
};

struct filter {
    unsigned magic;
#define FILTER_MAGIC 0x46696c74u
    struct rule *rules;
    uint32_t count, capacity;
    struct text_block *texts;
    struct index hosts, words;
    uint32_t wordless; /* chain of rules without a usable word */
    struct filter_counts counts;
    uint64_t fingerprint;
    bool sealed;
};

static uint32_t hash_bytes(const char *bytes, size_t length) {
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)bytes[i]) * 16777619u;
    return hash ^ (hash >> 15);
}

struct filter *filter_create(void) {
    struct filter *filter;
    ALLOC_OBJ(filter, FILTER_MAGIC);
    filter->fingerprint = SERVICE_FINGERPRINT_SEED;
    return filter;
}

static void index_free(struct index *index) {
    free(index->keys);
    free(index->first);
}

void filter_free(struct filter **filterp) {
    struct filter *filter = *filterp;
    *filterp = NULL;
    if (filter == NULL)
        return;
    CHECK_OBJ(filter, FILTER_MAGIC);
    for (struct text_block *block = filter->texts, *next; block != NULL; block = next) {
        next = block->next;
        free(block);
    }
    index_free(&filter->hosts);
    index_free(&filter->words);
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

static char *keep_text(struct filter *filter, size_t length) {
    struct text_block *block = xmalloc(sizeof *block + length + 1);
    block->next = filter->texts;
    filter->texts = block;
    return block->bytes;
}

static void store_rule(struct filter *filter, const struct rule *rule) {
    if (filter->count == filter->capacity) {
        filter->capacity = filter->capacity == 0 ? 256 : filter->capacity * 2;
        filter->rules = xrealloc(filter->rules, filter->capacity * sizeof *filter->rules);
    }
    filter->rules[filter->count++] = *rule;
    filter->counts.rules++;
    filter->counts.exceptions += rule->exception;
    filter->counts.hosts += rule->whole_host;
}

/* `line` belongs to the filter and is changed. */
static void add_line(struct filter *filter, char *line, size_t length, const char *where,
                     unsigned number) {
    struct rule rule;
    switch (rule_parse(&rule, line, length)) {
    case RULE_GOOD: store_rule(filter, &rule); break;
    case RULE_NONE: break;
    case RULE_UNSUPPORTED: filter->counts.unsupported++; break;
    case RULE_BAD:
        if (filter->counts.bad++ == 0)
            snprintf(filter->counts.first_bad, sizeof filter->counts.first_bad, "%s:%u: %.*s",
                     where, number, (int)(length < 60 ? length : 60), line);
        break;
    }
}

void filter_add(struct filter *filter, struct slice line, const char *where) {
    CHECK_OBJ(filter, FILTER_MAGIC);
    ASSERT(!filter->sealed);
    char *text = keep_text(filter, line.length);
    memcpy(text, line.base, line.length);
    text[line.length] = 0;
    filter->fingerprint = service_fingerprint(filter->fingerprint, line.base, line.length);
    add_line(filter, text, line.length, where, 1);
}

static char *read_file(struct filter *filter, const char *path, size_t *length) {
    FILE *file = fopen(path, "re");
    char *text = NULL;
    if (file == NULL)
        return NULL;
    if (fseeko(file, 0, SEEK_END) == 0) {
        off_t size = ftello(file);
        if (size >= 0 && fseeko(file, 0, SEEK_SET) == 0) {
            text = keep_text(filter, (size_t)size);
            *length = fread(text, 1, (size_t)size, file);
            text[*length] = 0;
            if (ferror(file))
                text = NULL; /* the block stays in the list */
        }
    }
    int error = errno;
    fclose(file);
    errno = error;
    return text;
}

bool filter_load(struct filter *filter, const char *path, char *error, size_t error_size) {
    CHECK_OBJ(filter, FILTER_MAGIC);
    ASSERT(!filter->sealed);
    size_t length;
    char *text = read_file(filter, path, &length);
    if (text == NULL) {
        snprintf(error, error_size, "%s: %s", path, strerror(errno));
        return false;
    }
    filter->fingerprint = service_fingerprint(filter->fingerprint, text, length);
    unsigned number = 1;
    for (char *at = text, *end = text + length; at < end; number++) {
        char *newline = memchr(at, '\n', (size_t)(end - at));
        char *stop = newline == NULL ? end : newline;
        size_t size = (size_t)(stop - at);
        if (size > 0 && at[size - 1] == '\r')
            size--;
        add_line(filter, at, size, path, number);
        at = stop + 1;
    }
    return true;
}

/* ---- the index ---------------------------------------------------------------------------- */

static void index_create(struct index *index, uint32_t entries) {
    uint32_t size = 64;
    while (size < entries * 2)
        size *= 2;
    index->mask = size - 1;
    index->keys = xcalloc(size, sizeof *index->keys);
    index->first = xcalloc(size, sizeof *index->first);
}

/* The place of a key: its chain, or the free one where it belongs. */
static uint32_t *index_place(const struct index *index, uint32_t key) {
    uint32_t slot = key & index->mask;
    while (index->first[slot] != NOBODY && index->keys[slot] != key)
        slot = (slot + 1) & index->mask;
    index->keys[slot] = key;
    return &index->first[slot];
}

static uint32_t index_find(const struct index *index, uint32_t key) {
    uint32_t slot = key & index->mask;
    while (index->first[slot] != NOBODY && index->keys[slot] != key)
        slot = (slot + 1) & index->mask;
    return index->first[slot];
}

static void chain(struct rule *rules, uint32_t rule, uint32_t *first) {
    rules[rule].next = *first;
    *first = rule + 1;
}

/* The next word of a pattern that every URL it matches must contain as a whole word: neither end
 * may lie at a "*" or at an open end of the pattern. */
static bool next_word(const struct rule *rule, size_t *at, struct slice *word) {
    while (*at < rule->length) {
        size_t begin = *at;
        while (begin < rule->length && !rule_is_word((unsigned char)rule->pattern[begin]))
            begin++;
        size_t end = begin;
        while (end < rule->length && rule_is_word((unsigned char)rule->pattern[end]))
            end++;
        *at = end;
        bool left = begin == 0 ? rule->at_start || rule->at_host : rule->pattern[begin - 1] != '*';
        bool right = end == rule->length ? rule->at_end : rule->pattern[end] != '*';
        if (end - begin >= 2 && left && right) {
            *word = slice_make(rule->pattern + begin, end - begin);
            return true;
        }
    }
    return false;
}

enum { TALLY_SIZE = 1 << 16 };

static void tally_words(const struct filter *filter, uint32_t *tally) {
    for (uint32_t i = 0; i < filter->count; i++) {
        const struct rule *rule = &filter->rules[i];
        struct slice word;
        for (size_t at = 0; !rule->whole_host && !rule->match_case && next_word(rule, &at, &word);)
            tally[hash_bytes(word.base, word.length) % TALLY_SIZE]++;
    }
}

static bool rarest_word(const struct rule *rule, const uint32_t *tally, uint32_t *key) {
    uint32_t best = UINT32_MAX;
    struct slice word;
    for (size_t at = 0; next_word(rule, &at, &word);) {
        uint32_t hash = hash_bytes(word.base, word.length);
        /* In every URL: as good as no word. */
        uint32_t weight = tally[hash % TALLY_SIZE];
        if (slice_equal(word, SLICE("http")) || slice_equal(word, SLICE("https")) ||
            slice_equal(word, SLICE("www")) || slice_equal(word, SLICE("com")))
            weight += 1000000;
        if (weight < best) {
            best = weight;
            *key = hash;
        }
    }
    return best != UINT32_MAX;
}

void filter_seal(struct filter *filter) {
    CHECK_OBJ(filter, FILTER_MAGIC);
    uint32_t *tally = xcalloc(TALLY_SIZE, sizeof *tally), key;
    tally_words(filter, tally);
    index_create(&filter->hosts, filter->counts.hosts);
    index_create(&filter->words, filter->count - filter->counts.hosts);
    for (uint32_t i = 0; i < filter->count; i++) {
        const struct rule *rule = &filter->rules[i];
        if (rule->whole_host)
            chain(filter->rules, i,
                  index_place(&filter->hosts, hash_bytes(rule->pattern, rule->length)));
        else if (!rule->match_case && rarest_word(rule, tally, &key))
            chain(filter->rules, i, index_place(&filter->words, key));
        else
            chain(filter->rules, i, &filter->wordless);
    }
    free(tally);
    filter->sealed = true;
}

/* ---- matching ----------------------------------------------------------------------------- */

/* What has been found so far. */
struct search {
    const struct filter *filter;
    const struct filter_request *request;
    bool blocked, important, excepted, undecided;
};

static void consider(struct search *search, const struct rule *rule) {
    enum rule_fit fit = rule_fits(rule, search->request);
    search->undecided |= fit == RULE_UNKNOWN;
    if (rule->exception)
        search->excepted |= fit != RULE_MISSES;
    else if (fit == RULE_FITS) {
        search->blocked = true;
        search->important |= rule->important;
    }
}

/* Could the rule still change anything? */
static bool is_open(const struct search *search, const struct rule *rule) {
    return rule->exception ? !search->excepted
                           : !search->blocked || (rule->important && !search->important);
}

static void search_chain(struct search *search, uint32_t first) {
    for (uint32_t at = first; at != NOBODY; at = search->filter->rules[at - 1].next) {
        const struct rule *rule = &search->filter->rules[at - 1];
        if (is_open(search, rule) && rule_pattern_matches(rule, search->request))
            consider(search, rule);
    }
}

static void search_host(struct search *search, struct slice host, bool whole) {
    uint32_t at = index_find(&search->filter->hosts, hash_bytes(host.base, host.length));
    for (; at != NOBODY; at = search->filter->rules[at - 1].next) {
        const struct rule *rule = &search->filter->rules[at - 1];
        if (slice_equal(slice_make(rule->pattern, rule->length), host) &&
            (whole || !rule->exact_host) && is_open(search, rule))
            consider(search, rule);
    }
}

static void search_hosts(struct search *search) {
    struct slice rest = search->request->host;
    for (bool whole = true; rest.length > 0; whole = false) {
        search_host(search, rest, whole);
        const char *dot = memchr(rest.base, '.', rest.length);
        if (dot == NULL)
            break;
        rest.length -= (size_t)(dot + 1 - rest.base);
        rest.base = dot + 1;
    }
}

static void search_words(struct search *search) {
    const char *text = search->request->lower;
    size_t length = search->request->length;
    uint32_t seen[WORDS_MAX];
    unsigned count = 0;
    for (size_t at = 0; at < length && count < WORDS_MAX;) {
        size_t begin = at;
        while (at < length && rule_is_word((unsigned char)text[at]))
            at++;
        if (at - begin >= 2) {
            uint32_t key = hash_bytes(text + begin, at - begin), first;
            first = index_find(&search->filter->words, key);
            bool again = false;
            for (unsigned i = 0; first != NOBODY && i < count; i++)
                again |= seen[i] == key;
            if (first != NOBODY && !again) {
                seen[count++] = key;
                search_chain(search, first);
            }
        }
        at += at == begin || at < length;
    }
}

enum filter_verdict filter_match(const struct filter *filter,
                                 const struct filter_request *request) {
    CHECK_OBJ(filter, FILTER_MAGIC);
    ASSERT(filter->sealed);
    struct search search = {.filter = filter, .request = request};
    search_hosts(&search);
    search_words(&search);
    search_chain(&search, filter->wordless);
    if (search.blocked && (search.important || !search.excepted))
        return FILTER_BLOCK;
    if (search.blocked)
        return FILTER_EXCEPTION;
    return search.undecided ? FILTER_UNDECIDED : FILTER_PASS;
}

/* ---- requests ----------------------------------------------------------------------------- */

static struct slice site_of(struct slice host) {
    static const char *const second_levels[] = {"co",  "com", "org", "net", "gov",
                                                "edu", "ac",  "or",  "ne",  "go"};
    const char *dots[3] = {NULL, NULL, NULL}; /* from the end */
    unsigned count = 0;
    for (size_t i = host.length; i-- > 0 && count < 3;)
        if (host.base[i] == '.')
            dots[count++] = host.base + i;
    if (count < 2)
        return host;
    const char *end = host.base + host.length;
    bool country = end - dots[0] == 3;
    struct slice second = slice_make(dots[1] + 1, (size_t)(dots[0] - dots[1] - 1));
    bool deep = false;
    for (size_t i = 0; country && i < sizeof second_levels / sizeof *second_levels; i++)
        deep |= slice_equal(second, slice_from(second_levels[i]));
    if (deep && count < 3)
        return host;
    const char *begin = (deep ? dots[2] : dots[1]) + 1;
    return slice_make(begin, (size_t)(end - begin));
}

static bool is_address(struct slice host) {
    for (size_t i = 0; i < host.length; i++)
        if (host.base[i] != '.' && (host.base[i] < '0' || host.base[i] > '9'))
            return memchr(host.base, ':', host.length) != NULL;
    return true;
}

bool filter_same_site(struct slice a, struct slice b) {
    if (is_address(a) || is_address(b))
        return slice_equal_nocase(a, b);
    return slice_equal_nocase(site_of(a), site_of(b));
}

bool filter_request_init(struct filter_request *request, struct slice text, struct slice page,
                         unsigned types) {
    struct url url;
    if (text.length > FILTER_URL_MAX || !url_parse(&url, text))
        return false;
    request->url = text;
    request->length = text.length;
    for (size_t i = 0; i < text.length; i++)
        request->lower[i] = (char)ascii_lower((unsigned char)text.base[i]);
    request->lower[text.length] = 0;
    request->host = slice_make(request->lower + (url.host.base - text.base), url.host.length);
    request->page[0] = 0;
    request->party = FILTER_PARTY_UNKNOWN;
    request->types = types;
    if (page.length > 0 && page.length < sizeof request->page) {
        for (size_t i = 0; i < page.length; i++)
            request->page[i] = (char)ascii_lower((unsigned char)page.base[i]);
        request->page[page.length] = 0;
        request->party = filter_same_site(request->host, slice_from(request->page))
                             ? FILTER_PARTY_FIRST
                             : FILTER_PARTY_THIRD;
    }
    return true;
}
