#include "ctl/preload.h"

#include "base/assert.h"
#include "base/text.h"
#include "ctl/http_call.h"
#include "http/url.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { RATE_MAX = 1000000, NANOSECONDS = 1000000000 };

bool preload_read_rate(struct preload *preload, const char *text) {
    char *end;
    unsigned long rate = strtoul(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || rate > RATE_MAX)
        return false;
    preload->rate = (unsigned)rate;
    return true;
}

/* A late request delays the following ones; no burst makes up for it. */
static void wait_for_turn(struct preload *preload) {
    struct timespec at;
    if (preload->rate == 0)
        return;
    clock_gettime(CLOCK_MONOTONIC, &at);
    uint64_t now = (uint64_t)at.tv_sec * NANOSECONDS + (uint64_t)at.tv_nsec;
    if (preload->next_due > now) {
        uint64_t pause = preload->next_due - now;
        at = (struct timespec){(time_t)(pause / NANOSECONDS), (long)(pause % NANOSECONDS)};
        nanosleep(&at, NULL);
        now = preload->next_due;
    }
    preload->next_due = now + NANOSECONDS / preload->rate;
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

static bool fetch(struct preload *preload, const char *url_text) {
    struct url url;
    unsigned status;
    char error[HTTP_CALL_ERROR], host[300];
    if (!url_parse(&url, slice_from(url_text))) {
        fprintf(stderr, "retortctl: \"%s\" is not an absolute URL\n", url_text);
        return false;
    }
    wait_for_turn(preload);
    size_t length = (size_t)(url.path_query.base - (url.scheme.base + url.scheme.length + 3));
    snprintf(host, sizeof host, "%.*s", url.path_query.base == NULL ? 0 : (int)length,
             url.scheme.base + url.scheme.length + 3);
    char *headers = join_headers(preload);
    struct http_request request = {.method = "GET",
                                   .target = url_text,
                                   .host = host[0] != '\0' ? host : NULL,
                                   .headers = headers};
    bool good = http_call_drain(&status, preload->via, &request, error);
    free(headers);
    if (!good) {
        fprintf(stderr, "retortctl: %s: %s\n", url_text, error);
        return false;
    }
    printf("%u %s\n", status, url_text);
    return status < 400;
}

static void take_list(struct preload *preload, const char *path) {
    char line[16384];
    FILE *file = fopen(path, "r");
    if (file == NULL) {
        fprintf(stderr, "retortctl: ");
        perror(path);
        preload->failed++;
        return;
    }
    for (unsigned number = 1; fgets(line, sizeof line, file) != NULL; number++) {
        const char *url = number > 1 ? line : text_without_mark(slice_from(line)).base;
        line[strcspn(line, "\r\n")] = '\0';
        if (url[0] != '\0' && url[0] != '#')
            preload->failed += !fetch(preload, url);
    }
    fclose(file);
}

void preload_word(struct preload *preload, const char *word) {
    if (word[0] == '@')
        take_list(preload, word + 1);
    else
        preload->failed += !fetch(preload, word);
}
