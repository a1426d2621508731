#include "adremover/rule_index.h"

#include "adremover/hash.h"
#include "base/assert.h"

enum { INDEX_ANYWHERE = 255, TALLY_SIZE = 1 << 16, BITS_A_KEY = 12 };

/* ---- what a rule offers ------------------------------------------------------------------- */

/* A rule under its key, before the entries are sorted. */
struct filing {
    uint32_t key;
    struct index_entry entry;
};

struct builder {
    const struct rule *rules;
    struct filing *filings;
    size_t count, capacity;
    uint32_t *tally; /* how many rules offer a key, roughly */
    unsigned kinds;
};

struct offer {
    enum hash_kind kind;
    uint32_t key, weight;
    uint8_t offset;
};

enum { WEIGHT_NONE = UINT32_MAX, WEIGHT_COMMON = 1000000 };

static bool is_word_byte(unsigned char c) {
    return ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || (c >= '0' && c <= '9');
}

/* Words that stand in so many URLs that they make bad keys. */
static bool is_common(const char *word, size_t length) {
    static const char *const words[] = {
        "http", "https", "www",  "com",   "net",    "org",   "js",    "css",     "jpg",     "jpeg",
        "png",  "gif",   "html", "htm",   "php",    "img",   "image", "images",  "static",  "cdn",
        "api",  "media", "min",  "index", "assets", "www2",  "id",    "en",      "us",      "uk",
        "co",   "de",    "de",   "ru",    "jp",     "fr",    "files", "content", "htt",     "ima",
        "sta",  "aspx",  "asp",  "video", "page",   "pages", "news",  "upload",  "uploads", "svg"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strlen(words[i]) == length && memcmp(words[i], word, length) == 0)
            return true;
    return false;
}

static void rule_index_consider(const struct builder *builder, struct offer *best,
                                enum hash_kind kind, const char *bytes, size_t length,
                                size_t offset) {
    uint64_t hash = kind == HASH_KIND_WORD ? hash_word(bytes, length) : hash_part(bytes);
    uint32_t key = hash_key(kind, hash), weight = builder->tally[key % TALLY_SIZE];
    if (is_common(bytes, length))
        weight += WEIGHT_COMMON;
    if (weight >= best->weight)
        return;
    *best = (struct offer){kind, key, weight,
                           (uint8_t)(offset < INDEX_ANYWHERE ? offset : INDEX_ANYWHERE)};
}

/* A run of word bytes in a pattern. */
struct run {
    size_t begin, end;
    bool left, right; /* nothing of a word can be before it, behind it */
    bool movable;     /* a "*" is before it: its place is not known */
};

static bool next_run(const struct rule *rule, const char *text, size_t length, bool is_regex,
                     size_t *at, struct run *run) {
    size_t begin = *at;
    while (begin < length && !is_word_byte((unsigned char)text[begin]))
        begin++;
    if (begin == length)
        return false;
    size_t end = begin;
    while (end < length && is_word_byte((unsigned char)text[end]))
        end++;
    *at = end;
    run->begin = begin, run->end = end;
    run->left = begin == 0 ? !is_regex && (rule->at_start || rule->at_host)
                           : is_regex || text[begin - 1] != '*';
    run->right = end == length ? !is_regex && rule->at_end : is_regex || text[end] != '*';
    run->movable = is_regex || memchr(text, '*', begin) != NULL;
    return true;
}

/* Takes the part of the run that is a whole word, or at least the beginning or the end of one. */
static void consider_run(const struct builder *builder, struct offer *best, const char *text,
                         const struct run *run, bool parts) {
    size_t length = run->end - run->begin;
    size_t begin = run->movable ? INDEX_ANYWHERE : run->begin;
    size_t end = run->movable ? INDEX_ANYWHERE : run->end;
    if (run->left && run->right) {
        if (length >= 2 && !parts)
            rule_index_consider(builder, best, HASH_KIND_WORD, text + run->begin, length, begin);
    } else if (parts && length >= HASH_PART && run->left)
        rule_index_consider(builder, best, HASH_KIND_HEAD, text + run->begin, HASH_PART, begin);
    else if (parts && length >= HASH_PART && run->right)
        rule_index_consider(builder, best, HASH_KIND_TAIL, text + run->end - HASH_PART, HASH_PART,
                            end);
}

