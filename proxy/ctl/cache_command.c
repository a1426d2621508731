#include "ctl/cache_command.h"

#include "base/assert.h"
#include "base/slice.h"
#include "ctl/answer.h"
#include "ctl/argument.h"
#include "ctl/header_line.h"
#include "ctl/http_call.h"
#include "ctl/preload.h"
#include "ctl/terminal.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

enum { HEADERS_MAX = 64, FILE_MAX = 64 << 20, LIST_USUAL = 100 };

struct options {
    const char *prefix, *host, *tag, *regex, *limit, *after, *variant, *lifetime, *status, *via,
        *rate, *jobs;
    const char *headers[HEADERS_MAX];
    unsigned header_count;
    bool soft, all;
    char **words; /* the arguments; NULL behind the last */
};

struct cache_context {
    const char *admin;
    bool json;
    struct options options;
};

static int cache_command_complain(const char *message) {
    fprintf(stderr, "retortctl: %s\n", message);
    return EXIT_FAILURE;
}

static int cache_command_misused(const char *message) {
    cache_command_complain(message);
    fputs("see retortctl cache --help\n", stderr);
    return 2;
}

/* Calls. */

/* Returns the path with the options that were given; url may be NULL. The caller frees the text. */
static char *target(const struct options *options, const char *path, const char *url) {
    char *text;
    size_t length;
    FILE *out = open_memstream(&text, &length);
    ASSERT(out != NULL);
    fprintf(out, "%s?", path);
    argument_put(out, "url", url);
    argument_put(out, "prefix", options->prefix);
    argument_put(out, "host", options->host);
    argument_put(out, "tag", options->tag);
    argument_put(out, "regex", options->regex);
    argument_put(out, "limit", options->limit);
    argument_put(out, "after", options->after);
    argument_put(out, "variant", options->variant);
    argument_put(out, "soft", options->soft ? "yes" : NULL);
    argument_put(out, "all", options->all ? "yes" : NULL);
    ASSERT(fclose(out) == 0);
    text[length - 1] = '\0'; /* the last & or the ? */
    return text;
}

static int cache_command_refused(const struct http_answer *answer) {
    json_t *json = answer_load(answer->body, answer->length);
    const char *reason = json_string_value(json_object_get(json, "error"));
    if (reason != NULL)
        cache_command_complain(reason);
    else
        fprintf(stderr, "retortctl: retort answered with status %u\n", answer->status);
    json_decref(json);
    return EXIT_FAILURE;
}

static int send_call(const struct cache_context *context, const struct http_request *request,
                     int (*show)(const struct cache_context *context,
                                 const struct http_answer *answer)) {
    struct http_answer answer;
    char error[HTTP_CALL_ERROR];
    if (!http_call_send(&answer, context->admin, request, error))
        return cache_command_complain(error);
    int status = answer.status == 200 ? show(context, &answer) : cache_command_refused(&answer);
    http_answer_release(&answer);
    return status;
}

static int
call(const struct cache_context *context, const char *method, const char *path, const char *url,
     int (*show)(const struct cache_context *context, const struct http_answer *answer)) {
    char *whole = target(&context->options, path, url);
    struct http_request request = {.method = method, .target = whole};
    int status = send_call(context, &request, show);
    free(whole);
    return status;
}

/* Answers. */

static int cache_command_show_raw(const struct cache_context *context,
                                  const struct http_answer *answer) {
    (void)context;
    fwrite(answer->body, 1, answer->length, stdout);
    return EXIT_SUCCESS;
}

static long long cache_command_number(const json_t *object, const char *name) {
    return (long long)json_integer_value(json_object_get(object, name));
}

static const char *cache_command_text(const json_t *object, const char *name) {
    const char *value = json_string_value(json_object_get(object, name));
    return value == NULL ? "-" : value;
}

/* {"purged": 3} as "purged 3" */
static int show_counts(const struct cache_context *context, const struct http_answer *answer) {
    const char *name;
    json_t *value, *json = answer_load(answer->body, answer->length);
    if (context->json)
        cache_command_show_raw(context, answer);
    else
        json_object_foreach(json, name, value) if (json_is_integer(value))
            printf("%s %" JSON_INTEGER_FORMAT "\n", name, json_integer_value(value));
    else if (json_is_false(value)) printf("in force; the count is not complete yet\n");
    else if (json_is_true(value)) continue;
    else printf("%s %s\n", name, cache_command_text(value, "url"));
    json_decref(json);
    return EXIT_SUCCESS;
}

