#include "match/rules.h"

#include "base/assert.h"
#include "match/aho_corasick.h"
#include "match/class_lists.h"
#include "match/class_terms.h"
#include "match/edges.h"

#include <arpa/inet.h>
#include <stdlib.h>

/* A class and the rules that are for it. */
struct entry {
    const struct url_class *url_class;
    enum url_class_known known; /* what holds when the class is found by its term */
    bool perhaps;               /* see rules_add_perhaps */
    uint32_t *rules;
    size_t rule_count;
};

enum { BLOCKS_MAX = 33 + 129 };

/* An entry that every search compares, unless the request lacks what it needs for certain. */
struct other {
    uint32_t entry;
    unsigned needs; /* CLASS_ASKS_USER and others */
};

/* Sizes of the networks that classes are filed under. */
struct block {
    bool v6;
    unsigned bits;
};

struct rules {
    unsigned magic;
#define RULES_MAGIC 0x52554c45u
    bool sealed, any_typed, any_lists;
    unsigned asks;       /* of all classes */
    size_t count, words; /* count: of rules; words: of 64 bits */
    struct entry *entries;
    size_t entry_count;
    struct name_table places[PLACES]; /* a term has the numbers of its entries */
    struct aho_corasick *in_paths, *in_urls;
    struct edges path_edges, url_edges; /* of the expressions whose literals those are */
    struct block blocks[BLOCKS_MAX];
    size_t block_count;
    struct other *others;
    size_t other_count;
    uint64_t words_there[PLACES]; /* bits of the words filed there, see word_bit */
    uint64_t ports_there;         /* likewise of the last six bits of ports */
    bool by_path_edges;           /* likewise only under expressions in paths that have edges */
    bool any_hosts;               /* classes are filed under hosts */
    bool by_url;                  /* classes are filed only under parts of URLs */
    bool by_host;                 /* likewise only under hosts */
    bool by_nothing;              /* no class has a condition on a request */
    uint64_t *always;             /* bits of rules whose classes have no condition on a request */
    uint64_t *typed;              /* bits of rules whose classes have a content type */
    struct name_table types;      /* a type has the numbers of its rules; "image/": all images */
};

struct rules *rules_new(void) {
    struct rules *rules;
    ALLOC_OBJ(rules, RULES_MAGIC);
    return rules;
}

static struct entry *entry_of(struct rules *rules, const struct url_class *url_class,
                              bool perhaps) {
    for (size_t i = 0; i < rules->entry_count; i++)
        if (rules->entries[i].url_class == url_class && rules->entries[i].perhaps == perhaps)
            return &rules->entries[i];
    rules->entries = xrealloc(rules->entries, (rules->entry_count + 1) * sizeof *rules->entries);
    struct entry *entry = &rules->entries[rules->entry_count++];
    *entry = (struct entry){.url_class = url_class, .perhaps = perhaps};
    rules->asks |= url_class_asks(url_class);
    return entry;
}

static void rules_add_one(struct rules *rules, const struct url_class *url_class, bool perhaps) {
    CHECK_OBJ(rules, RULES_MAGIC);
    ASSERT(!rules->sealed);
    struct entry *entry = entry_of(rules, url_class, perhaps);
    entry->rules = xrealloc(entry->rules, (entry->rule_count + 1) * sizeof *entry->rules);
    entry->rules[entry->rule_count++] = (uint32_t)rules->count++;
}

void rules_add(struct rules *rules, const struct url_class *url_class) {
    rules_add_one(rules, url_class, false);
}

void rules_add_perhaps(struct rules *rules, const struct url_class *url_class) {
    if (url_class != NULL)
        rules_add_one(rules, url_class, true);
    else
        rules->count++;
}

/* A bit for a word, so that most words that are in no class are seen at a glance. */
static uint64_t word_bit(struct slice word) {
    unsigned char first = ascii_lower((unsigned char)word.base[0]);
    unsigned char last = ascii_lower((unsigned char)word.base[word.length - 1]);
    return UINT64_C(1) << (first * 5 + last * 3 + word.length) % 64;
}

/* Filing. */

