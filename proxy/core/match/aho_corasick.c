#include "match/aho_corasick.h"

#include "base/assert.h"

#include <stdlib.h>

/* LENGTH_MOST: bytes of a needle that count. CELLS_MOST: cells of the automaton. Fewer bytes count
 * where the automaton would have too many cells. */
enum { LENGTH_MOST = 64, LENGTH_LEAST = 3, CELLS_MOST = 4 << 20 };

/* The names of the table that end in a state. The search knows a state by its row. */
struct ending {
    uint32_t from, to;
    uint32_t shorter; /* row of shorter names that end here too; 0: none */
};

/* The automaton. A row of cells belongs to one state. For each kind of byte the row says where the
 * row of the next state begins. The rows of states in which names end stand behind all others. */
struct aho_corasick {
    unsigned magic;
#define AHO_CORASICK_MAGIC 0x4e45444cu
    const struct name_table *table;
    unsigned char kinds[256]; /* of bytes; 0: the byte is in no needle */
    unsigned kind_count;
    uint32_t *cells;
    uint32_t first_ending; /* where the first row of such a state begins */
    struct ending *endings;
};

/* The automaton while it is made. States have numbers; a search begins in state 0. */
struct making {
    unsigned kind_count;
    uint32_t *next; /* a row for each state, as in `cells`; 0: no next state yet */
    struct ending *endings;
    uint32_t *failures, *queue, *rows;
    uint32_t count;
};

static void set_kinds(struct aho_corasick *needles) {
    needles->kind_count = 1;
    for (size_t i = 0; i < needles->table->count; i++) {
        struct slice name = name_table_name(needles->table, i);
        for (size_t j = 0; j < name.length; j++) {
            unsigned char *kind = &needles->kinds[(unsigned char)name.base[j]];
            if (*kind == 0)
                *kind = (unsigned char)needles->kind_count++;
        }
    }
    for (unsigned c = 'A'; c <= 'Z'; c++)
        needles->kinds[c] = needles->kinds[ascii_lower((unsigned char)c)];
}

/* Adds the states of a name. The table is sorted, so names with the same beginning follow
 * one another. */
static void add_name(struct making *provenance, const struct aho_corasick *needles, uint32_t at,
                     size_t most) {
    struct slice name = name_table_name(needles->table, at);
    uint32_t state = 0;
    ASSERT(name.length > 0);
    for (size_t i = 0; i < name.length && i < most; i++) {
        unsigned kind = needles->kinds[(unsigned char)name.base[i]];
        uint32_t *next = &provenance->next[(size_t)state * provenance->kind_count + kind];
        if (*next == 0)
            *next = provenance->count++;
        state = *next;
    }
    struct ending *ending = &provenance->endings[state];
    if (ending->to == 0)
        ending->from = at;
    ending->to = at + 1;
}

/* How many states the automaton would have: one for each different beginning of a name. */
static size_t count_states(const struct name_table *table, size_t most) {
    size_t count = 1;
    struct slice last = SLICE("");
    for (size_t i = 0; i < table->count; i++) {
        struct slice name = name_table_name(table, i);
        size_t length = name.length < most ? name.length : most, same = 0;
        while (same < length && same < last.length && name.base[same] == last.base[same])
            same++;
        count += length - same;
        last = name;
    }
    return count;
}

static size_t choose_length(const struct aho_corasick *needles) {
    size_t most = LENGTH_MOST;
    while (most > LENGTH_LEAST &&
           count_states(needles->table, most) * needles->kind_count > CELLS_MOST)
        most = most / 2 > LENGTH_LEAST ? most / 2 : LENGTH_LEAST;
    return most;
}

static bool ends(const struct making *provenance, uint32_t state) {
    return provenance->endings[state].to > 0 || provenance->endings[state].shorter > 0;
}

/* Fills the row of a state. The failure of a state is where the search goes on when the state has
 * no next state for a byte: it is the longest proper end of the state's text that is the beginning
 * of a name. */
static void take_state(struct making *provenance, uint32_t state, uint32_t *queued) {
    const unsigned kinds = provenance->kind_count;
    uint32_t failure = provenance->failures[state];
    for (unsigned kind = 1; kind < kinds; kind++) {
        uint32_t *next = &provenance->next[(size_t)state * kinds + kind];
        uint32_t otherwise = state == 0 ? 0 : provenance->next[(size_t)failure * kinds + kind];
        if (*next == 0) {
            *next = otherwise;
            continue;
        }
        provenance->failures[*next] = otherwise;
        provenance->endings[*next].shorter = provenance->endings[otherwise].to > 0
                                                 ? otherwise
                                                 : provenance->endings[otherwise].shorter;
        provenance->queue[(*queued)++] = *next;
    }
}

/* Takes the states from short to long, because the failure of a state is shorter than the state. */
static void complete(struct making *provenance) {
    uint32_t queued = 0;
    take_state(provenance, 0, &queued);
    for (uint32_t i = 0; i < queued; i++)
        take_state(provenance, provenance->queue[i], &queued);
}

