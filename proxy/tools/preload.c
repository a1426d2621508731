#include "tools/preload.h"

#include "base/assert.h"
#include "http/url.h"
#include "tools/http_call.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