static void show_object_line(const json_t *object) {
    const char *state = cache_command_text(object, "state");
    printf("%s%-8s%s %3lld %10lld %8lld %9lld %7lld %s%s\n",
           terminal_begin(stdout, terminal_of_state(state)), state, terminal_end(stdout),
           cache_command_number(object, "status"), cache_command_number(object, "size"),
           cache_command_number(object, "age"), cache_command_number(object, "fresh_for"),
           cache_command_number(object, "hits"),
           json_is_true(json_object_get(object, "pinned")) ? "[pinned] " : "",
           cache_command_text(object, "url"));
}

static void show_titles(void) {
    terminal_heading(stdout, "%-8s %3s %10s %8s %9s %7s %s", "STATE", "", "SIZE", "AGE",
                     "FRESH FOR", "HITS", "URL");
}

/* A list, whose answers come one by one: each has what the proxy has found in a moment. */
struct listed {
    const struct cache_context *context;
    json_t *objects; /* those of all answers, for JSON; else NULL */
    size_t count;    /* of objects so far */
    bool titled;
    char *next; /* where to go on; NULL: this was all */
};

static char *listed_next(const json_t *answer) {
    const json_t *next = json_object_get(answer, "next");
    char *text = NULL;
    if (json_is_string(next))
        text = xstrdup(json_string_value(next));
    else if (json_is_integer(next)) /* of an older proxy */
        ASSERT(asprintf(&text, "%" JSON_INTEGER_FORMAT, json_integer_value(next)) >= 0);
    return text;
}

static bool is_list_of_objects(const json_t *objects, const json_t *next) {
    return json_is_array(objects) &&
           (json_is_string(next) || json_is_integer(next) || json_is_null(next));
}

static void listed_show(struct listed *listed, json_t *objects) {
    if (listed->objects != NULL) {
        json_array_extend(listed->objects, objects);
        return;
    }
    if (!listed->titled)
        show_titles();
    listed->titled = true;
    for (size_t i = 0; i < json_array_size(objects); i++)
        show_object_line(json_array_get(objects, i));
}

/* Returns the exit status. */
static int listed_take(struct listed *listed, const struct http_answer *answer) {
    json_t *json = listed->objects != NULL ? json_loadb(answer->body, answer->length, 0, NULL)
                                           : answer_load(answer->body, answer->length);
    json_t *objects = json_object_get(json, "objects");
    if (!is_list_of_objects(objects, json_object_get(json, "next"))) {
        json_decref(json);
        return cache_command_complain("the answer is no list of objects: is this retort's "
                                      "admin.listen?");
    }
    listed->count += json_array_size(objects);
    listed_show(listed, objects);
    free(listed->next);
    listed->next = listed_next(json);
    json_decref(json);
    return EXIT_SUCCESS;
}

/* How many objects are still wanted. A limit that is none is left to the proxy, which says so. */
static size_t listed_wants(const struct listed *listed) {
    uint64_t limit;
    const char *text = listed->context->options.limit;
    if (text == NULL || !slice_to_uint64(slice_from(text), &limit))
        limit = LIST_USUAL;
    return limit > listed->count ? (size_t)limit - listed->count : 0;
}

static int listed_ask(struct listed *listed) {
    struct options options = listed->context->options;
    struct http_answer answer;
    char error[HTTP_CALL_ERROR], limit[24];
    if (listed->next != NULL) {
        snprintf(limit, sizeof limit, "%zu", listed_wants(listed));
        options.limit = limit;
        options.after = listed->next;
    }
    char *whole = target(&options, "/cache/objects", NULL);
    const struct http_request request = {.method = "GET", .target = whole};
    bool good = http_call_send(&answer, listed->context->admin, &request, error);
    free(whole);
    if (!good)
        return cache_command_complain(error);
    int status =
        answer.status == 200 ? listed_take(listed, &answer) : cache_command_refused(&answer);
    http_answer_release(&answer);
    return status;
}

static void listed_end(struct listed *listed) {
    json_t *whole = NULL;
    if (listed->objects != NULL)
        whole = json_pack("{s:O, s:s?}", "objects", listed->objects, "next", listed->next);
    if (whole != NULL) {
        json_dumpf(whole, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(10) | JSON_ENSURE_ASCII);
        putchar('\n');
    } else if (listed->next != NULL) {
        printf("more: --after %s\n", listed->next);
    }
    json_decref(whole);
}