struct filing {
    struct name_table *places;
    uint32_t entry;
    size_t shared; /* how many other entries have the same terms */
};

static void file_term(void *arg, enum class_place place, struct slice term) {
    struct filing *filing = arg;
    name_table_add(&filing->places[place], term, filing->entry);
}

static void count_term(void *arg, enum class_place place, struct slice term) {
    struct filing *filing = arg;
    filing->shared += name_table_find(&filing->places[place], term).count - 1;
}

/* Files all classes under all their conditions, to see which terms are shared. */
static void file_on_trial(const struct rules *rules, struct name_table trial[PLACES]) {
    struct filing filing = {.places = trial};
    for (; filing.entry < rules->entry_count; filing.entry++)
        for (int i = 0; i < CONDITIONS; i++)
            class_terms_each(rules->entries[filing.entry].url_class, (enum class_condition)i,
                             file_term, &filing);
    for (int i = 0; i < PLACES; i++)
        name_table_seal(&trial[i]);
}

/* What perhaps holds must be found without the user. */
static bool may_file_under(const struct entry *entry, enum class_condition condition) {
    return !entry->perhaps ||
           (condition != BY_USER && condition != BY_GROUP &&
            (condition != BY_ANY_OF || (url_class_asks(entry->url_class) & CLASS_ASKS_LATER) == 0));
}

/* The condition to file a class under; CONDITIONS: no condition will do. Hosts are best where few
 * classes share them: then the class costs nothing for requests to other hosts. */
static enum class_condition rules_choose(const struct entry *entry,
                                         struct name_table trial[PLACES]) {
    enum { FEW = 4 };
    enum class_condition best = CONDITIONS;
    size_t least = SIZE_MAX;
    for (int i = 0; i < CONDITIONS && (i < LAST_RESORTS || best >= LAST_RESORTS); i++) {
        struct filing filing = {.places = trial};
        if (!may_file_under(entry, (enum class_condition)i) ||
            !class_terms_each(entry->url_class, (enum class_condition)i, count_term, &filing))
            continue;
        if (filing.shared <= FEW)
            filing.shared = 0;
        if (filing.shared >= least)
            continue;
        least = filing.shared;
        best = (enum class_condition)i;
    }
    return best;
}

static void rules_set_rules(const struct entry *entry, uint64_t *bits) {
    for (size_t i = 0; i < entry->rule_count; i++)
        bits[entry->rules[i] / 64] |= UINT64_C(1) << entry->rules[i] % 64;
}

static bool wants_nothing(const struct entry *entry) {
    static const struct url_class_conditions none = {0};
    struct url_class_conditions stated = *url_class_conditions(entry->url_class);
    stated.content_types = NULL;
    if (entry->perhaps) {
        stated.users = stated.groups = NULL;
        stated.destinations = stated.destination_files = NULL;
    }
    return memcmp(&stated, &none, sizeof none) == 0;
}

/* What a request must have, or the class can't match it. */
static unsigned needs_of(const struct entry *entry) {
    const struct url_class_conditions *stated = url_class_conditions(entry->url_class);
    bool user = !entry->perhaps && (stated->users != NULL || stated->groups != NULL);
    bool destination =
        !entry->perhaps && (stated->destinations != NULL || stated->destination_files != NULL);
    return (user ? CLASS_ASKS_USER : 0u) | (destination ? CLASS_ASKS_DESTINATION : 0u) |
           (stated->snis != NULL ? CLASS_ASKS_SNI : 0u) |
           (stated->certificates != NULL ? CLASS_ASKS_CERTIFICATE : 0u) |
           (stated->request_headers != NULL ? CLASS_ASKS_HEAD : 0u);
}

static void add_edges(struct edges *edges, char **regexes) {
    for (; *regexes != NULL; regexes++)
        edges_add(edges, *regexes);
}

/* A class with any_of may be filed under the expressions of others. */
static void note_edges(struct rules *rules, const struct entry *entry,
                       enum class_condition condition) {
    const struct url_class_conditions *stated = url_class_conditions(entry->url_class);
    switch (condition) {
    case BY_PATH: add_edges(&rules->path_edges, stated->path_regexes); return;
    case BY_URL: add_edges(&rules->url_edges, stated->url_regexes); return;
    case BY_ANY_OF:
        edges_add_unknown(&rules->path_edges);
        edges_add_unknown(&rules->url_edges);
        return;
    default: return;
    }
}

