#include "tools/commands.h"

#include "admin/answer.h"
#include "base/assert.h"
#include "base/slice.h"
#include "http/bytes.h"
#include "http/names.h"
#include "tools/admin_page.h"
#include "tools/http_call.h"
#include "tools/url_jobs.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

/*
 * A field line from the operator for a head that is sent or stored: exactly one field (RFC 9110 §5.1,
 * §5.5), and none that determines the end of a message, since retortctl writes those itself. Returns
 * what is wrong with it; NULL: it is good.
 */

static const char *header_line_check(const char *line) {
    size_t length = strcspn(line, ":");
    const char *end = line + strlen(line);
    if (line[length] != ':' || length == 0)
        return "--header needs a whole field line: --header 'NAME: VALUE'";
    for (size_t i = 0; i < length; i++)
        if (!bytes_is(line[i], BYTES_TOKEN))
            return "--header: the name before the colon has a byte that is not allowed in a field "
                   "name";
    if (bytes_skip(line + length, end, BYTES_TEXT) != end)
        return "--header: the value has a line end or another control byte; give each field a "
               "--header of its own";
    switch (http_name_lookup(slice_make(line, length))) {
    case HTTP_CONTENT_LENGTH:
    case HTTP_TRANSFER_ENCODING:
        return "--header: retortctl writes Content-Length and Transfer-Encoding itself";
    default: return NULL;
    }
}

enum { HEADERS_MAX = 64, FILE_MAX = 64 << 20, LIST_USUAL = 100 };

struct options {
    const char *status, *via, *rate, *jobs;
    const char *headers[HEADERS_MAX];
    unsigned header_count;
    char **words; /* the arguments; NULL behind the last */
};

