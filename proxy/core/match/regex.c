#define PCRE2_CODE_UNIT_WIDTH 8

#include "match/regex.h"

#include "base/assert.h"
#include "base/reserve.h"
#include "match/aho_corasick.h"
#include "match/literals.h"

#include <pcre2.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

/* A search that needs more steps than this counts as no match. Ordinary patterns on URLs of a few
 * KB take some hundred steps. The limit keeps the search in a URL that is made to provoke
 * backtracking below some milliseconds. */
enum { REGEX_MATCH_LIMIT = 100000, REGEX_DEPTH_LIMIT = 1000, REGEX_HEAP_LIMIT_KB = 1024 };
enum { REGEX_QUICK_LIMIT = 500 }; /* steps: some microseconds */
enum { REGEX_STACK_MIN = 32 << 10, REGEX_STACK_MAX = 512 << 10 };
enum { FILTER_LEAST = 4 }; /* a filter is worth its cost for this many expressions */

/* Finds out which of many expressions may match a text. */
struct regex_filter {
    unsigned magic;
#define REGEX_FILTER_MAGIC 0x5246494cu
    struct name_table literals; /* a literal has the numbers of its expressions */
    struct aho_corasick *needles;
    uint32_t *others; /* expressions without literals */
    size_t other_count;
};

/* PCRE2's scratch memory. Each thread makes its own at its first search. */
struct regex_scratch {
    unsigned magic;
#define REGEX_SCRATCH_MAGIC 0x52455853u
    pcre2_match_data *data;
    pcre2_match_data *groups; /* NULL: not needed yet */
    pcre2_match_context *context, *quick;
    pcre2_jit_stack *stack;
    uint64_t *tried; /* a bit for each of the expressions that are searched for */
    size_t tried_size;
};

/* See regex_take_gave_up. It is asked for each request, so it is no part of the scratch memory. */
static _Thread_local bool regex_gave_up;

static pthread_once_t scratch_once = PTHREAD_ONCE_INIT;
static pthread_key_t scratch_key;

static void on_thread_end(void *arg) {
    struct regex_scratch *scratch;
    CAST_OBJ(scratch, arg, REGEX_SCRATCH_MAGIC);
    pcre2_match_data_free(scratch->data);
    pcre2_match_data_free(scratch->groups);
    pcre2_match_context_free(scratch->context);
    pcre2_match_context_free(scratch->quick);
    pcre2_jit_stack_free(scratch->stack);
    free(scratch->tried);
    FREE_OBJ(scratch);
}

/* Destructors of keys run when a thread ends, but not for the thread that returns from main. */
static void on_process_end(void) {
    void *scratch = pthread_getspecific(scratch_key);
    if (scratch != NULL) {
        pthread_setspecific(scratch_key, NULL);
        on_thread_end(scratch);
    }
}

static void make_scratch_key(void) {
    ASSERT(pthread_key_create(&scratch_key, on_thread_end) == 0);
    atexit(on_process_end);
}

static pcre2_match_context *context_new(pcre2_jit_stack *stack, uint32_t limit) {
    pcre2_match_context *context;
    while ((context = pcre2_match_context_create(NULL)) == NULL)
        reserve_spend(REGEX_STACK_MIN);
    pcre2_set_match_limit(context, limit);
    pcre2_set_depth_limit(context, REGEX_DEPTH_LIMIT);
    pcre2_set_heap_limit(context, REGEX_HEAP_LIMIT_KB);
    pcre2_jit_stack_assign(context, NULL, stack);
    return context;
}

static struct regex_scratch *regex_scratch(void) {
    pthread_once(&scratch_once, make_scratch_key);
    struct regex_scratch *scratch = pthread_getspecific(scratch_key);
    if (scratch != NULL)
        return scratch;
    ALLOC_OBJ(scratch, REGEX_SCRATCH_MAGIC);
    while ((scratch->data = pcre2_match_data_create(1, NULL)) == NULL)
        reserve_spend(REGEX_STACK_MIN);
    while ((scratch->stack = pcre2_jit_stack_create(REGEX_STACK_MIN, REGEX_STACK_MAX, NULL)) ==
           NULL)
        reserve_spend(REGEX_STACK_MAX);
    scratch->context = context_new(scratch->stack, REGEX_MATCH_LIMIT);
    scratch->quick = context_new(scratch->stack, REGEX_QUICK_LIMIT);
    pthread_setspecific(scratch_key, scratch);
    return scratch;
}

