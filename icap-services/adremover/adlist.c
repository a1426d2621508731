/*
 * Shows what lists of rules would do with URLs, and what is in the lists. `retortctl adlist` runs
 * it. Exit status: 0 done, 1 a list or the input could not be read, 2 used wrongly.
 */
#include "adremover/filter.h"
#include "adremover/request.h"
#include "base/assert.h"
#include "base/plural.h"
#include "base/version.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <getopt.h>
#include <idn2.h>
#include <jansson.h>
#include <libpsl.h>
#include <pcre2.h>
#include <stdio.h>
#include <time.h>

enum { EXIT_USAGE = 2, ERROR_SIZE = 300 };

struct adlist {
    struct filter *filter;
    unsigned types; /* 0: by the URL */
    struct slice page;
    bool time, json;
};

/* One line of input: a URL, and perhaps a page's URL and a type behind tabs. */
struct question {
    struct slice url, page;
    unsigned types;
};

static const char usage_text[] =
    "Usage: retortctl adlist test LIST... [--type TYPE] [--from URL] [--time] [--json] < URLS\n"
    "       retortctl adlist check LIST... [--json]\n\n"
    "  test     prints for each URL: block RULE, allow RULE, strip RULE or none\n"
    "  check    counts what is in the lists, and the options that are not known\n\n"
    "  -t, --type TYPE    script image stylesheet object xmlhttprequest subdocument ping\n"
    "                     websocket font media other document; else by the URL's ending\n"
    "  -f, --from URL     of the page that the URLs belong to\n"
    "  -T, --time         nanoseconds for each URL, and on average\n"
    "  -j, --json         print JSON\n"
    "  -h, --help         print this\n"
    "  -V, --version      print the version\n\n"
    "A line of input may also be URL, URL of its page and type, with tabs between.\n";

static void adlist_version(void) {
    char pcre2[64];
    pcre2_config(PCRE2_CONFIG_VERSION, pcre2); /* at most 24 bytes, as its manual says */
    const struct version_library libraries[] = {{"PCRE2", pcre2},
                                                {"libpsl", psl_get_version()},
                                                {"libidn2", idn2_check_version(NULL)},
                                                {NULL, NULL}};
    version_print("retort-adlist", libraries);
}

static int adlist_complain(const char *what, const char *detail) {
    fprintf(stderr, "retortctl: %s%s\n", what, detail);
    return EXIT_FAILURE;
}

static unsigned adlist_type_of(struct slice name) {
    static const struct {
        const char *name;
        unsigned type;
    } types[] = {{"script", FILTER_TYPE_SCRIPT},
                 {"image", FILTER_TYPE_IMAGE},
                 {"stylesheet", FILTER_TYPE_STYLESHEET},
                 {"object", FILTER_TYPE_OBJECT},
                 {"xmlhttprequest", FILTER_TYPE_XMLHTTPREQUEST},
                 {"subdocument", FILTER_TYPE_SUBDOCUMENT},
                 {"sub_frame", FILTER_TYPE_SUBDOCUMENT},
                 {"ping", FILTER_TYPE_PING},
                 {"websocket", FILTER_TYPE_WEBSOCKET},
                 {"font", FILTER_TYPE_FONT},
                 {"media", FILTER_TYPE_MEDIA},
                 {"other", FILTER_TYPE_OTHER},
                 {"document", FILTER_TYPE_DOCUMENT}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (slice_equal_nocase(name, slice_from(types[i].name)))
            return types[i].type;
    return 0;
}

static struct slice adlist_host_of(struct slice text) {
    struct url url;
    return url_parse(&url, text) ? url.host : SLICE("");
}

/* ---- questions ---------------------------------------------------------------------------- */

static struct slice adlist_take_part(struct slice *rest) {
    const char *tab = rest->length == 0 ? NULL : memchr(rest->base, '\t', rest->length);
    size_t length = tab == NULL ? rest->length : (size_t)(tab - rest->base);
    struct slice part = slice_make(rest->base, length);
    size_t used = tab == NULL ? length : length + 1;
    *rest = slice_make(rest->base + used, rest->length - used);
    return part;
}

static struct question read_question(const struct adlist *adlist, struct slice line) {
    struct question question = {.url = adlist_take_part(&line)};
    struct slice page = adlist_take_part(&line), type = adlist_take_part(&line);
    question.page = page.length > 0 ? adlist_host_of(page) : adlist->page;
    question.types = type.length > 0 ? adlist_type_of(type) : adlist->types;
    return question;
}

static bool make_request(struct filter_request *request, const struct question *question) {
    struct http_head nothing;
    if (!filter_request_init(request, question->url))
        return false;
    filter_request_set_page(request, question->page);
    request->types = question->types;
    if (question->types == 0) {
        http_head_init(&nothing);
        request->types = request_kind_types(&nothing, request->parsed.path_query);
    }
    return true;
}

static const char *adlist_decide(const struct adlist *adlist, const struct question *question,
                                 struct slice *rule) {
    static struct filter_request request;
    static char stripped[FILTER_URL_MAX];
    struct filter_answer answer;
    *rule = SLICE("");
    if (!make_request(&request, question))
        return "none";
    enum filter_verdict verdict = filter_match(adlist->filter, &request, &answer);
    *rule = answer.rule;
    if (verdict == FILTER_BLOCK)
        return "block";
    if (filter_strip(adlist->filter, &request, stripped, sizeof stripped, rule) > 0)
        return "strip";
    return verdict == FILTER_EXCEPTION ? "allow" : "none";
}

/* ---- the input ---------------------------------------------------------------------------- */

struct input {
    char *text;
    size_t length;
    struct slice *lines;
    size_t count;
};

static bool read_input(struct input *input) {
    size_t capacity = 0;
    *input = (struct input){.text = NULL};
    do {
        capacity = capacity == 0 ? 1 << 16 : capacity * 2;
        input->text = xrealloc(input->text, capacity);
        input->length += fread(input->text + input->length, 1, capacity - input->length, stdin);
    } while (input->length == capacity);
    return !ferror(stdin);
}

static void split_input(struct input *input) {
    size_t capacity = 0;
    const char *end = input->text + input->length;
    for (const char *at = input->text; at < end;) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        const char *stop = newline == NULL ? end : newline;
        if (input->count == capacity) {
            capacity = capacity == 0 ? 1024 : capacity * 2;
            input->lines = xrealloc(input->lines, capacity * sizeof *input->lines);
        }
        size_t length = (size_t)(stop - at);
        length -= length > 0 && at[length - 1] == '\r';
        input->lines[input->count++] = slice_make(at, length);
        at = stop + 1;
    }
}