static void file_entry(struct rules *rules, uint32_t at, struct name_table trial[PLACES]) {
    static const enum url_class_known known[CONDITIONS] = {[BY_HOST] = URL_CLASS_KNOWN_HOST,
                                                           [BY_DOMAIN] = URL_CLASS_KNOWN_DOMAIN,
                                                           [BY_CLIENT] = URL_CLASS_KNOWN_CLIENT,
                                                           [BY_USER] = URL_CLASS_KNOWN_USER,
                                                           [BY_GROUP] = URL_CLASS_KNOWN_GROUP};
    struct entry *entry = &rules->entries[at];
    struct filing filing = {.places = rules->places, .entry = at};
    enum class_condition condition = rules_choose(entry, trial);
    if (wants_nothing(entry))
        rules_set_rules(entry, rules->always);
    else if (condition == CONDITIONS)
        rules->others[rules->other_count++] = (struct other){.entry = at, .needs = needs_of(entry)};
    else {
        entry->known = known[condition];
        class_terms_each(entry->url_class, condition, file_term, &filing);
        note_edges(rules, entry, condition);
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

static void note_words(struct rules *rules, enum class_place place) {
    for (size_t i = 0; i < rules->places[place].count; i++)
        rules->words_there[place] |= word_bit(name_table_name(&rules->places[place], i));
}

static void note_facts(struct rules *rules) {
    note_words(rules, PLACE_METHODS);
    note_words(rules, PLACE_LISTENERS);
    for (size_t i = 0; i < rules->places[PLACE_PORTS].count; i++) {
        uint16_t port;
        memcpy(&port, name_table_name(&rules->places[PLACE_PORTS], i).base, sizeof port);
        rules->ports_there |= UINT64_C(1) << port % 64;
    }
    rules->any_lists = rules->places[PLACE_HOST_LISTS].count > 0 ||
                       rules->places[PLACE_CLIENT_LISTS].count > 0 ||
                       rules->places[PLACE_URL_LISTS].count > 0;
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
    rules->in_paths = aho_corasick_new(&rules->places[PLACE_IN_PATHS]);
    rules->in_urls = aho_corasick_new(&rules->places[PLACE_IN_URLS]);
    note_facts(rules);
    rules->any_hosts = rules->places[PLACE_HOSTS].count > 0 || rules->places[PLACE_BELOW].count > 0;
    rules->by_url = rules->by_nothing = rules->other_count == 0;
    for (int i = 0; i < PLACES; i++)
        if (rules->places[i].count > 0) {
            rules->by_nothing = false;
            rules->by_url &=
                i == PLACE_HOSTS || i == PLACE_BELOW || i == PLACE_IN_PATHS || i == PLACE_IN_URLS;
        }
    rules->by_host = rules->by_url && rules->in_paths == NULL && rules->in_urls == NULL;
    rules->by_path_edges = rules->by_url && !rules->any_hosts && rules->in_urls == NULL &&
                           rules->in_paths != NULL && !rules->path_edges.anywhere;
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
    aho_corasick_free(&rules->in_paths);
    aho_corasick_free(&rules->in_urls);
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

/* Can the class match, whoever the user is and wherever the host leads? */
static bool fits_perhaps(const struct entry *entry, const struct class_subject *subject) {
    struct class_subject open = *subject;
    open.user = NULL;
    open.destination_count = 0;
    open.user_pending = open.destination_pending = true;
    return url_class_judge_request(entry->url_class, &open, entry->known) != CLASS_NO;
}

static void try_entry(struct search *search, uint32_t at) {
    const struct rules *rules = search->rules;
    const struct entry *entry = &rules->entries[at];
    if (entry->perhaps
            ? !fits_perhaps(entry, search->subject)
            : url_class_judge_request(entry->url_class, search->subject, entry->known) != CLASS_YES)
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
    for (size_t i = 1; i + 1 + places[PLACE_BELOW].shortest <= host.length; i++)
        if (host.base[i] == '.')
            try_entries(search,
                        name_table_find(&places[PLACE_BELOW],
                                        slice_make(host.base + i + 1, host.length - i - 1)));
}

static void try_client(struct search *search) {
    const struct rules *rules = search->rules;
    const struct address *client = search->subject->client;
    bool v4 = client->any.sa_family == AF_INET;
    struct network network;
    char key[CLASS_TERMS_CLIENT_KEY];
    for (size_t i = 0; i < rules->block_count; i++) {
        const struct block *block = &rules->blocks[i];
        if (v4 && block->v6)
            continue;
        if (v4)
            class_terms_client_key_of_v4(ntohl(client->v4.sin_addr.s_addr), block->bits, key);
        else if (network_around(&network, client, block->v6, block->bits))
            class_terms_client_key(&network, key);
        else
            continue;
        try_entries(search,
                    name_table_find(&rules->places[PLACE_CLIENTS], slice_make(key, sizeof key)));
    }
}

static void try_name(struct search *search, enum class_place place, struct slice name) {
    const struct name_table *table = &search->rules->places[place];
    if (table->count > 0)
        try_entries(search, name_table_find(table, name));
}

static void try_word(struct search *search, enum class_place place, struct slice word) {
    char lower[CLASS_TERMS_WORD];
    if (word.length == 0 || (search->rules->words_there[place] & word_bit(word)) == 0 ||
        word.length > sizeof lower)
        return;
    slice_put_lower(lower, word);
    try_name(search, place, slice_make(lower, word.length));
}

static void try_user(struct search *search) {
    const struct class_user *user = search->subject->user;
    if (user == NULL)
        return;
    try_name(search, PLACE_USERS, user->name);
    for (size_t i = 0; i < user->group_count; i++)
        try_name(search, PLACE_GROUPS, user->groups[i]);
}

static bool is_in_list(const struct class_list *list, enum class_place place,
                       const struct class_subject *subject) {
    switch (place) {
    case PLACE_HOST_LISTS: return class_list_has_host(list, subject->host);
    case PLACE_URL_LISTS: return class_list_has_url(list, subject->url);
    default: return subject->client != NULL && class_list_has_address(list, subject->client);
    }
}

static void try_lists(struct search *search, enum class_place place) {
    const struct name_table *table = &search->rules->places[place];
    for (size_t i = 0; i < table->count; i++) {
        const struct class_list *list;
        memcpy(&list, name_table_name(table, i).base, sizeof list);
        if (is_in_list(list, place, search->subject))
            try_entries(search, name_table_numbers(table, i));
    }
}

static void try_others(struct search *search) {
    const struct class_subject *subject = search->subject;
    unsigned lacks = (subject->user == NULL ? CLASS_ASKS_USER : 0u) |
                     (subject->destination_count == 0 ? CLASS_ASKS_DESTINATION : 0u) |
                     (subject->sni.length == 0 ? CLASS_ASKS_SNI : 0u) |
                     (subject->certificate.length == 0 ? CLASS_ASKS_CERTIFICATE : 0u) |
                     (subject->head == NULL ? CLASS_ASKS_HEAD : 0u);
    for (size_t i = 0; i < search->rules->other_count; i++)
        if ((search->rules->others[i].needs & lacks) == 0)
            try_entry(search, search->rules->others[i].entry);
}

/* What classes state that do not fit a glance at the URL, besides the client's address. */
static void try_facts(struct search *search) {
    const struct class_subject *subject = search->subject;
    try_word(search, PLACE_METHODS, subject->method);
    if ((search->rules->ports_there >> subject->port % 64 & 1) != 0)
        try_name(search, PLACE_PORTS,
                 slice_make((const char *)&subject->port, sizeof subject->port));
    try_word(search, PLACE_LISTENERS, subject->listener);
    try_user(search);
    if (search->rules->any_lists) {
        try_lists(search, PLACE_HOST_LISTS);
        try_lists(search, PLACE_CLIENT_LISTS);
        try_lists(search, PLACE_URL_LISTS);
    }
    if (search->rules->other_count > 0)
        try_others(search);
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

unsigned rules_ask(const struct rules *rules) {
    CHECK_OBJ(rules, RULES_MAGIC);
    return rules->asks;
}

size_t rules_words(const struct rules *rules) {
    CHECK_OBJ(rules, RULES_MAGIC);
    return rules->words;
}

/* Is the host, or a name above it, one that classes are filed under? */
static __attribute__((noinline)) bool host_is_filed(const struct rules *rules, struct slice host) {
    const struct name_table *hosts = &rules->places[PLACE_HOSTS];
    const struct name_table *below = &rules->places[PLACE_BELOW];
    if (name_table_find(hosts, host).count > 0)
        return true;
    if (!name_table_may_have_end(below, host))
        return false;
    for (size_t i = 1; i + 1 + below->shortest <= host.length; i++)
        if (host.base[i] == '.' &&
            name_table_find(below, slice_make(host.base + i + 1, host.length - i - 1)).count > 0)
            return true;
    return false;
}

/* May an expression whose literals are there be found? */
static inline bool may_be_in(const struct aho_corasick *needles, const struct edges *edges,
                             struct slice text) {
    return needles != NULL && edges_may_find(edges, text) && aho_corasick_is_found(needles, text);
}

static __attribute__((noinline)) const uint64_t *
look_closer(const struct rules *rules, const struct url *url, struct slice url_text) {
    if (!rules->by_url || (rules->any_hosts && host_is_filed(rules, url_class_host(url->host))) ||
        may_be_in(rules->in_paths, &rules->path_edges, url_path(url)) ||
        may_be_in(rules->in_urls, &rules->url_edges, url_text))
        return NULL;
    return rules->always;
}

/* An empty path may be anything. */
static inline bool may_be_in_path(const struct rules *rules, struct slice path_query) {
    if (path_query.length == 0)
        return true;
    const char *query = memchr(path_query.base, '?', path_query.length);
    if (query != NULL)
        path_query.length = (size_t)(query - path_query.base);
    return edges_may_find(&rules->path_edges, path_query);
}

static inline __attribute__((always_inline)) const uint64_t *
glance_at_host(const struct rules *rules, const struct url *url, struct slice url_text) {
    const struct name_table *below = &rules->places[PLACE_BELOW];
    struct slice host = url_class_host(url->host);
    if (rules->by_host && !name_table_may_have_whole(&rules->places[PLACE_HOSTS], host) &&
        (host.length < below->shortest + 2 || !name_table_may_have_end(below, host)))
        return rules->always;
    return look_closer(rules, url, url_text);
}

/* Apart, so that a look at the host alone saves no registers. */
static __attribute__((noinline)) const uint64_t *
glance_at_path(const struct rules *rules, const struct url *url, struct slice url_text) {
    return may_be_in_path(rules, url->path_query) ? glance_at_host(rules, url, url_text)
                                                  : rules->always;
}

const uint64_t *rules_glance(const struct rules *rules, const struct url *url,
                             struct slice url_text) {
    CHECK_OBJ(rules, RULES_MAGIC);
    if (rules->by_nothing)
        return rules->always;
    return rules->by_path_edges ? glance_at_path(rules, url, url_text)
                                : glance_at_host(rules, url, url_text);
}

const uint64_t *rules_always(const struct rules *rules) {
    CHECK_OBJ(rules, RULES_MAGIC);
    return rules->always;
}

const uint64_t *rules_find(const struct rules *rules, const struct class_subject *subject,
                           struct arena *arena) {
    CHECK_OBJ(rules, RULES_MAGIC);
    struct search search = {.rules = rules, .subject = subject, .arena = arena};
    try_host(&search);
    if (rules->block_count > 0 && subject->client != NULL)
        try_client(&search);
    if (!rules->by_url)
        try_facts(&search);
    if (rules->in_paths != NULL && edges_may_find(&rules->path_edges, subject->path))
        aho_corasick_search(rules->in_paths, subject->path, rules_on_literal, &search);
    if (rules->in_urls != NULL && edges_may_find(&rules->url_edges, subject->url))
        aho_corasick_search(rules->in_urls, subject->url, rules_on_literal, &search);
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
