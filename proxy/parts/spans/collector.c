#include "spans/collector.h"

#include "base/assert.h"

#include <curl/curl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

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

/* libcurl would wait for its look-up of the name otherwise, for as long as the resolver takes. */
static void leave_lookup(CURL *curl) {
#if LIBCURL_VERSION_NUM >= 0x075700
    curl_easy_setopt(curl, CURLOPT_QUICK_EXIT, 1L);
#else
    (void)curl;
#endif
}

/* A post that is under way. */
struct collector_post {
    CURL *curl;
    const atomic_bool *stop;
};

static int collector_on_progress(void *arg, curl_off_t down_total, curl_off_t down,
                                 curl_off_t up_total, curl_off_t up) {
    const struct collector_post *post = arg;
    (void)down_total;
    (void)down;
    (void)up_total;
    (void)up;
    if (!atomic_load(post->stop))
        return 0;
    leave_lookup(post->curl);
    return 1;
}

static curl_socket_t collector_on_socket(void *arg, curlsocktype purpose,
                                         struct curl_sockaddr *address) {
    (void)arg;
    (void)purpose;
    return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
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
static void prepare(struct collector_post *post, const struct collector_request *request,
                    struct curl_slist *fields, struct collector_reply *reply,
                    char error[CURL_ERROR_SIZE]) {
    const struct tracing_settings *tracing = request->tracing;
    CURL *curl = post->curl;
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
    curl_easy_setopt(curl, CURLOPT_XFERINFODATA, post);
    curl_easy_setopt(curl, CURLOPT_OPENSOCKETFUNCTION, collector_on_socket);
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, error);
    if (tracing->ca_file != NULL)
        curl_easy_setopt(curl, CURLOPT_CAINFO, tracing->ca_file);
    if (request->timeout < tracing->timeout)
        leave_lookup(curl);
}

static bool was_left(CURLcode result, const struct collector_request *request) {
    return result == CURLE_ABORTED_BY_CALLBACK ||
           (result == CURLE_OPERATION_TIMEDOUT && request->timeout < request->tracing->timeout);
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
    struct collector_post post = {collector->curl, request->stop};
    prepare(&post, request, fields, reply, reason);
    CURLcode result = curl_easy_perform(collector->curl);
    curl_easy_getinfo(collector->curl, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_setopt(collector->curl, CURLOPT_ERRORBUFFER, NULL);
    curl_easy_setopt(collector->curl, CURLOPT_XFERINFODATA, NULL);
    curl_slist_free_all(fields);
    if (result == CURLE_OK)
        return judge(status, error);
    if (was_left(result, request))
        return COLLECTOR_LEFT;
    snprintf(error, COLLECTOR_ERROR, "%s", reason[0] != '\0' ? reason : curl_easy_strerror(result));
    return COLLECTOR_AGAIN;
}