static void order_rows(struct making *provenance, struct aho_corasick *needles) {
    uint32_t row = 0;
    for (uint32_t state = 0; state < provenance->count; state++)
        if (!ends(provenance, state))
            provenance->rows[state] = row++;
    needles->first_ending = row * provenance->kind_count;
    for (uint32_t state = 0; state < provenance->count; state++)
        if (ends(provenance, state))
            provenance->rows[state] = row++;
}

static void write_rows(const struct making *provenance, struct aho_corasick *needles) {
    const unsigned kinds = provenance->kind_count;
    uint32_t plain = needles->first_ending / kinds;
    needles->cells = xcalloc((size_t)provenance->count * kinds, sizeof *needles->cells);
    needles->endings = xcalloc(provenance->count - plain, sizeof *needles->endings);
    for (uint32_t state = 0; state < provenance->count; state++) {
        uint32_t row = provenance->rows[state];
        for (unsigned kind = 0; kind < kinds; kind++)
            needles->cells[(size_t)row * kinds + kind] =
                provenance->rows[provenance->next[(size_t)state * kinds + kind]] * kinds;
        if (row < plain)
            continue;
        struct ending *ending = &needles->endings[row - plain];
        *ending = provenance->endings[state];
        ending->shorter = ending->shorter == 0 ? 0 : provenance->rows[ending->shorter] * kinds;
    }
}

static void aho_corasick_make(struct aho_corasick *needles) {
    size_t most = choose_length(needles), states = count_states(needles->table, most);
    struct making provenance = {
        .kind_count = needles->kind_count,
        .next = xcalloc(states * needles->kind_count, sizeof(uint32_t)),
        .endings = xcalloc(states, sizeof(struct ending)),
        .failures = xcalloc(states, sizeof(uint32_t)),
        .queue = xcalloc(states, sizeof(uint32_t)),
        .rows = xcalloc(states, sizeof(uint32_t)),
        .count = 1,
    };
    for (size_t i = 0; i < needles->table->count; i++)
        add_name(&provenance, needles, (uint32_t)i, most);
    ASSERT(provenance.count == states);
    complete(&provenance);
    order_rows(&provenance, needles);
    write_rows(&provenance, needles);
    free(provenance.next);
    free(provenance.endings);
    free(provenance.failures);
    free(provenance.queue);
    free(provenance.rows);
}

struct aho_corasick *aho_corasick_new(const struct name_table *table) {
    struct aho_corasick *needles;
    if (table->count == 0)
        return NULL;
    ALLOC_OBJ(needles, AHO_CORASICK_MAGIC);
    needles->table = table;
    set_kinds(needles);
    aho_corasick_make(needles);
    return needles;
}

void aho_corasick_free(struct aho_corasick **needlesp) {
    struct aho_corasick *needles = *needlesp;
    *needlesp = NULL;
    if (needles == NULL)
        return;
    CHECK_OBJ(needles, AHO_CORASICK_MAGIC);
    free(needles->cells);
    free(needles->endings);
    FREE_OBJ(needles);
}

/* Tells the caller the names that end in this state. True: the caller needs no more. */
static bool aho_corasick_tell(const struct aho_corasick *needles, uint32_t at,
                              bool (*on_found)(void *arg, struct numbers numbers), void *arg) {
    while (at >= needles->first_ending) {
        const struct ending *ending =
            &needles->endings[(at - needles->first_ending) / needles->kind_count];
        for (uint32_t name = ending->from; name < ending->to; name++)
            if (on_found(arg, name_table_numbers(needles->table, name)))
                return true;
        at = ending->shorter;
    }
    return false;
}

bool aho_corasick_is_found(const struct aho_corasick *needles, struct slice text) {
    CHECK_OBJ(needles, AHO_CORASICK_MAGIC);
    const uint32_t *cells = needles->cells, first_ending = needles->first_ending;
    const unsigned char *byte = (const unsigned char *)text.base, *end = byte + text.length;
    for (uint32_t at = 0; byte < end; byte++) {
        at = cells[at + needles->kinds[*byte]];
        if (at >= first_ending)
            return true;
    }
    return false;
}

void aho_corasick_search(const struct aho_corasick *needles, struct slice text,
                         bool (*on_found)(void *arg, struct numbers numbers), void *arg) {
    CHECK_OBJ(needles, AHO_CORASICK_MAGIC);
    const uint32_t *cells = needles->cells, first_ending = needles->first_ending;
    const unsigned char *byte = (const unsigned char *)text.base, *end = byte + text.length;
    for (uint32_t at = 0; byte < end; byte++) {
        at = cells[at + needles->kinds[*byte]];
        if (__builtin_expect(at >= first_ending, 0) &&
            aho_corasick_tell(needles, at, on_found, arg))
            return;
    }
}