/* The text that every URL that matches must contain, in lower case. */
static size_t required_text(const struct rule *rule, char *text, size_t capacity) {
    struct slice from = slice_make(rule->pattern, rule->length);
    if (rule->extra != NULL && rule->extra->regex != NULL)
        from = regex_literal(rule->extra->regex);
    size_t length = from.length < capacity ? from.length : capacity;
    for (size_t i = 0; i < length; i++)
        text[i] = (char)ascii_lower((unsigned char)from.base[i]);
    /* The text was cut off, so its last word may not be whole: drops it. */
    while (length < from.length && length > 0 && is_word_byte((unsigned char)text[length - 1]))
        length--;
    return length;
}

enum { REQUIRED_MAX = 512 };

static struct offer best_offer(const struct builder *builder, const struct rule *rule, bool parts) {
    char text[REQUIRED_MAX];
    size_t length = required_text(rule, text, sizeof text);
    bool is_regex = rule->extra != NULL && rule->extra->regex != NULL;
    struct offer best = {.weight = WEIGHT_NONE};
    struct run run;
    for (size_t at = 0; next_run(rule, text, length, is_regex, &at, &run);)
        consider_run(builder, &best, text, &run, parts);
    return best;
}

static void tally(struct builder *builder, const struct rule *rule) {
    char text[REQUIRED_MAX];
    size_t length = required_text(rule, text, sizeof text);
    bool is_regex = rule->extra != NULL && rule->extra->regex != NULL;
    struct run run;
    for (size_t at = 0; next_run(rule, text, length, is_regex, &at, &run);)
        for (int parts = 0; parts < 2; parts++) {
            struct offer offer = {.weight = WEIGHT_NONE};
            consider_run(builder, &offer, text, &run, parts);
            if (offer.weight != WEIGHT_NONE)
                builder->tally[offer.key % TALLY_SIZE]++;
        }
}

/* ---- building ----------------------------------------------------------------------------- */

static void file(struct builder *builder, uint32_t number, enum hash_kind kind, uint32_t key,
                 uint8_t offset) {
    if (builder->count == builder->capacity) {
        builder->capacity = builder->capacity == 0 ? 1024 : builder->capacity * 2;
        builder->filings = xrealloc(builder->filings, builder->capacity * sizeof *builder->filings);
    }
    builder->kinds |= 1u << kind;
    builder->filings[builder->count++] =
        (struct filing){key, {number, builder->rules[number].types, offset, 0}};
}

/* Files the rule under every page that it is for. False when it is for other pages too. */
static bool file_by_pages(struct builder *builder, uint32_t number) {
    const struct rule_extra *extra = builder->rules[number].extra;
    const struct domain_set *pages = extra == NULL ? NULL : extra->pages;
    if (pages == NULL || !pages->any_positive || pages->any_entity || pages->regex_count > 0)
        return false;
    for (unsigned i = 0; i < pages->count; i++)
        if ((pages->hashes[i] & 1) == 0)
            file(builder, number, HASH_KIND_PAGE, hash_key(HASH_KIND_PAGE, pages->hashes[i]),
                 INDEX_ANYWHERE);
    return true;
}

/* Files the rule under its best key. False when it must be looked at for every request. */
static bool file_rule(struct builder *builder, uint32_t number) {
    const struct rule *rule = &builder->rules[number];
    if (rule->host_length > 0) {
        uint64_t host = hash_host(slice_make(rule->pattern, rule->host_length));
        file(builder, number, HASH_KIND_HOST, hash_key(HASH_KIND_HOST, host & ~(uint64_t)1), 0);
        return true;
    }
    struct offer word = best_offer(builder, rule, false);
    if (word.weight < WEIGHT_COMMON) {
        file(builder, number, word.kind, word.key, word.offset);
        return true;
    }
    if (file_by_pages(builder, number))
        return true;
    struct offer part = best_offer(builder, rule, true);
    struct offer offer = part.weight < word.weight ? part : word;
    if (offer.weight == WEIGHT_NONE)
        return false;
    file(builder, number, offer.kind, offer.key, offer.offset);
    return true;
}

