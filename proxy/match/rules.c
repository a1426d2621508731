#include "match/rules.h"

#include "base/assert.h"
#include "match/literals.h"
#include "match/needles.h"

#include <stdlib.h>

/* The tables in which the terms of classes are filed. */
enum place {
    PLACE_HOSTS,    /* names */
    PLACE_BELOW,    /* names; a term stands for all names below it */
    PLACE_CLIENTS,  /* networks, see client_key */
    PLACE_IN_PATHS, /* texts that occur in a path */
    PLACE_IN_URLS,  /* texts that occur in a URL */
    PLACES,
};

/* The conditions that a class may be filed under, the cheapest first. */
enum condition { BY_HOST, BY_DOMAIN, BY_CLIENT, BY_PATH, BY_URL, CONDITIONS };

/* A class and the rules that are for it. */
struct entry {
    const struct url_class *url_class;
    enum url_class_known known; /* what holds when the class is found by its term */
    uint32_t *rules;
    size_t rule_count;
};

enum { CLIENT_KEY = 18, BLOCKS_MAX = 33 + 129 };

/* Sizes of the networks that classes are filed under. */
struct block {
    bool v6;
    unsigned bits;
};

struct rules {
    unsigned magic;
#define RULES_MAGIC 0x52554c45u
    bool sealed, any_typed;
    size_t count, words; /* count: of rules; words: of 64 bits */
    struct entry *entries;
    size_t entry_count;
    struct name_table places[PLACES]; /* a term has the numbers of its entries */
    struct needles *in_paths, *in_urls;
    struct block blocks[BLOCKS_MAX];
    size_t block_count;
    uint32_t *others; /* entries that every search compares */
    size_t other_count;
    bool by_url;             /* classes are filed only under parts of URLs */
    uint64_t *always;        /* bits of rules whose classes have no condition on a request */
    uint64_t *typed;         /* bits of rules whose classes have a content type */
    struct name_table types; /* a type has the numbers of its rules; "image/": all images */
};

struct rules *rules_new(void) {
    struct rules *rules;
    ALLOC_OBJ(rules, RULES_MAGIC);
    return rules;
}

static struct entry *entry_of(struct rules *rules, const struct url_class *url_class) {
    for (size_t i = 0; i < rules->entry_count; i++)
        if (rules->entries[i].url_class == url_class)
            return &rules->entries[i];
    rules->entries = xrealloc(rules->entries, (rules->entry_count + 1) * sizeof *rules->entries);
    struct entry *entry = &rules->entries[rules->entry_count++];
    *entry = (struct entry){.url_class = url_class};
    return entry;
}

void rules_add(struct rules *rules, const struct url_class *url_class) {
    CHECK_OBJ(rules, RULES_MAGIC);
    ASSERT(!rules->sealed);
    struct entry *entry = entry_of(rules, url_class);
    entry->rules = xrealloc(entry->rules, (entry->rule_count + 1) * sizeof *entry->rules);
    entry->rules[entry->rule_count++] = (uint32_t)rules->count++;
}

/* The terms of a class's conditions. */

typedef void term_fn(void *arg, enum place place, struct slice term);

static void client_key(const struct network *network, char key[CLIENT_KEY]) {
    key[0] = (char)network->v6;
    key[1] = (char)network->bits;
    memcpy(key + 2, network->prefix, sizeof network->prefix);
}

static void each_host(char **names, bool domains, term_fn *visit, void *arg) {
    for (; *names != NULL; names++) {
        bool star = strncmp(*names, "*.", 2) == 0;
        struct slice name = slice_from(star ? *names + 2 : *names);
        if (!star)
            visit(arg, PLACE_HOSTS, name);
        if (star || domains)
            visit(arg, PLACE_BELOW, name);
    }
}

static void each_client(char **texts, term_fn *visit, void *arg) {
    struct network network;
    char key[CLIENT_KEY];
    for (; *texts != NULL; texts++) {
        ASSERT(network_parse(&network, slice_from(*texts)));
        network_mask(&network, network.bits);
        client_key(&network, key);
        visit(arg, PLACE_CLIENTS, slice_make(key, sizeof key));
    }
}