/* ---- commands ----------------------------------------------------------------------------- */

/* CPU time of this process alone: other work of the machine does not count. */
static double adlist_nanoseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static void time_all(const struct adlist *adlist, const struct input *input, double load) {
    struct slice rule;
    size_t blocked = 0;
    double begun = adlist_nanoseconds();
    for (size_t i = 0; i < input->count; i++) {
        struct question question = read_question(adlist, input->lines[i]);
        blocked += adlist_decide(adlist, &question, &rule)[0] == 'b';
    }
    double each = (adlist_nanoseconds() - begun) / (double)(input->count == 0 ? 1 : input->count);
    fprintf(stderr, "lists loaded in %.1f ms; %zu URLs, %zu blocked, %.0f ns each\n", load / 1e6,
            input->count, blocked, each);
}

/* Bytes that JSON can't have become "?". */
static json_t *adlist_json_text(struct slice text) {
    json_t *whole = json_stringn(text.base, text.length);
    if (whole != NULL)
        return whole;
    char *copy = slice_dup(text);
    for (char *at = copy; *at != '\0'; at++)
        if (*at < ' ' || *at > '~')
            *at = '?';
    whole = json_string(copy);
    free(copy);
    return whole;
}

static void adlist_print_json(json_t *json) {
    json_dumpf(json, stdout, JSON_INDENT(2) | JSON_ENSURE_ASCII);
    putchar('\n');
    json_decref(json);
}

struct decision {
    const char *word;
    struct slice url, rule;
    double took; /* nanoseconds; 0: they are not asked for */
};

static struct decision decide_line(const struct adlist *adlist, struct slice line) {
    struct question question = read_question(adlist, line);
    struct decision decision = {.url = question.url};
    double begun = adlist->time ? adlist_nanoseconds() : 0;
    decision.word = adlist_decide(adlist, &question, &decision.rule);
    decision.took = adlist->time ? adlist_nanoseconds() - begun : 0;
    return decision;
}

static void print_decision(const struct adlist *adlist, const struct decision *decision) {
    printf("%s%s%.*s", decision->word, decision->rule.length > 0 ? " " : "",
           SLICE_PRINT(decision->rule));
    if (adlist->time)
        printf("\t%.0f", decision->took);
    putchar('\n');
}

static json_t *decision_to_json(const struct adlist *adlist, const struct decision *decision) {
    json_t *json =
        json_pack("{s:o, s:s}", "url", adlist_json_text(decision->url), "decision", decision->word);
    if (decision->rule.length > 0)
        json_object_set_new(json, "rule", adlist_json_text(decision->rule));
    if (adlist->time)
        json_object_set_new(json, "nanoseconds", json_integer((json_int_t)decision->took));
    return json;
}