static int compare_filings(const void *a, const void *b) {
    const struct filing *left = a, *right = b;
    if (left->key != right->key)
        return left->key < right->key ? -1 : 1;
    return left->entry.rule < right->entry.rule ? -1 : left->entry.rule > right->entry.rule;
}

static struct index_slot *find_slot(const struct rule_index *index, uint32_t key) {
    uint32_t mask = UINT32_MAX >> index->slot_shift, at = key >> index->slot_shift;
    while (index->slots[at].first != 0 && index->slots[at].key != key)
        at = (at + 1) & mask;
    return &index->slots[at];
}

static void make_table(struct rule_index *index, size_t keys) {
    unsigned bits = 6;
    while (bits < 28 && ((size_t)1 << bits) < keys * 2)
        bits++;
    index->slot_shift = 32 - bits;
    index->slots = xcalloc((size_t)1 << bits, sizeof *index->slots);
    while (bits < 31 && ((size_t)1 << bits) < keys * BITS_A_KEY)
        bits++;
    index->bit_mask = (uint32_t)(((size_t)1 << bits) - 1);
    index->bits = xcalloc(((size_t)1 << bits) / 64, sizeof *index->bits);
}

static void fill_table(struct rule_index *index, const struct filing *filings, size_t count) {
    for (size_t i = 0; i < count; i++) {
        uint32_t key = filings[i].key;
        index->entries[i + 1] = filings[i].entry;
        index->entries[i + 1].last = i + 1 == count || filings[i + 1].key != key;
        if (i > 0 && filings[i - 1].key == key)
            continue;
        *find_slot(index, key) = (struct index_slot){key, (uint32_t)i + 1};
        index->bits[(key & index->bit_mask) / 64] |= (uint64_t)1 << (key % 64);
    }
}

/* Rules without a key stand behind all others. */
static void add_rest(struct rule_index *index, const struct builder *builder, const uint32_t *rest,
                     uint32_t count) {
    index->anywhere = count == 0 ? 0 : (uint32_t)builder->count + 1;
    for (uint32_t i = 0; i < count; i++)
        index->entries[builder->count + 1 + i] = (struct index_entry){
            rest[i], builder->rules[rest[i]].types, INDEX_ANYWHERE, i + 1 == count};
}

void rule_index_build(struct rule_index *index, const struct rule *rules, const uint32_t *numbers,
                      uint32_t count) {
    memset(index, 0, sizeof *index);
    index->count = count;
    if (count == 0)
        return;
    struct builder builder = {.rules = rules, .tally = xcalloc(TALLY_SIZE, sizeof *builder.tally)};
    uint32_t *rest = xcalloc(count, sizeof *rest), rest_count = 0;
    for (uint32_t i = 0; i < count; i++)
        if (rules[numbers[i]].host_length == 0)
            tally(&builder, &rules[numbers[i]]);
    for (uint32_t i = 0; i < count; i++)
        if (!file_rule(&builder, numbers[i]))
            rest[rest_count++] = numbers[i];
    if (builder.count > 0)
        qsort(builder.filings, builder.count, sizeof *builder.filings, compare_filings);
    make_table(index, builder.count);
    index->entries = xcalloc(builder.count + rest_count + 1, sizeof *index->entries);
    fill_table(index, builder.filings, builder.count);
    add_rest(index, &builder, rest, rest_count);
    index->kinds = builder.kinds;
    free(rest);
    free(builder.tally);
    free(builder.filings);
}

void rule_index_release(struct rule_index *index) {
    free(index->bits);
    free(index->slots);
    free(index->entries);
    memset(index, 0, sizeof *index);
}

