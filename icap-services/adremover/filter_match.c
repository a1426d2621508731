#include "adremover/filter_internal.h"

#include "base/assert.h"

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

bool filter_search(const struct filter *filter, enum filter_class class,
                   struct filter_request *request, bool *unknown, rule_visitor visit, void *arg) {
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
static __attribute__((noinline)) const struct rule *find_page(const struct filter *filter,
                                                              const struct filter_request *of) {
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
    return filter_match_find(filter, FILTER_CLASS_PAGES, &page, NULL);
}

static const struct rule *find_exception(const struct filter *filter,
                                         struct filter_request *request, bool important) {
    const struct rule *rule = NULL;
    if (important) {
        filter_search(filter, FILTER_CLASS_EXCEPTIONS, request, NULL, take_important, &rule);
        return rule;
    }
    rule = filter_match_find(filter, FILTER_CLASS_EXCEPTIONS, request, NULL);
    if (rule == NULL && filter->classes[FILTER_CLASS_PAGES].count > 0 && request->page.length > 0)
        rule = find_page(filter, request);
    return rule;
}

/* ---- what to answer in place -------------------------------------------------------------- */

struct redirect {
    struct slice name; /* without its priority */
    long priority;
    bool any;
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

static bool take_best_redirect(void *arg, const struct rule *rule) {
    struct redirect *best = arg;
    long priority;
    struct slice name = split_priority(rule->extra->value, &priority);
    if (!best->any || priority > best->priority)
        *best = (struct redirect){name, priority, true};
    return false;
}

static bool cancels_redirect(void *arg, const struct rule *rule) {
    const struct redirect *best = arg;
    long priority;
    struct slice name = split_priority(rule->extra->value, &priority);
    return name.length == 0 || slice_equal(name, best->name);
}

static struct slice find_resource(const struct filter *filter, struct filter_request *request) {
    struct redirect best = {.any = false};
    filter_search(filter, FILTER_CLASS_REDIRECTS, request, NULL, take_best_redirect, &best);
    if (!best.any || filter_search(filter, FILTER_CLASS_REDIRECT_EXCEPTIONS, request, NULL,
                                   cancels_redirect, &best))
        return SLICE("");
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
