/* Answers URLs by lists of rules, for comparisons with other filters and for timing:
 *
 *     filter-tool LIST... < requests          lines "URL<TAB>PAGE-HOST<TAB>TYPE", the last two
 * optional
 *
 * Prints "block", "pass", "exception" or "undecided" for each line, and counts on descriptor 2. */
#include "adremover/filter.h"
#include "base/assert.h"

#include <stdio.h>
#include <time.h>

static unsigned type_of(const char *name) {
    static const struct {
        const char *name;
        unsigned type;
    } types[] = {{"script", FILTER_TYPE_SCRIPT},
                 {"image", FILTER_TYPE_IMAGE},
                 {"stylesheet", FILTER_TYPE_STYLESHEET},
                 {"subdocument", FILTER_TYPE_SUBDOCUMENT},
                 {"xmlhttprequest", FILTER_TYPE_XMLHTTPREQUEST},
                 {"other", FILTER_TYPE_OTHER}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(types[i].name, name) == 0)
            return types[i].type;
    return FILTER_TYPE_PARTS;
}

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static const char *answer(const struct filter *filter, char *line) {
    static const char *const verdicts[] = {"pass", "block", "exception", "undecided"};
    static struct filter_request request;
    char *rest = line, *url = strsep(&rest, "\t\n"), *page = strsep(&rest, "\t\n");
    char *type = strsep(&rest, "\t\n");
    if (!filter_request_init(&request, slice_from(url), slice_from(page),
                             type_of(type == NULL ? "" : type)))
        return "refused";
    return verdicts[filter_match(filter, &request)];
}

int main(int argc, char **argv) {
    struct filter *filter = filter_create();
    char error[300], *line = NULL;
    size_t capacity = 0, count = 0;
    double begun = seconds();
    for (int i = 1; i < argc; i++)
        if (!filter_load(filter, argv[i], error, sizeof error)) {
            fprintf(stderr, "%s\n", error);
            return 1;
        }
    filter_seal(filter);
    const struct filter_counts *counts = filter_counts(filter);
    fprintf(stderr, "%u rules, %u hosts, %u exceptions, %u unsupported, %u bad (%s), %.3f s\n",
            counts->rules, counts->hosts, counts->exceptions, counts->unsupported, counts->bad,
            counts->first_bad, seconds() - begun);
    begun = seconds();
    for (; getline(&line, &capacity, stdin) >= 0; count++)
        puts(answer(filter, line));
    fprintf(stderr, "%zu requests, %.2f microseconds each\n", count,
            count == 0 ? 0 : (seconds() - begun) * 1e6 / (double)count);
    free(line);
    filter_free(&filter);
    return 0;
}