/* ---- searching ---------------------------------------------------------------------------- */

struct search {
    const struct rule_index *index;
    const struct rule *rules;
    struct filter_request *request;
    rule_visitor visit;
    void *arg;
};

/* The host was found by its hash: is it really the whole host of the rule? */
static bool host_matches(const struct search *search, const struct rule *rule, size_t at) {
    struct filter_request *request = search->request;
    size_t begin = (size_t)(request->host.base - request->lower);
    size_t length = begin + request->host.length - at;
    if (length != rule->host_length || (rule->exact_host && at != begin))
        return false;
    return rule->whole_host ? memcmp(request->lower + at, rule->pattern, length) == 0
                            : rule_matches_at(rule, request, at);
}

static bool entry_matches(const struct search *search, const struct index_entry *entry,
                          const struct rule *rule, size_t place) {
    if (rule->host_length > 0)
        return host_matches(search, rule, place);
    if (entry->offset == INDEX_ANYWHERE)
        return rule_matches(rule, search->request);
    return place >= entry->offset && rule_matches_at(rule, search->request, place - entry->offset);
}

static bool look_at(const struct search *search, uint32_t first, size_t place) {
    const struct index_entry *entry = &search->index->entries[first];
    for (;; entry++) {
        const struct rule *rule = &search->rules[entry->rule];
        if (!filter_request_work(search->request, 1))
            return false;
        if ((entry->types & search->request->types) != 0 &&
            entry_matches(search, entry, rule, place) && search->visit(search->arg, rule))
            return true;
        if (entry->last)
            return false;
    }
}

static inline bool rule_index_look_up(const struct search *search, uint32_t key, size_t place) {
    const struct rule_index *index = search->index;
    if ((index->bits[(key & index->bit_mask) / 64] >> (key % 64) & 1) == 0)
        return false;
    const struct index_slot *slot = find_slot(index, key);
    return slot->first != 0 && look_at(search, slot->first, place);
}

static bool uses(const struct rule_index *index, enum hash_kind kind) {
    return (index->kinds >> kind & 1) != 0;
}

static bool search_labels(const struct search *search, enum hash_kind kind,
                          const struct filter_labels *labels, size_t begin) {
    for (unsigned i = 0; i < labels->count; i++)
        if (rule_index_look_up(search, hash_key(kind, labels->label[i].hash & ~(uint64_t)1),
                               begin + labels->label[i].at))
            return true;
    return false;
}

static bool search_words(const struct search *search) {
    const struct filter_request *request = search->request;
    bool heads = uses(search->index, HASH_KIND_HEAD), tails = uses(search->index, HASH_KIND_TAIL);
    for (unsigned i = 0; i < request->word_count; i++) {
        const struct filter_word *word = &request->words[i];
        size_t end = (size_t)word->at + word->length;
        if (rule_index_look_up(search, hash_key(HASH_KIND_WORD, word->hash), word->at))
            return true;
        if (word->length < HASH_PART)
            continue;
        const char *text = request->lower;
        if (heads && rule_index_look_up(
                         search, hash_key(HASH_KIND_HEAD, hash_part(text + word->at)), word->at))
            return true;
        if (tails && rule_index_look_up(
                         search, hash_key(HASH_KIND_TAIL, hash_part(text + end - HASH_PART)), end))
            return true;
    }
    return false;
}

bool rule_index_search(const struct rule_index *index, const struct rule *rules,
                       struct filter_request *request, rule_visitor visit, void *arg) {
    if (index->count == 0)
        return false;
    const struct search search = {index, rules, request, visit, arg};
    size_t host = (size_t)(request->host.base - request->lower);
    if (uses(index, HASH_KIND_HOST) &&
        search_labels(&search, HASH_KIND_HOST, &request->host_labels, host))
        return true;
    if (uses(index, HASH_KIND_PAGE) &&
        search_labels(&search, HASH_KIND_PAGE, &request->page_labels, 0))
        return true;
    return search_words(&search) || (index->anywhere != 0 && look_at(&search, index->anywhere, 0));
}