static int test(const struct adlist *adlist, double load) {
    struct input input;
    if (!read_input(&input)) {
        free(input.text);
        return adlist_complain("can't read the URLs", "");
    }
    split_input(&input);
    if (adlist->time)
        time_all(adlist, &input, load);
    json_t *list = adlist->json ? json_array() : NULL;
    for (size_t i = 0; i < input.count; i++) {
        const struct decision decision = decide_line(adlist, input.lines[i]);
        if (list != NULL)
            json_array_append_new(list, decision_to_json(adlist, &decision));
        else
            print_decision(adlist, &decision);
    }
    if (list != NULL)
        adlist_print_json(list);
    free(input.lines);
    free(input.text);
    return EXIT_SUCCESS;
}

static void check_json(const struct filter_counts *counts) {
    json_t *options = json_object();
    for (unsigned i = 0; i < counts->option_count; i++)
        json_object_set_new(options, counts->options[i].name,
                            json_integer(counts->options[i].rules));
    json_t *json =
        json_pack("{s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:o}", "rules", (int)counts->rules,
                  "exceptions", (int)counts->exceptions, "hosts", (int)counts->hosts, "regexes",
                  (int)counts->regexes, "withdrawn", (int)counts->withdrawn, "element_hiding",
                  (int)counts->cosmetic, "not_understood", (int)counts->bad, "unsupported",
                  (int)counts->unsupported, "unsupported_options", options);
    if (counts->bad > 0)
        json_object_set_new(json, "first_not_understood",
                            adlist_json_text(slice_from(counts->first_bad)));
    adlist_print_json(json);
}

static int check(const struct adlist *adlist) {
    const struct filter_counts *counts = filter_counts(adlist->filter);
    if (adlist->json) {
        check_json(counts);
        return EXIT_SUCCESS;
    }
    printf("%8u %s in use\n", counts->rules, plural(counts->rules, "rule", "rules"));
    printf("%8u of them exceptions\n", counts->exceptions);
    printf("%8u of them whole hosts\n", counts->hosts);
    printf("%8u of them regular expressions\n", counts->regexes);
    printf("%8u withdrawn by badfilter\n", counts->withdrawn);
    printf("%8u element hiding rules, which are for browsers only\n", counts->cosmetic);
    printf("%8u that adremover does not understand%s%s\n", counts->bad,
           counts->bad > 0 ? ", the first at " : "", counts->first_bad);
    printf("%8u skipped for an option that is not supported\n", counts->unsupported);
    for (unsigned i = 0; i < counts->option_count; i++)
        printf("%16u %s\n", counts->options[i].rules, counts->options[i].name);
    return EXIT_SUCCESS;
}

static bool load_lists(struct adlist *adlist, int count, char **paths) {
    char error[ERROR_SIZE];
    for (int i = 0; i < count; i++)
        if (!filter_load(adlist->filter, paths[i], error, sizeof error)) {
            adlist_complain("", error);
            return false;
        }
    filter_seal(adlist->filter);
    return true;
}

static bool adlist_read_options(struct adlist *adlist, int argc, char **argv) {
    static const struct option options[] = {{"type", required_argument, NULL, 't'},
                                            {"from", required_argument, NULL, 'f'},
                                            {"time", no_argument, NULL, 'T'},
                                            {"json", no_argument, NULL, 'j'},
                                            {"help", no_argument, NULL, 'h'},
                                            {"version", no_argument, NULL, 'V'},
                                            {NULL, 0, NULL, 0}};
    int letter;
    while ((letter = getopt_long(argc, argv, "t:f:TjhV", options, NULL)) != -1) {
        switch (letter) {
        case 't': adlist->types = adlist_type_of(slice_from(optarg)); break;
        case 'f': adlist->page = adlist_host_of(slice_from(optarg)); break;
        case 'T': adlist->time = true; break;
        case 'j': adlist->json = true; break;
        case 'h': fputs(usage_text, stdout); exit(EXIT_SUCCESS);
        case 'V': adlist_version(); exit(EXIT_SUCCESS);
        default: return false;
        }
        if (letter == 't' && adlist->types == 0) {
            fprintf(stderr, "retortctl: there is no type \"%s\"\n", optarg);
            return false;
        }
        if (letter == 'f' && adlist->page.length == 0) {
            fprintf(stderr, "retortctl: --from wants a URL such as http://news.example/\n");
            return false;
        }
    }
    return true;
}

int main(int argc, char **argv) {
    struct adlist adlist = {.page = SLICE("")};
    if (!adlist_read_options(&adlist, argc, argv) || argc - optind < 2 ||
        (strcmp(argv[optind], "test") != 0 && strcmp(argv[optind], "check") != 0)) {
        fputs(usage_text, stderr);
        return EXIT_USAGE;
    }
    double begun = adlist_nanoseconds();
    int status = EXIT_FAILURE;
    adlist.filter = filter_create();
    if (load_lists(&adlist, argc - optind - 1, argv + optind + 1))
        status =
            argv[optind][0] == 't' ? test(&adlist, adlist_nanoseconds() - begun) : check(&adlist);
    filter_free(&adlist.filter);
    return status;
}
