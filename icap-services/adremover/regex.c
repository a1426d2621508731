#include "adremover/regex.h"

#include "base/assert.h"

#include <ctype.h>
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <pthread.h>

/* TEXT_MOST: bytes of a text that are looked at. Compiled code does not count the steps of an expression
 * such as "[a-z]+[a-z]+[0-9]", which needs the square of the length. */
enum { LITERAL_MAX = 64, MATCH_LIMIT = 20000, DEPTH_LIMIT = 500, TEXT_MOST = 2048 };

struct regex {
    unsigned magic;
#define REGEX_MAGIC 0x52655865u
    pcre2_code *code;
    pcre2_match_context *context;
    char literal[LITERAL_MAX];
    size_t literal_length;
};

/* ---- the literal -------------------------------------------------------------------------- */

/* The text that is being collected, and the longest one so far. */
struct literal {
    char text[LITERAL_MAX], best[LITERAL_MAX];
    size_t length, best_length;
};

static void regex_end_run(struct literal *literal) {
    if (literal->length > literal->best_length) {
        memcpy(literal->best, literal->text, literal->length);
        literal->best_length = literal->length;
    }
    literal->length = 0;
}

/* Skips a class or a group with what is inside. */
static size_t skip_class(struct slice pattern, size_t at) {
    for (at++; at < pattern.length && pattern.base[at] != ']'; at++)
        at += pattern.base[at] == '\\';
    return at + 1;
}

static size_t skip_group(struct slice pattern, size_t at) {
    unsigned depth = 0;
    while (at < pattern.length) {
        char c = pattern.base[at];
        if (c == '[') {
            at = skip_class(pattern, at);
            continue;
        }
        depth += c == '(';
        depth -= c == ')';
        at += c == '\\' ? 2 : 1;
        if (depth == 0)
            break;
    }
    return at;
}

/* The text ends at an escape that stands for a class or a place. An escape such as "\/" is the byte
 * itself. False for an escape with something behind it (\x41, \1, \k<name>), which is not read. */
static bool regex_take_escape(struct literal *literal, char c) {
    bool letter = ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || (c >= '0' && c <= '9');
    if (letter) {
        regex_end_run(literal);
        return strchr("dDwWsSbBnrtfv", c) != NULL;
    }
    if (literal->length < LITERAL_MAX)
        literal->text[literal->length++] = c;
    return true;
}

static void take_quantifier(struct literal *literal, char c) {
    if (c != '+' && literal->length > 0)
        literal->length--; /* the byte before it may be absent */
    regex_end_run(literal);
}

/* Looks at the outermost level only: only what stands there is certain to be in a match. */
static void find_literal(struct regex *regex, struct slice pattern) {
    struct literal literal = {.length = 0};
    size_t at = 0;
    while (at < pattern.length) {
        char c = pattern.base[at];
        if (c == '|')
            return; /* one or the other: nothing is certain */
        if (c == '(' || c == '[') {
            regex_end_run(&literal);
            at = c == '(' ? skip_group(pattern, at) : skip_class(pattern, at);
            continue;
        }
        if (c == '\\') {
            if (at + 1 < pattern.length && !regex_take_escape(&literal, pattern.base[at + 1]))
                return;
            at += 2;
            continue;
        }
        if (strchr("*?+{", c) != NULL) {
            take_quantifier(&literal, c);
            const char *end = c == '{' ? memchr(pattern.base + at, '}', pattern.length - at) : NULL;
            at = end == NULL ? at + 1 : (size_t)(end - pattern.base) + 1;
            continue;
        }
        if (strchr(".^$)", c) != NULL)
            regex_end_run(&literal);
        else if (literal.length < LITERAL_MAX)
            literal.text[literal.length++] = (char)ascii_lower((unsigned char)c);
        at++;
    }
    regex_end_run(&literal);
    memcpy(regex->literal, literal.best, literal.best_length);
    regex->literal_length = literal.best_length;
}

/* ---- the expression ----------------------------------------------------------------------- */

struct regex *regex_create(struct slice pattern, bool match_case) {
    int error;
    PCRE2_SIZE where;
    uint32_t options = PCRE2_ALT_BSUX | PCRE2_DOLLAR_ENDONLY | PCRE2_NEVER_BACKSLASH_C |
                       (match_case ? 0 : PCRE2_CASELESS);
    pcre2_code *code =
        pcre2_compile((PCRE2_SPTR)pattern.base, pattern.length, options, &error, &where, NULL);
    if (code == NULL)
        return NULL;
    struct regex *regex;
    ALLOC_OBJ(regex, REGEX_MAGIC);
    regex->code = code;
    regex->context = pcre2_match_context_create(NULL);
    ASSERT(regex->context != NULL);
    pcre2_set_match_limit(regex->context, MATCH_LIMIT);
    pcre2_set_depth_limit(regex->context, DEPTH_LIMIT);
    pcre2_jit_compile(code, PCRE2_JIT_COMPLETE); /* without it matching is slower, no more */
    find_literal(regex, pattern);
    return regex;
}

void regex_free(struct regex **regexp) {
    struct regex *regex = *regexp;
    *regexp = NULL;
    if (regex == NULL)
        return;
    CHECK_OBJ(regex, REGEX_MAGIC);
    pcre2_code_free(regex->code);
    pcre2_match_context_free(regex->context);
    FREE_OBJ(regex);
}

struct slice regex_literal(const struct regex *regex) {
    return slice_make(regex->literal, regex->literal_length);
}

static pthread_key_t match_data_key;
static pthread_once_t match_data_once = PTHREAD_ONCE_INIT;

static void free_match_data(void *data) {
    pcre2_match_data_free(data);
}

static void create_key(void) {
    ASSERT(pthread_key_create(&match_data_key, free_match_data) == 0);
}

/* Each thread has one. Only the question whether there is a match is asked, so one pair is
 * enough. */
static pcre2_match_data *match_data(void) {
    pthread_once(&match_data_once, create_key);
    pcre2_match_data *data = pthread_getspecific(match_data_key);
    if (data == NULL) {
        data = pcre2_match_data_create(1, NULL);
        ASSERT(data != NULL);
        pthread_setspecific(match_data_key, data);
    }
    return data;
}

/* Behind the last byte that is part of no word, so that neither "\b" nor "(?![a-z])" takes the middle of
 * a word for its end. */
static size_t cut_place(struct slice text) {
    size_t at = TEXT_MOST;
    while (at > TEXT_MOST / 2 &&
           (isalnum((unsigned char)text.base[at - 1]) || text.base[at - 1] == '_'))
        at--;
    return at > TEXT_MOST / 2 ? at : TEXT_MOST;
}

bool regex_matches(const struct regex *regex, struct slice text, const char *lower, bool *gave_up) {
    CHECK_OBJ(regex, REGEX_MAGIC);
    *gave_up = false;
    if (regex->literal_length > 0 &&
        memmem(lower, text.length, regex->literal, regex->literal_length) == NULL)
        return false;
    uint32_t options = 0;
    if (text.length > TEXT_MOST) {
        text.length = cut_place(text);
        options = PCRE2_NOTEOL; /* "$" stands for the end of the whole text */
    }
    int result = pcre2_match(regex->code, (PCRE2_SPTR)text.base, text.length, 0, options,
                             match_data(), regex->context);
    *gave_up = result < PCRE2_ERROR_NOMATCH;
    return result >= 0;
}