static pcre2_code *regex_compile(const char *text, char *error, size_t error_size) {
    int code;
    size_t offset;
    PCRE2_UCHAR reason[200];
    pcre2_code *regex =
        pcre2_compile((PCRE2_SPTR)text, PCRE2_ZERO_TERMINATED, 0, &code, &offset, NULL);
    if (regex == NULL) {
        pcre2_get_error_message(code, reason, sizeof reason);
        snprintf(error, error_size, "is not a regular expression: %s at offset %zu",
                 (const char *)reason, offset);
    }
    return regex;
}

bool regex_check(const char *text, char *error, size_t error_size) {
    pcre2_code *regex = regex_compile(text, error, error_size);
    pcre2_code_free(regex);
    return regex != NULL;
}

static struct regex_filter *filter_new(char **texts, size_t count) {
    struct regex_filter *filter;
    struct literals literals;
    ALLOC_OBJ(filter, REGEX_FILTER_MAGIC);
    filter->others = xcalloc(count, sizeof *filter->others);
    for (size_t i = 0; i < count; i++) {
        if (!literals_of(texts[i], &literals)) {
            filter->others[filter->other_count++] = (uint32_t)i;
            continue;
        }
        for (unsigned j = 0; j < literals.count; j++)
            name_table_add(&filter->literals, literal_text(&literals.each[j]), (uint32_t)i);
    }
    name_table_seal(&filter->literals);
    filter->needles = aho_corasick_new(&filter->literals);
    return filter;
}

static void filter_free(struct regex_filter **filterp) {
    struct regex_filter *filter = *filterp;
    *filterp = NULL;
    if (filter == NULL)
        return;
    CHECK_OBJ(filter, REGEX_FILTER_MAGIC);
    aho_corasick_free(&filter->needles);
    name_table_release(&filter->literals);
    free(filter->others);
    FREE_OBJ(filter);
}

void regexes_compile(struct regexes *regexes, char **texts) {
    char error[200];
    *regexes = (struct regexes){0};
    while (texts != NULL && texts[regexes->count] != NULL)
        regexes->count++;
    regexes->codes = xcalloc(regexes->count + 1, sizeof *regexes->codes);
    for (size_t i = 0; i < regexes->count; i++) {
        regexes->codes[i] = regex_compile(texts[i], error, sizeof error);
        ASSERT(regexes->codes[i] != NULL);
        /* Without JIT the interpreter gives the same results more slowly. */
        pcre2_jit_compile(regexes->codes[i], PCRE2_JIT_COMPLETE);
    }
    if (regexes->count >= FILTER_LEAST)
        regexes->filter = filter_new(texts, regexes->count);
}

void regexes_release(struct regexes *regexes) {
    for (size_t i = 0; i < regexes->count; i++)
        pcre2_code_free(regexes->codes[i]);
    free(regexes->codes);
    filter_free(&regexes->filter);
    *regexes = (struct regexes){0};
}

/* One search. */
struct regex_search {
    const struct regexes *regexes;
    struct regex_scratch *scratch;
    struct slice text;
    bool found;
};

static int match(const pcre2_code *code, struct slice text, const struct regex_scratch *scratch,
                 pcre2_match_context *context) {
    return pcre2_match(code, (PCRE2_SPTR)(text.base == NULL ? "" : text.base), text.length, 0, 0,
                       scratch->data, context);
}

static bool search_for(struct regex_search *search, size_t at) {
    struct regex_scratch *scratch = search->scratch;
    int count = match(search->regexes->codes[at], search->text, scratch, scratch->context);
    search->found = count >= 0;
    if (count < 0 && count != PCRE2_ERROR_NOMATCH)
        regex_gave_up = true;
    return search->found;
}

/* Searches for each expression once, however often its literals occur: a client may send a text
 * that repeats them. */
static bool regex_on_literal(void *arg, struct numbers numbers) {
    struct regex_search *search = arg;
    for (size_t i = 0; i < numbers.count; i++) {
        uint32_t at = numbers.each[i];
        uint64_t *tried = &search->scratch->tried[at / 64], bit = UINT64_C(1) << at % 64;
        if ((*tried & bit) == 0 && search_for(search, at))
            return true;
        *tried |= bit;
    }
    return false;
}

