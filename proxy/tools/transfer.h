/*
 * One request of libcurl's and its answer, for tools/http_call.h and tools/event_reader.h: over a Unix socket, TCP or TLS.
 *
 *     struct transfer transfer = {.error = error, .cut_off = "the answer is cut off"};
 *     bool good = transfer_open(&transfer, "https://proxy.example:3129", &request) &&
 *                 transfer_end(&transfer, curl_easy_perform(transfer.curl));     or after a message
 *     transfer_close(&transfer);                                                 in any case
 *
 * With https:// the server's certificate must be good and for the host in the URL. The environment says which authorities
 * count (TRANSFER_CA; else those of the system), and which certificate is shown (TRANSFER_CERTIFICATE and TRANSFER_KEY).
 * OpenSSL checks that, not libcurl, so that a message can name the reason. SIGPIPE is ignored from then on.
 *
 * Threads: a transfer belongs to one thread; blocks for at most HTTP_CALL_SECONDS without progress.
 */
#ifndef RETORT_TOOLS_TRANSFER_H
#define RETORT_TOOLS_TRANSFER_H

#include "tools/http_call.h"

#include <curl/curl.h>

#define TRANSFER_CA          "RETORT_CA_FILE"
#define TRANSFER_CERTIFICATE "RETORT_CERTIFICATE"
#define TRANSFER_KEY         "RETORT_KEY"

struct transfer {
    char *error;         /* gets the message: HTTP_CALL_ERROR bytes */
    const char *cut_off; /* what is said, behind the address, of an answer that is not whole */
    const char *where;
    CURL *curl;
    struct curl_slist *fields;
    bool secure;     /* TLS */
    bool shaking;    /* hands: it has begun */
    int tries;       /* to connect to a Unix socket */
    bool head_ended; /* of the answer: 1xx are none */
    bool told;       /* the message is there already */
    char detail[CURL_ERROR_SIZE];
};

/* `where`, which must outlive the transfer, is a path with a slash, ADDRESS:PORT, http://ADDRESS:PORT or https://HOST:PORT.
 * The request, too. False with a message: there is nothing to perform. */
bool transfer_open(struct transfer *transfer, const char *where,
                   const struct http_request *request);
/* After a while, is it to be performed again? So many wait to connect to the Unix socket that there is no place. */
bool transfer_must_wait(struct transfer *transfer, CURLcode code);
/* What libcurl has returned. False with a message: the answer is not whole. */
bool transfer_end(struct transfer *transfer, CURLcode code);
bool transfer_fail(struct transfer *transfer, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
bool transfer_cut_off(struct transfer *transfer);
unsigned transfer_status(const struct transfer *transfer);
/* The bytes of the body, by its head; less than 0: the head does not say. */
int64_t transfer_length(const struct transfer *transfer);
void transfer_close(struct transfer *transfer);

/* Is it a path, relative or not? It has a slash before any colon. */
bool transfer_is_path(const char *where);
/* HOST:PORT of `where`, without the scheme and what follows. `where` is no path. The caller frees it. */
char *transfer_authority(const char *where);

#endif
