#define PCRE2_CODE_UNIT_WIDTH 8

#include "settings/regex.h"

#include "base/assert.h"

#include <pcre2.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

/* A search that needs more steps than this counts as no match. Ordinary patterns on URLs of a few
 * KB take some hundred; the limit keeps a URL made to provoke backtracking below some milliseconds.
 */
enum { REGEX_MATCH_LIMIT = 100000, REGEX_DEPTH_LIMIT = 1000, REGEX_HEAP_LIMIT_KB = 1024 };
enum { REGEX_STACK_MIN = 32 << 10, REGEX_STACK_MAX = 512 << 10 };

/* PCRE2's scratch memory, one per thread, made at its first search. */
struct regex_scratch {
    unsigned magic;
#define REGEX_SCRATCH_MAGIC 0x52455853u
    pcre2_match_data *data;
    pcre2_match_context *context;
    pcre2_jit_stack *stack;
};

static pthread_once_t scratch_once = PTHREAD_ONCE_INIT;
static pthread_key_t scratch_key;

static void on_thread_end(void *arg) {
    struct regex_scratch *scratch;
    CAST_OBJ(scratch, arg, REGEX_SCRATCH_MAGIC);
    pcre2_match_data_free(scratch->data);
    pcre2_match_context_free(scratch->context);
    pcre2_jit_stack_free(scratch->stack);
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

static struct regex_scratch *regex_scratch(void) {
    pthread_once(&scratch_once, make_scratch_key);
    struct regex_scratch *scratch = pthread_getspecific(scratch_key);
    if (scratch != NULL)
        return scratch;
    ALLOC_OBJ(scratch, REGEX_SCRATCH_MAGIC);
    scratch->data = pcre2_match_data_create(1, NULL);
    scratch->context = pcre2_match_context_create(NULL);
    scratch->stack = pcre2_jit_stack_create(REGEX_STACK_MIN, REGEX_STACK_MAX, NULL);
    ASSERT(scratch->data != NULL && scratch->context != NULL && scratch->stack != NULL);
    pcre2_set_match_limit(scratch->context, REGEX_MATCH_LIMIT);
    pcre2_set_depth_limit(scratch->context, REGEX_DEPTH_LIMIT);
    pcre2_set_heap_limit(scratch->context, REGEX_HEAP_LIMIT_KB);
    pcre2_jit_stack_assign(scratch->context, NULL, scratch->stack);
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

void regexes_compile(struct regexes *regexes, char **texts) {
    char error[200];
    regexes->count = 0;
    while (texts != NULL && texts[regexes->count] != NULL)
        regexes->count++;
    regexes->codes = xcalloc(regexes->count + 1, sizeof *regexes->codes);
    for (size_t i = 0; i < regexes->count; i++) {
        regexes->codes[i] = regex_compile(texts[i], error, sizeof error);
        ASSERT(regexes->codes[i] != NULL);
        /* Where there is no JIT, the interpreter does the same, slower. */
        pcre2_jit_compile(regexes->codes[i], PCRE2_JIT_COMPLETE);
    }
}

void regexes_release(struct regexes *regexes) {
    for (size_t i = 0; i < regexes->count; i++)
        pcre2_code_free(regexes->codes[i]);
    free(regexes->codes);
    *regexes = (struct regexes){0};
}

bool regexes_find(const struct regexes *regexes, struct slice text) {
    struct regex_scratch *scratch = regex_scratch();
    for (size_t i = 0; i < regexes->count; i++) {
        int found = pcre2_match(regexes->codes[i], (PCRE2_SPTR)(text.base == NULL ? "" : text.base),
                                text.length, 0, 0, scratch->data, scratch->context);
        if (found >= 0)
            return true;
    }
    return false;
}