struct cache_context {
    const char *admin;
    const struct command_line *line;
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

static long long cache_command_number(const json_t *object, const char *name) {
    return (long long)json_integer_value(json_object_get(object, name));
}

/* A list, whose answers come one by one: each has what the proxy has found in a moment. */
struct listed {
    const struct cache_context *context;
    json_t *objects; /* those of all answers, for JSON; else NULL */
    size_t count;    /* of objects so far */
    bool titled, is_list;
    char *next; /* where to go on; NULL: this was all */
};

static int listed_complain(void) {
    return cache_command_complain("the answer is no list of objects: is this retort's "
                                  "admin.listen?");
}

static int listed_take_json(struct listed *listed, const struct http_answer *answer) {
    json_t *json = json_loadb(answer->body, answer->length, 0, NULL);
    const json_t *next = json_object_get(json, "next");
    json_t *objects = json_object_get(json, "objects");
    listed->is_list = json_is_array(objects) && (json_is_string(next) || json_is_null(next));
    if (listed->is_list && json_is_string(next))
        listed->next = xstrdup(json_string_value(next));
    if (listed->is_list)
        json_array_extend(listed->objects, objects);
    listed->count = json_array_size(listed->objects);
    json_decref(json);
    return EXIT_SUCCESS;
}

/* A line of the text: the headings, an object, or where to go on. */
static void listed_take_line(void *arg, const char *line, size_t length) {
    static const char more[] = "more: --after ";
    struct listed *listed = arg;
    if (!listed->is_list) {
        listed->is_list = memmem(line, length, "STATE", strlen("STATE")) != NULL;
        if (listed->is_list && !listed->titled)
            fwrite(line, 1, length, stdout);
        listed->titled = true;
    } else if (length > sizeof more && memcmp(line, more, sizeof more - 1) == 0) {
        listed->next = slice_dup(slice_make(line + sizeof more - 1, length - sizeof more));
    } else {
        fwrite(line, 1, length, stdout);
        listed->count++;
    }
}

static int listed_ask_json(struct listed *listed, const struct http_request *request) {
    struct http_answer answer;
    char error[HTTP_CALL_ERROR];
    if (!http_call_send(&answer, listed->context->admin, request, error))
        return cache_command_complain(error);
    int status =
        answer.status == 200 ? listed_take_json(listed, &answer) : admin_page_refused(&answer);
    http_answer_release(&answer);
    return status;
}

/* How many objects are still wanted. A limit that is none is left to the proxy, which says so. */
static size_t listed_wants(const struct listed *listed) {
    uint64_t limit;
    const char *text = command_line_option(listed->context->line, "limit");
    if (text == NULL || !slice_to_uint64(slice_from(text), &limit))
        limit = LIST_USUAL;
    return limit > listed->count ? (size_t)limit - listed->count : 0;
}

/* The first answer is for the words of the command, each further one for the rest. */
static char *listed_target(struct listed *listed) {
    char *base, *target;
    if (listed->next == NULL)
        return admin_page_target(listed->context->line, NULL);
    base = admin_page_target(listed->context->line, "limit after");
    ASSERT(asprintf(&target, "%s%climit=%zu&after=%s", base, strchr(base, '?') != NULL ? '&' : '?',
                    listed_wants(listed), listed->next) >= 0);
    free(base);
    return target;
}

static int listed_ask(struct listed *listed) {
    char *target = listed_target(listed);
    const struct http_request request = {.method = "GET", .target = target};
    free(listed->next);
    listed->next = NULL;
    listed->is_list = false;
    int status = listed->objects != NULL ? listed_ask_json(listed, &request)
                                         : admin_page_ask_for(listed->context->admin, &request,
                                                              listed_take_line, listed);
    free(target);
    return status == EXIT_SUCCESS && !listed->is_list ? listed_complain() : status;
}

static void listed_end(struct listed *listed) {
    if (listed->objects != NULL) {
        json_t *whole = json_pack("{s:O, s:s?}", "objects", listed->objects, "next", listed->next);
        json_dumpf(whole, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(10) | JSON_ENSURE_ASCII);
        putchar('\n');
        json_decref(whole);
    } else if (listed->next != NULL) {
        printf("more: --after %s\n", listed->next);
    }
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
    char *whole = admin_page_target(context->line, NULL);
    struct http_request request = {
        .method = "PUT", .target = whole, .body = message, .length = length};
    int status = admin_page_ask(context->admin, context->json, &request);
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

/* The object may be larger than memory: its bytes go to the standard output as they come. */
static int run_get(const struct cache_context *context) {
    struct http_answer answer;
    char error[HTTP_CALL_ERROR];
    char *whole = admin_page_target(context->line, NULL);
    const struct http_request request = {.method = "GET", .target = whole};
    bool good = http_call_copy(&answer, context->admin, &request, stdout, error);
    free(whole);
    if (!good)
        return cache_command_complain(error);
    int status = answer.status == 200 ? EXIT_SUCCESS : admin_page_refused(&answer);
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
    char error[HTTP_CALL_ERROR], *whole;
    size_t length;
    FILE *out = open_memstream(&whole, &length);
    ASSERT(out != NULL);
    fputs("/cache/object?", out);
    admin_page_put(out, "url", url);
    admin_page_put(out, "soft", command_line_option(context->line, "soft") != NULL ? "yes" : NULL);
    ASSERT(fclose(out) == 0);
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
        return admin_page_command(context->admin, context->line);
    return run_jobs(options, &jobs);
}

static const struct cache_verb {
    const char *name;
    int (*run)(const struct cache_context *context);
} verbs[] = {
    {"cache get", run_get},   {"cache list", run_list},   {"cache delete", run_delete},
    {"cache inject", inject}, {"cache fetch", run_fetch}, {"cache revalidate", run_revalidate},
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
        {"status", &options->status},
        {"via", &options->via},
        {"rate", &options->rate},
        {"jobs", &options->jobs},
    };
    struct header_list headers = {options, false};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        *texts[i].value = command_line_option(line, texts[i].name);
    command_line_each(line, "header", add_header, &headers);
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
    struct cache_context context = {.admin = admin, .line = line, .json = line->json};
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
    return admin_page_command(admin, line);
}