/* False: one of the expressions has no literals, so that any text may match it. */
static bool each_literal(char **regexes, enum place place, term_fn *visit, void *arg) {
    struct literals literals;
    for (char **regex = regexes; *regex != NULL; regex++)
        if (!literals_of(*regex, &literals))
            return false;
    for (char **regex = regexes; *regex != NULL; regex++) {
        literals_of(*regex, &literals);
        for (unsigned i = 0; i < literals.count; i++)
            visit(arg, place, literal_text(&literals.each[i]));
    }
    return true;
}

/* False: the class can not be filed under this condition. */
static bool each_term(const struct url_class *url_class, enum condition condition, term_fn *visit,
                      void *arg) {
    const struct url_class_conditions *stated = url_class_conditions(url_class);
    char **texts[] = {[BY_HOST] = stated->hosts,
                      [BY_DOMAIN] = stated->domains,
                      [BY_CLIENT] = stated->clients,
                      [BY_PATH] = stated->path_regexes,
                      [BY_URL] = stated->url_regexes};
    if (texts[condition] == NULL)
        return false;
    switch (condition) {
    case BY_PATH: return each_literal(texts[condition], PLACE_IN_PATHS, visit, arg);
    case BY_URL: return each_literal(texts[condition], PLACE_IN_URLS, visit, arg);
    case BY_CLIENT: each_client(texts[condition], visit, arg); return true;
    default: each_host(texts[condition], condition == BY_DOMAIN, visit, arg); return true;
    }
}

/* Filing. */

struct filing {
    struct name_table *places;
    uint32_t entry;
    size_t shared; /* how many other entries have the same terms */
};

static void file_term(void *arg, enum place place, struct slice term) {
    struct filing *filing = arg;
    name_table_add(&filing->places[place], term, filing->entry);
}

static void count_term(void *arg, enum place place, struct slice term) {
    struct filing *filing = arg;
    filing->shared += name_table_find(&filing->places[place], term).count - 1;
}

/* Files all classes under all their conditions, to see which terms are shared. */
static void file_on_trial(const struct rules *rules, struct name_table trial[PLACES]) {
    struct filing filing = {.places = trial};
    for (; filing.entry < rules->entry_count; filing.entry++)
        for (int i = 0; i < CONDITIONS; i++)
            each_term(rules->entries[filing.entry].url_class, (enum condition)i, file_term,
                      &filing);
    for (int i = 0; i < PLACES; i++)
        name_table_seal(&trial[i]);
}

/* The condition to file a class under; CONDITIONS: no condition will do. Hosts are best where few
 * classes share them: then the class costs nothing for requests to other hosts. */
static enum condition rules_choose(const struct url_class *url_class,
                                   struct name_table trial[PLACES]) {
    enum { FEW = 4 };
    enum condition best = CONDITIONS;
    size_t least = SIZE_MAX;
    for (int i = 0; i < CONDITIONS; i++) {
        struct filing filing = {.places = trial};
        if (!each_term(url_class, (enum condition)i, count_term, &filing))
            continue;
        if (filing.shared <= FEW)
            filing.shared = 0;
        if (filing.shared >= least)
            continue;
        least = filing.shared;
        best = (enum condition)i;
    }
    return best;
}

static void rules_set_rules(const struct entry *entry, uint64_t *bits) {
    for (size_t i = 0; i < entry->rule_count; i++)
        bits[entry->rules[i] / 64] |= UINT64_C(1) << entry->rules[i] % 64;
}

static bool wants_nothing(const struct url_class *url_class) {
    const struct url_class_conditions *stated = url_class_conditions(url_class);
    return stated->hosts == NULL && stated->domains == NULL && stated->path_regexes == NULL &&
           stated->url_regexes == NULL && stated->methods == NULL && stated->clients == NULL;
}

static void file_entry(struct rules *rules, uint32_t at, struct name_table trial[PLACES]) {
    static const enum url_class_known known[CONDITIONS] = {[BY_HOST] = URL_CLASS_KNOWN_HOST,
                                                           [BY_DOMAIN] = URL_CLASS_KNOWN_DOMAIN,
                                                           [BY_CLIENT] = URL_CLASS_KNOWN_CLIENT};
    struct entry *entry = &rules->entries[at];
    struct filing filing = {.places = rules->places, .entry = at};
    enum condition condition = rules_choose(entry->url_class, trial);
    if (wants_nothing(entry->url_class))
        rules_set_rules(entry, rules->always);
    else if (condition == CONDITIONS)
        rules->others[rules->other_count++] = at;
    else {
        entry->known = known[condition];
        each_term(entry->url_class, condition, file_term, &filing);
    }
}

