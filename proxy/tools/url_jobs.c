#include "tools/url_jobs.h"

#include "base/assert.h"
#include "base/text.h"
#include "base/threads.h"
#include "http/url.h"
#include "tools/http_call.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { URL_NANOSECONDS = 1000000000 };

static void add_url(struct url_jobs *jobs, const char *url) {
    if (jobs->count == jobs->capacity) {
        jobs->capacity = jobs->capacity * 2 + 64;
        jobs->urls = xrealloc(jobs->urls, jobs->capacity * sizeof *jobs->urls);
    }
    jobs->urls[jobs->count++] = xstrdup(url);
}

static void fail_list(struct url_jobs *jobs, const char *path, const char *reason) {
    fprintf(stderr, "retortctl: %s: %s\n", path, reason);
    jobs->failed++;
}

static void add_list(struct url_jobs *jobs, const char *path) {
    char line[16384];
    FILE *file = fopen(path, "r");
    if (file == NULL) {
        fail_list(jobs, path, strerror(errno));
        return;
    }
    for (unsigned number = 1; fgets(line, sizeof line, file) != NULL; number++) {
        if (strchr(line, '\n') == NULL && !feof(file)) {
            fail_list(jobs, path, "a line is longer than a URL can be");
            break;
        }
        const char *url = number > 1 ? line : text_without_mark(slice_from(line)).base;
        line[strcspn(line, "\r\n")] = '\0';
        if (url[0] != '\0' && url[0] != '#')
            add_url(jobs, url);
    }
    if (ferror(file))
        fail_list(jobs, path, strerror(errno));
    fclose(file);
}

void url_jobs_add(struct url_jobs *jobs, const char *word) {
    if (word[0] == '@')
        add_list(jobs, word + 1);
    else
        add_url(jobs, word);
}

/* When the next one may begin. A late one delays those behind it; no burst makes up for it. */
static uint64_t url_jobs_take_turn(struct url_jobs *jobs, uint64_t now) {
    uint64_t due = jobs->next_due > now ? jobs->next_due : now;
    if (jobs->rate > 0)
        jobs->next_due = due + URL_NANOSECONDS / jobs->rate;
    return due;
}

/* NULL: there are no more. */
static const char *take_url(struct url_jobs *jobs) {
    struct timespec at;
    const char *url = NULL;
    clock_gettime(CLOCK_MONOTONIC, &at);
    uint64_t now = (uint64_t)at.tv_sec * URL_NANOSECONDS + (uint64_t)at.tv_nsec, due = now;
    pthread_mutex_lock(&jobs->lock);
    if (jobs->next < jobs->count) {
        url = jobs->urls[jobs->next++];
        due = url_jobs_take_turn(jobs, now);
    }
    pthread_mutex_unlock(&jobs->lock);
    at = (struct timespec){(time_t)((due - now) / URL_NANOSECONDS),
                           (long)((due - now) % URL_NANOSECONDS)};
    if (due > now)
        nanosleep(&at, NULL);
    return url;
}

static void work(void *argument) {
    struct url_jobs *jobs = argument;
    for (const char *url; (url = take_url(jobs)) != NULL;) {
        bool good = jobs->run(jobs, url);
        pthread_mutex_lock(&jobs->lock);
        jobs->failed += !good;
        progress_step(&jobs->progress);
        pthread_mutex_unlock(&jobs->lock);
    }
}

/* This thread works as well; so all is done when no other can be started. */
void url_jobs_run(struct url_jobs *jobs) {
    struct thread threads[URL_JOBS_MAX];
    unsigned started = 0;
    pthread_mutex_init(&jobs->lock, NULL);
    progress_begin(&jobs->progress, jobs->count);
    while (started + 1 < jobs->jobs && started + 1 < jobs->count &&
           thread_start(&threads[started], work, jobs, "rt-url"))
        started++;
    work(jobs);
    while (started > 0)
        thread_join(&threads[--started]);
    progress_end(&jobs->progress);
    pthread_mutex_destroy(&jobs->lock);
}

void url_jobs_say(struct url_jobs *jobs, FILE *out, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    pthread_mutex_lock(&jobs->lock);
    progress_hide(&jobs->progress);
    vfprintf(out, format, arguments);
    fflush(out);
    pthread_mutex_unlock(&jobs->lock);
    va_end(arguments);
}

void url_jobs_say_json(struct url_jobs *jobs, const char *url, json_t *about) {
    json_t *whole = json_object(), *text_of_url = json_string(url);
    if (text_of_url != NULL) /* else it is not UTF-8 */
        json_object_set_new(whole, "url", text_of_url);
    json_object_update(whole, about);
    char *text = json_dumps(whole, JSON_COMPACT | JSON_ENSURE_ASCII);
    url_jobs_say(jobs, stdout, "%s\n", text != NULL ? text : "{}");
    free(text);
    json_decref(whole);
    json_decref(about);
}

void url_jobs_release(struct url_jobs *jobs) {
    for (size_t i = 0; i < jobs->count; i++)
        free(jobs->urls[i]);
    free(jobs->urls);
}

static char *join_headers(const struct preload *preload) {
    char *joined;
    size_t length;
    FILE *out = open_memstream(&joined, &length);
    ASSERT(out != NULL);
    for (unsigned i = 0; i < preload->header_count; i++)
        fprintf(out, "%s\r\n", preload->headers[i]);
    if (preload->again)
        fputs("Cache-Control: no-cache\r\n", out);
    ASSERT(fclose(out) == 0);
    return joined;
}

/* False with a message. */
static bool preload_ask(const struct preload *preload, const char *url_text, unsigned *status,
                        char *error) {
    struct url url;
    char host[300];
    if (!url_parse(&url, slice_from(url_text))) {
        snprintf(error, HTTP_CALL_ERROR, "it is not an absolute URL");
        return false;
    }
    size_t length = (size_t)(url.path_query.base - (url.scheme.base + url.scheme.length + 3));
    snprintf(host, sizeof host, "%.*s", url.path_query.base == NULL ? 0 : (int)length,
             url.scheme.base + url.scheme.length + 3);
    char *headers = join_headers(preload);
    struct http_request request = {.method = "GET",
                                   .target = url_text,
                                   .host = host[0] != '\0' ? host : NULL,
                                   .headers = headers};
    bool good = http_call_drain(status, preload->via, &request, error);
    free(headers);
    return good;
}

bool preload_fetch(struct url_jobs *jobs, const char *url) {
    const struct preload *preload = jobs->context;
    char error[HTTP_CALL_ERROR];
    unsigned status = 0;
    bool good = preload_ask(preload, url, &status, error);
    if (preload->json)
        url_jobs_say_json(jobs, url,
                          good ? json_pack("{s:i}", "status", (int)status)
                               : json_pack("{s:s}", "error", error));
    else if (good)
        url_jobs_say(jobs, stdout, "%u %s\n", status, url);
    if (!good)
        url_jobs_say(jobs, stderr, "retortctl: %s: %s\n", url, error);
    return good && status < 400;
}
