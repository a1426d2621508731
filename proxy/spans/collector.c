#include "spans/collector.h"

#include "base/assert.h"

#include <curl/curl.h>
#include <stdio.h>
#include <string.h>

struct collector {
    unsigned magic;
#define COLLECTOR_MAGIC 0xc0113c70u
    CURL *curl; /* keeps the connection between posts; NULL: there was no memory for it */
};

struct collector *collector_new(void) {
    struct collector *collector;
    ALLOC_OBJ(collector, COLLECTOR_MAGIC);
    if (curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK)
        collector->curl = curl_easy_init();
    return collector;
}

void collector_free(struct collector **collectorp) {
    struct collector *collector = *collectorp;
    *collectorp = NULL;
    if (collector == NULL)
        return;
    CHECK_OBJ(collector, COLLECTOR_MAGIC);
    if (collector->curl != NULL)
        curl_easy_cleanup(collector->curl);
    FREE_OBJ(collector);
}

/* What is beyond the room is thrown away. An answer without an end runs into the timeout. */
static size_t collector_on_answer(char *bytes, size_t size, size_t count, void *arg) {
    struct collector_reply *reply = arg;
    size_t room = sizeof reply->body - reply->length, got = size * count;
    size_t kept = got < room ? got : room;
    memcpy(reply->body + reply->length, bytes, kept);
    reply->length += kept;
    return got;
}

static int collector_on_progress(void *arg, curl_off_t down_total, curl_off_t down,
                                 curl_off_t up_total, curl_off_t up) {
    (void)down_total;
    (void)down;
    (void)up_total;
    (void)up;
    return atomic_load((const atomic_bool *)arg);
}

static struct curl_slist *collector_fields(const struct tracing_settings *tracing) {
    struct curl_slist *fields = curl_slist_append(NULL, "Content-Type: application/json");
    char *line = NULL;
    fields = curl_slist_append(fields, "Expect:"); /* no 100-continue */
    if (tracing->authorization != NULL &&
        asprintf(&line, "Authorization: %s", tracing->authorization) > 0)
        fields = curl_slist_append(fields, line);
    free(line);
    return fields;
}

/* The environment may name a proxy, which may be this one. */
static void prepare(CURL *curl, const struct collector_request *request, struct curl_slist *fields,
                    struct collector_reply *reply, char error[CURL_ERROR_SIZE]) {
    const struct tracing_settings *tracing = request->tracing;
    curl_easy_reset(curl);
    curl_easy_setopt(curl, CURLOPT_URL, tracing->collector);
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(curl, CURLOPT_PROXY, "");
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_USERAGENT, "retort");
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, fields);
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, request->body);
    curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->length);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)request->timeout);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, collector_on_answer);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, (void *)reply);
    curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, collector_on_progress);
    curl_easy_setopt(curl, CURLOPT_XFERINFODATA, (void *)request->stop);
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, error);
    if (tracing->ca_file != NULL)
        curl_easy_setopt(curl, CURLOPT_CAINFO, tracing->ca_file);
}

static enum collector_answer judge(long status, char error[COLLECTOR_ERROR]) {
    if (status >= 200 && status <= 299)
        return COLLECTOR_TOOK;
    snprintf(error, COLLECTOR_ERROR, "it answered with the status %ld", status);
    return status == 429 || (status >= 502 && status <= 504) ? COLLECTOR_AGAIN : COLLECTOR_REFUSED;
}

enum collector_answer collector_post(struct collector *collector,
                                     const struct collector_request *request,
                                     struct collector_reply *reply, char error[COLLECTOR_ERROR]) {
    char reason[CURL_ERROR_SIZE] = "";
    long status = 0;
    CHECK_OBJ(collector, COLLECTOR_MAGIC);
    reply->length = 0;
    if (collector->curl == NULL) {
        snprintf(error, COLLECTOR_ERROR, "libcurl could not be started");
        return COLLECTOR_REFUSED;
    }
    struct curl_slist *fields = collector_fields(request->tracing);
    prepare(collector->curl, request, fields, reply, reason);
    CURLcode result = curl_easy_perform(collector->curl);
    curl_easy_getinfo(collector->curl, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_setopt(collector->curl, CURLOPT_ERRORBUFFER, NULL);
    curl_slist_free_all(fields);
    if (result == CURLE_OK)
        return judge(status, error);
    snprintf(error, COLLECTOR_ERROR, "%s", reason[0] != '\0' ? reason : curl_easy_strerror(result));
    return COLLECTOR_AGAIN;
}