/* Files the media types of a class. The term "image/" stands for all images. */
static void file_types(struct rules *rules, const struct entry *entry) {
    char **types = url_class_conditions(entry->url_class)->content_types;
    char name[URL_CLASS_TYPE_MAX];
    if (types == NULL)
        return;
    rules->any_typed = true;
    rules_set_rules(entry, rules->typed);
    for (; *types != NULL; types++) {
        size_t length = url_class_type_name(slice_from(*types), name);
        if (length > 2 && strcmp(name + length - 2, "/*") == 0)
            length--;
        for (size_t i = 0; i < entry->rule_count; i++)
            name_table_add(&rules->types, slice_make(name, length), entry->rules[i]);
    }
}

static void note_block(struct rules *rules, struct slice key) {
    struct block block = {.v6 = key.base[0] != 0, .bits = (unsigned char)key.base[1]};
    for (size_t i = 0; i < rules->block_count; i++)
        if (rules->blocks[i].v6 == block.v6 && rules->blocks[i].bits == block.bits)
            return;
    rules->blocks[rules->block_count++] = block;
}

void rules_seal(struct rules *rules) {
    CHECK_OBJ(rules, RULES_MAGIC);
    struct name_table trial[PLACES] = {0};
    rules->sealed = true;
    rules->words = rules->count == 0 ? 1 : (rules->count + 63) / 64;
    rules->always = xcalloc(rules->words, sizeof *rules->always);
    rules->typed = xcalloc(rules->words, sizeof *rules->typed);
    rules->others = xcalloc(rules->entry_count + 1, sizeof *rules->others);
    file_on_trial(rules, trial);
    for (uint32_t i = 0; i < rules->entry_count; i++) {
        file_entry(rules, i, trial);
        file_types(rules, &rules->entries[i]);
    }
    for (int i = 0; i < PLACES; i++) {
        name_table_release(&trial[i]);
        name_table_seal(&rules->places[i]);
    }
    name_table_seal(&rules->types);
    for (size_t i = 0; i < rules->places[PLACE_CLIENTS].count; i++)
        note_block(rules, name_table_name(&rules->places[PLACE_CLIENTS], i));
    rules->in_paths = needles_new(&rules->places[PLACE_IN_PATHS]);
    rules->in_urls = needles_new(&rules->places[PLACE_IN_URLS]);
    rules->by_url = rules->block_count == 0 && rules->other_count == 0;
}

void rules_free(struct rules **rulesp) {
    struct rules *rules = *rulesp;
    *rulesp = NULL;
    if (rules == NULL)
        return;
    CHECK_OBJ(rules, RULES_MAGIC);
    for (size_t i = 0; i < rules->entry_count; i++)
        free(rules->entries[i].rules);
    for (int i = 0; i < PLACES; i++)
        name_table_release(&rules->places[i]);
    name_table_release(&rules->types);
    needles_free(&rules->in_paths);
    needles_free(&rules->in_urls);
    free(rules->entries);
    free(rules->others);
    free(rules->always);
    free(rules->typed);
    FREE_OBJ(rules);
}

/* Finding. */

struct search {
    const struct rules *rules;
    const struct class_subject *subject;
    struct arena *arena;
    uint64_t *bits;  /* of rules; NULL: only those in `always` */
    uint64_t *tried; /* of entries; NULL: none were tried */
};

static uint64_t *copy_bits(const struct rules *rules, const uint64_t *bits, struct arena *arena) {
    size_t size = rules->words * sizeof *bits;
    return memcpy(arena_alloc(arena, size), bits, size);
}

static void try_entry(struct search *search, uint32_t at) {
    const struct rules *rules = search->rules;
    const struct entry *entry = &rules->entries[at];
    if (!url_class_matches_request(entry->url_class, search->subject, entry->known))
        return;
    if (search->bits == NULL)
        search->bits = copy_bits(rules, rules->always, search->arena);
    rules_set_rules(entry, search->bits);
}

static void try_entries(struct search *search, struct numbers numbers) {
    for (size_t i = 0; i < numbers.count; i++)
        try_entry(search, numbers.each[i]);
}

static void try_host(struct search *search) {
    const struct name_table *places = search->rules->places;
    struct slice host = url_class_host(search->subject->host);
    try_entries(search, name_table_find(&places[PLACE_HOSTS], host));
    if (!name_table_may_have_end(&places[PLACE_BELOW], host))
        return;
    for (size_t i = 1; i + 1 < host.length; i++)
        if (host.base[i] == '.')
            try_entries(search,
                        name_table_find(&places[PLACE_BELOW],
                                        slice_make(host.base + i + 1, host.length - i - 1)));
}