static void clear_tried(struct regex_scratch *scratch, size_t count) {
    size_t size = (count + 63) / 64 * sizeof *scratch->tried;
    if (size > scratch->tried_size) {
        scratch->tried = xrealloc(scratch->tried, size);
        scratch->tried_size = size;
    }
    memset(scratch->tried, 0, size);
}

static void search_filtered(struct regex_search *search) {
    const struct regex_filter *filter = search->regexes->filter;
    CHECK_OBJ(filter, REGEX_FILTER_MAGIC);
    for (size_t i = 0; i < filter->other_count; i++)
        if (search_for(search, filter->others[i]))
            return;
    if (filter->needles == NULL)
        return;
    clear_tried(search->scratch, search->regexes->count);
    aho_corasick_search(filter->needles, search->text, regex_on_literal, search);
}

bool regexes_find(const struct regexes *regexes, struct slice text) {
    struct regex_search search = {.regexes = regexes, .scratch = regex_scratch(), .text = text};
    if (regexes->filter != NULL)
        search_filtered(&search);
    else
        for (size_t i = 0; i < regexes->count; i++)
            if (search_for(&search, i))
                break;
    return search.found;
}

bool regex_take_gave_up(void) {
    bool gave_up = regex_gave_up;
    regex_gave_up = false;
    return gave_up;
}

bool regexes_may_find(const struct regexes *regexes, struct slice text) {
    struct regex_scratch *scratch = regex_scratch();
    if (regexes->filter != NULL)
        return true;
    for (size_t i = 0; i < regexes->count; i++)
        if (match(regexes->codes[i], text, scratch, scratch->quick) != PCRE2_ERROR_NOMATCH)
            return true;
    return false;
}

struct regex {
    unsigned magic;
#define REGEX_MAGIC 0x52454758u
    pcre2_code *code;
};

struct regex *regex_new(const char *text, char *error, size_t error_size) {
    pcre2_code *code = regex_compile(text, error, error_size);
    struct regex *regex;
    if (code == NULL)
        return NULL;
    pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);
    ALLOC_OBJ(regex, REGEX_MAGIC);
    regex->code = code;
    return regex;
}

void regex_free(struct regex **regexp) {
    struct regex *regex = *regexp;
    *regexp = NULL;
    if (regex == NULL)
        return;
    CHECK_OBJ(regex, REGEX_MAGIC);
    pcre2_code_free(regex->code);
    FREE_OBJ(regex);
}

unsigned regex_groups(const struct regex *regex) {
    uint32_t count = 0;
    CHECK_OBJ(regex, REGEX_MAGIC);
    pcre2_pattern_info(regex->code, PCRE2_INFO_CAPTURECOUNT, &count);
    return count < REGEX_GROUPS ? count : REGEX_GROUPS - 1;
}

static pcre2_match_data *groups_of_thread(struct regex_scratch *scratch) {
    while (scratch->groups == NULL) {
        scratch->groups = pcre2_match_data_create(REGEX_GROUPS, NULL);
        if (scratch->groups == NULL)
            reserve_spend(REGEX_STACK_MIN);
    }
    return scratch->groups;
}

enum regex_result regex_search(const struct regex *regex, struct slice text, size_t from,
                               struct slice groups[REGEX_GROUPS]) {
    struct regex_scratch *scratch = regex_scratch();
    pcre2_match_data *data = groups_of_thread(scratch);
    const char *base = text.base == NULL ? "" : text.base;
    CHECK_OBJ(regex, REGEX_MAGIC);
    int count =
        pcre2_match(regex->code, (PCRE2_SPTR)base, text.length, from, 0, data, scratch->context);
    if (count < 0)
        return count == PCRE2_ERROR_NOMATCH ? REGEX_NOT_FOUND : REGEX_GAVE_UP;
    const size_t *places = pcre2_get_ovector_pointer(data);
    for (int i = 0; i < REGEX_GROUPS; i++) {
        bool found = (count == 0 || i < count) && places[2 * i] != PCRE2_UNSET;
        groups[i] = found ? slice_make(base + places[2 * i], places[2 * i + 1] - places[2 * i])
                          : slice_make(NULL, 0);
    }
    /* \K in an assertion may put the beginning behind the end. */
    return places[0] <= places[1] ? REGEX_FOUND : REGEX_GAVE_UP;
}