static int run_list(const struct cache_context *context) {
    struct listed listed = {.context = context};
    int status;
    if (context->json)
        listed.objects = json_array();
    do
        status = listed_ask(&listed);
    while (status == EXIT_SUCCESS && listed.next != NULL && listed_wants(&listed) > 0);
    if (status == EXIT_SUCCESS)
        listed_end(&listed);
    json_decref(listed.objects);
    free(listed.next);
    return status;
}

/* The secondary key contains one line for each field. */
static void show_vary(const char *vary) {
    const char *end;
    for (; (end = strchr(vary, '\n')) != NULL; vary = end + 1)
        printf("    varies by %.*s\n", (int)strcspn(vary, "\r\n"), vary);
}

static int show_variants(const struct cache_context *context, const struct http_answer *answer) {
    if (context->json)
        return cache_command_show_raw(context, answer);
    json_t *json = answer_load(answer->body, answer->length);
    json_t *variants = json_object_get(json, "variants");
    show_titles();
    for (size_t i = 0; i < json_array_size(variants); i++) {
        const json_t *variant = json_array_get(variants, i);
        show_object_line(variant);
        if (strcmp(cache_command_text(variant, "services"), "none") != 0)
            printf("    seen by services: %s\n", cache_command_text(variant, "services"));
        show_vary(cache_command_text(variant, "vary"));
    }
    json_decref(json);
    return EXIT_SUCCESS;
}

static int show_bans(const struct cache_context *context, const struct http_answer *answer) {
    if (context->json)
        return cache_command_show_raw(context, answer);
    json_t *json = answer_load(answer->body, answer->length);
    json_t *bans = json_object_get(json, "bans");
    if (json_array_size(bans) > 0)
        terminal_heading(stdout, "%6s %s", "NUMBER", "REGEX");
    for (size_t i = 0; i < json_array_size(bans); i++)
        printf("%6lld %s\n", cache_command_number(json_array_get(bans, i), "number"),
               cache_command_text(json_array_get(bans, i), "regex"));
    json_decref(json);
    return EXIT_SUCCESS;
}

/* Injection. */

static void complain_of_file(const char *path, const char *reason) {
    fprintf(stderr, "retortctl: %s: %s\n", path, reason);
}

/* The caller frees it. NULL: it can't be read to its end; the reason has been told. */
static char *cache_command_read_file(const char *path, size_t *length) {
    FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "rb");
    char *bytes = NULL;
    size_t capacity = 0, got;
    *length = 0;
    if (file == NULL) {
        complain_of_file(path, strerror(errno));
        return NULL;
    }
    do {
        capacity = capacity * 2 + 65536;
        bytes = xrealloc(bytes, capacity);
        got = fread(bytes + *length, 1, capacity - *length, file);
        *length += got;
    } while (got > 0 && *length <= FILE_MAX);
    const char *reason = ferror(file) ? strerror(errno)
                         : *length > FILE_MAX
                             ? "is longer than 64 MB, the most that can be injected"
                             : NULL;
    if (reason != NULL) {
        complain_of_file(path, reason);
        free(bytes);
        bytes = NULL;
    }
    if (file != stdin)
        fclose(file);
    return bytes;
}

static void write_response(FILE *out, const struct options *options, const char *body,
                           size_t length) {
    fprintf(out, "HTTP/1.1 %s \r\n", options->status != NULL ? options->status : "200");
    for (unsigned i = 0; i < options->header_count; i++)
        fprintf(out, "%s\r\n", options->headers[i]);
    fputs("\r\n", out);
    fwrite(body, 1, length, out);
}

static char *inject_target(const struct options *options) {
    char *whole;
    size_t length;
    FILE *out = open_memstream(&whole, &length);
    ASSERT(out != NULL);
    fputs("/cache/object?", out);
    argument_put(out, "lifetime", options->lifetime);
    argument_put(out, "url", options->words[0]);
    ASSERT(fclose(out) == 0);
    return whole;
}