static void try_client(struct search *search) {
    const struct rules *rules = search->rules;
    struct network network;
    char key[CLIENT_KEY];
    for (size_t i = 0; i < rules->block_count; i++) {
        const struct block *block = &rules->blocks[i];
        if (!network_around(&network, search->subject->client, block->v6, block->bits))
            continue;
        client_key(&network, key);
        try_entries(search,
                    name_table_find(&rules->places[PLACE_CLIENTS], slice_make(key, sizeof key)));
    }
}

/* Compares each entry once, however often its literals occur: a client may send a URL that
 * repeats them. */
static bool rules_on_literal(void *arg, struct numbers numbers) {
    struct search *search = arg;
    if (search->tried == NULL) /* there are no more entries than rules */
        search->tried = arena_zalloc(search->arena, search->rules->words * sizeof *search->tried);
    for (size_t i = 0; i < numbers.count; i++) {
        uint32_t at = numbers.each[i];
        uint64_t *tried = &search->tried[at / 64], bit = UINT64_C(1) << at % 64;
        if ((*tried & bit) == 0)
            try_entry(search, at);
        *tried |= bit;
    }
    return false;
}

size_t rules_words(const struct rules *rules) {
    CHECK_OBJ(rules, RULES_MAGIC);
    return rules->words;
}

const uint64_t *rules_glance(const struct rules *rules, const struct url *url,
                             struct slice url_text) {
    CHECK_OBJ(rules, RULES_MAGIC);
    struct slice host = url_class_host(url->host);
    if (!rules->by_url || name_table_may_have(&rules->places[PLACE_HOSTS], host) ||
        name_table_may_have_end(&rules->places[PLACE_BELOW], host) ||
        (rules->in_paths != NULL && needles_are_in(rules->in_paths, url->path_query, '?')) ||
        (rules->in_urls != NULL && needles_are_in(rules->in_urls, url_text, -1)))
        return NULL;
    return rules->always;
}

const uint64_t *rules_find(const struct rules *rules, const struct class_subject *subject,
                           struct arena *arena) {
    CHECK_OBJ(rules, RULES_MAGIC);
    struct search search = {.rules = rules, .subject = subject, .arena = arena};
    try_host(&search);
    if (rules->block_count > 0 && subject->client != NULL)
        try_client(&search);
    for (size_t i = 0; i < rules->other_count; i++)
        try_entry(&search, rules->others[i]);
    if (rules->in_paths != NULL)
        needles_search(rules->in_paths, subject->path, rules_on_literal, &search);
    if (rules->in_urls != NULL)
        needles_search(rules->in_urls, subject->url, rules_on_literal, &search);
    return search.bits != NULL ? search.bits : rules->always;
}

static uint64_t *untyped(const struct rules *rules, const uint64_t *bits, struct arena *arena) {
    uint64_t *out = copy_bits(rules, bits, arena);
    for (size_t i = 0; i < rules->words; i++)
        out[i] &= ~rules->typed[i];
    return out;
}

const uint64_t *rules_without_type(const struct rules *rules, const uint64_t *bits,
                                   struct arena *arena) {
    return rules->any_typed ? untyped(rules, bits, arena) : bits;
}

static void take_typed(struct numbers numbers, const uint64_t *bits, uint64_t *out) {
    for (size_t i = 0; i < numbers.count; i++) {
        uint32_t at = numbers.each[i];
        out[at / 64] |= bits[at / 64] & UINT64_C(1) << at % 64;
    }
}

const uint64_t *rules_with_type(const struct rules *rules, const uint64_t *bits,
                                struct slice content_type, struct arena *arena) {
    char name[URL_CLASS_TYPE_MAX];
    if (!rules->any_typed)
        return bits;
    uint64_t *out = untyped(rules, bits, arena);
    size_t length = url_class_type_name(content_type, name);
    if (length == 0)
        return out;
    const char *slash = memchr(name, '/', length);
    take_typed(name_table_find(&rules->types, slice_make(name, length)), bits, out);
    if (slash != NULL)
        take_typed(name_table_find(&rules->types, slice_make(name, (size_t)(slash - name) + 1)),
                   bits, out);
    return out;
}
