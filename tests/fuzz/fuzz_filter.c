/* A URL, its page and rules, one a line: whatever they are, the code must come back, a match must
 * not depend on other rules being there, and what is taken off a URL must leave a URL. */
#include "adremover/filter.h"
#include "adremover/rule.h"
#include "base/assert.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { KEPT_MAX = 64 };

static char *kept[KEPT_MAX];
static unsigned kept_count;

static char *keep(void *keeper, const char *bytes, size_t length) {
    char *copy = xmalloc(length + 1);
    (void)keeper;
    memcpy(copy, bytes, length);
    copy[length] = 0;
    ASSERT(kept_count < KEPT_MAX);
    return kept[kept_count++] = copy;
}

/* A rule that matches by itself must be found, and with it a verdict that is not "pass". */
static void check_alone(struct slice line, struct filter_request *request) {
    struct rule rule;
    struct rule_reading reading = {.keep = keep};
    struct filter_answer answer;
    /* A host with the root's dot is the same host, which a pattern alone does not know. */
    if (request->host.base[request->host.length] != '.' &&
        rule_parse(&rule, &reading, line) == RULE_GOOD) {
        struct filter *filter = filter_create();
        filter_add(filter, line, "fuzz");
        filter_seal(filter);
        bool blocks = rule.action != RULE_REDIRECTS && rule.action != RULE_STRIPS &&
                      !rule.exception && !rule.bad_filter;
        bool fits =
            rule_fits_kind(&rule, request) == RULE_FITS &&
            rule_fits_place(&rule, request) == RULE_FITS &&
            (rule.exact_host ? slice_equal(request->host, slice_make(rule.pattern, rule.length))
                             : rule_matches(&rule, request));
        bool blocked = filter_match(filter, request, &answer) == FILTER_BLOCK;
        ASSERT(request->work_left == 0 ? !blocked : blocked == (blocks && fits));
        filter_free(&filter);
        rule_release(&rule);
    }
    while (kept_count > 0)
        free(kept[--kept_count]);
}

static struct slice take_line(struct slice *rest) {
    const char *newline = rest->length == 0 ? NULL : memchr(rest->base, '\n', rest->length);
    size_t length = newline == NULL ? rest->length : (size_t)(newline - rest->base);
    struct slice line = slice_make(rest->base, length);
    size_t used = newline == NULL ? length : length + 1;
    *rest = slice_make(rest->base + used, rest->length - used);
    return line;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct filter_request request, again;
    static char out[FILTER_URL_MAX];
    struct slice rest = slice_make((const char *)data, size);
    struct slice url = take_line(&rest), page = take_line(&rest), rule;
    struct filter_answer answer;
    if (!filter_request_init(&request, url))
        return 0;
    filter_request_set_page(&request, page);
    struct filter *filter = filter_create();
    while (rest.length > 0) {
        struct slice line = take_line(&rest);
        filter_add(filter, line, "fuzz");
        check_alone(line, &request);
    }
    filter_seal(filter);
    filter_match(filter, &request, &answer);
    size_t length = filter_strip(filter, &request, out, sizeof out, &rule);
    ASSERT(length == 0 ||
           (length < request.url.length && filter_request_init(&again, slice_make(out, length))));
    filter_free(&filter);
    return 0;
}