static int inject(const struct cache_context *context) {
    const struct options *options = &context->options;
    char *message;
    size_t length, body_length;
    char *body = cache_command_read_file(options->words[1], &body_length);
    if (body == NULL)
        return EXIT_FAILURE;
    FILE *out = open_memstream(&message, &length);
    ASSERT(out != NULL);
    write_response(out, options, body, body_length);
    ASSERT(fclose(out) == 0);
    char *whole = inject_target(options);
    struct http_request request = {
        .method = "PUT", .target = whole, .body = message, .length = length};
    int status = send_call(context, &request, show_counts);
    free(whole);
    free(message);
    free(body);
    return status;
}

/* The commands. */

static bool read_count(const char *text, unsigned long least, unsigned long most, unsigned *count) {
    char *end;
    unsigned long number = strtoul(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || number < least || number > most)
        return false;
    *count = (unsigned)number;
    return true;
}

/* Runs it for each URL of the arguments. */
static int run_jobs(const struct options *options, struct url_jobs *jobs) {
    jobs->jobs = 1;
    if (options->jobs != NULL && !read_count(options->jobs, 1, URL_JOBS_MAX, &jobs->jobs))
        return cache_command_misused("--jobs needs a number from 1 to 256");
    if (options->rate != NULL && !read_count(options->rate, 0, URL_JOBS_RATE_MAX, &jobs->rate))
        return cache_command_misused(
            "--rate needs a number of requests per second, or 0 for no limit");
    for (char **word = options->words; *word != NULL; word++)
        url_jobs_add(jobs, *word);
    url_jobs_run(jobs);
    url_jobs_release(jobs);
    return jobs->failed > 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

static int preload(const struct cache_context *context, bool again) {
    const struct options *options = &context->options;
    struct preload preload = {
        .via = options->via,
        .headers = options->headers,
        .header_count = options->header_count,
        .again = again,
        .json = context->json,
    };
    struct url_jobs jobs = {.rate = URL_JOBS_RATE, .run = preload_fetch, .context = &preload};
    if (options->via == NULL)
        return cache_command_misused(
            "--via is missing: write --via ADDRESS:PORT with the address of a listener");
    return run_jobs(options, &jobs);
}

static int run_fetch(const struct cache_context *context) {
    return preload(context, false);
}

static int run_revalidate(const struct cache_context *context) {
    return preload(context, true);
}

static int run_show(const struct cache_context *context) {
    return call(context, "GET", "/cache/object", context->options.words[0], show_variants);
}

/* The object may be larger than memory: its bytes go to the standard output as they come. */
static int run_get(const struct cache_context *context) {
    struct http_answer answer;
    char error[HTTP_CALL_ERROR];
    char *whole = target(&context->options, "/cache/content", context->options.words[0]);
    const struct http_request request = {.method = "GET", .target = whole};
    bool good = http_call_copy(&answer, context->admin, &request, stdout, error);
    free(whole);
    if (!good)
        return cache_command_complain(error);
    int status = answer.status == 200 ? EXIT_SUCCESS : cache_command_refused(&answer);
    http_answer_release(&answer);
    return status;
}

static bool tell_of_delete(struct url_jobs *jobs, const char *url,
                           const struct http_answer *answer) {
    const struct cache_context *context = jobs->context;
    json_t *json = answer_load(answer->body, answer->length);
    const char *reason = json_string_value(json_object_get(json, "error"));
    bool good = answer->status == 200;
    if (context->json)
        url_jobs_say_json(jobs, url, json_incref(json));
    else if (good)
        url_jobs_say(jobs, stdout, "deleted %lld %s\n", cache_command_number(json, "purged"), url);
    if (!good)
        url_jobs_say(jobs, stderr, "retortctl: %s: %s\n", url,
                     reason != NULL ? reason : "retort refused it without a reason");
    json_decref(json);
    return good;
}

static bool delete_one(struct url_jobs *jobs, const char *url) {
    const struct cache_context *context = jobs->context;
    struct http_answer answer;
    char error[HTTP_CALL_ERROR], *whole = target(&context->options, "/cache/object", url);
    struct http_request request = {.method = "DELETE", .target = whole};
    bool good = http_call_send(&answer, context->admin, &request, error);
    free(whole);
    if (!good) {
        url_jobs_say(jobs, stderr, "retortctl: %s: %s\n", url, error);
        return false;
    }
    good = tell_of_delete(jobs, url, &answer);
    http_answer_release(&answer);
    return good;
}

static int run_delete(const struct cache_context *context) {
    const struct options *options = &context->options;
    struct url_jobs jobs = {.run = delete_one, .context = (void *)context};
    if (options->words[1] == NULL && options->words[0][0] != '@')
        return call(context, "DELETE", "/cache/object", options->words[0], show_counts);
    return run_jobs(options, &jobs);
}

static int run_purge(const struct cache_context *context) {
    return call(context, "POST", "/cache/purge", NULL, show_counts);
}

static int run_ban(const struct cache_context *context) {
    struct cache_context with = *context;
    with.options.regex = context->options.words[0];
    return call(&with, "POST", "/cache/bans", NULL, show_counts);
}

static int run_bans(const struct cache_context *context) {
    return call(context, "GET", "/cache/bans", NULL, show_bans);
}

static int run_expire(const struct cache_context *context) {
    size_t length;
    char *whole;
    FILE *out = open_memstream(&whole, &length);
    ASSERT(out != NULL);
    fputs("/cache/lifetime?", out);
    argument_put(out, "seconds", context->options.words[1]);
    argument_put(out, "url", context->options.words[0]);
    ASSERT(fclose(out) == 0);
    struct http_request request = {.method = "POST", .target = whole};
    int status = send_call(context, &request, show_counts);
    free(whole);
    return status;
}

static int run_pin(const struct cache_context *context) {
    return call(context, "POST", "/cache/pin", context->options.words[0], show_counts);
}

static int run_unpin(const struct cache_context *context) {
    return call(context, "POST", "/cache/unpin", context->options.words[0], show_counts);
}

static const struct cache_verb {
    const char *name;
    int (*run)(const struct cache_context *context);
} verbs[] = {
    {"cache show", run_show},
    {"cache get", run_get},
    {"cache list", run_list},
    {"cache delete", run_delete},
    {"cache purge", run_purge},
    {"cache ban", run_ban},
    {"cache bans", run_bans},
    {"cache expire", run_expire},
    {"cache pin", run_pin},
    {"cache unpin", run_unpin},
    {"cache inject", inject},
    {"cache fetch", run_fetch},
    {"cache revalidate", run_revalidate},
};

struct header_list {
    struct options *options;
    bool too_many;
};

static void add_header(void *arg, const char *line) {
    struct header_list *list = arg;
    list->too_many = list->options->header_count == HEADERS_MAX;
    if (!list->too_many)
        list->options->headers[list->options->header_count++] = line;
}

/* False: there are too many header lines. */
static bool cache_command_take_options(struct options *options, const struct command_line *line) {
    const struct {
        const char *name;
        const char **value;
    } texts[] = {
        {"prefix", &options->prefix},     {"host", &options->host},
        {"tag", &options->tag},           {"regex", &options->regex},
        {"limit", &options->limit},       {"after", &options->after},
        {"variant", &options->variant},   {"status", &options->status},
        {"lifetime", &options->lifetime}, {"via", &options->via},
        {"rate", &options->rate},         {"jobs", &options->jobs},
    };
    struct header_list headers = {options, false};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        *texts[i].value = command_line_option(line, texts[i].name);
    command_line_each(line, "header", add_header, &headers);
    options->soft = command_line_option(line, "soft") != NULL;
    options->all = command_line_option(line, "all") != NULL;
    options->words = line->words;
    return !headers.too_many;
}

/* Checks texts that are copied into heads. Returns NULL when they are good. */
static const char *cache_command_unfit(const struct options *options) {
    const char *status = options->status, *reason = NULL;
    for (unsigned i = 0; i < options->header_count && reason == NULL; i++)
        reason = header_line_check(options->headers[i]);
    if (status != NULL && (strspn(status, "0123456789") != 3 || status[3] != '\0'))
        reason = "--status needs three digits, such as 404";
    return reason;
}

int cache_command(const char *admin, const struct command_line *line) {
    struct cache_context context = {.admin = admin, .json = line->json};
    if (!cache_command_take_options(&context.options, line))
        return cache_command_misused("--header was given too many times: 64 are the most");
    const char *reason = cache_command_unfit(&context.options);
    if (reason != NULL) {
        cache_command_complain(reason);
        return 2;
    }
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
        if (strcmp(line->command->name, verbs[i].name) == 0)
            return verbs[i].run(&context);
    ASSERT(!"a command of the table has no function");
    return EXIT_FAILURE;
}
