#include "tools/transfer.h"

#include "base/assert.h"
#include "http/bytes.h"
#include "net/address.h"

#include <errno.h>
#include <netdb.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

enum { TRIES_A_SECOND = 50 };

static const char https[] = "https://", http[] = "http://";

bool transfer_fail(struct transfer *transfer, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(transfer->error, HTTP_CALL_ERROR, format, arguments);
    va_end(arguments);
    transfer->told = true;
    return false;
}

/* Where to. */

static bool begins_with_scheme(const char *where, const char *scheme) {
    return strncasecmp(where, scheme, strlen(scheme)) == 0;
}

static bool is_url(const char *where) {
    return begins_with_scheme(where, https) || begins_with_scheme(where, http);
}

bool transfer_is_path(const char *where) {
    return !is_url(where) && where[strcspn(where, ":/")] == '/';
}

char *transfer_authority(const char *where) {
    if (is_url(where))
        where += begins_with_scheme(where, https) ? sizeof https - 1 : sizeof http - 1;
    return slice_dup(slice_make(where, strcspn(where, "/")));
}

/* Cuts "HOST:PORT" or "[ADDRESS]:PORT" in place; false: it is neither. */
static bool split_authority(char *authority, char **host, char **port) {
    char *colon = strrchr(authority, ':');
    if (colon == NULL || colon == authority || colon[1] == '\0')
        return false;
    *colon = '\0';
    *host = authority;
    *port = colon + 1;
    if (authority[0] != '[')
        return strchr(authority, ':') == NULL;
    size_t length = strlen(authority);
    if (length < 3 || authority[length - 1] != ']')
        return false;
    authority[length - 1] = '\0';
    *host = authority + 1;
    return true;
}

/* libcurl does not say why a name has no address: it is asked for again. */
static bool tell_unknown_host(struct transfer *transfer, const char *host, const char *port) {
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    int failed = getaddrinfo(host, port, &hints, &found);
    if (failed == 0)
        freeaddrinfo(found);
    return transfer_fail(transfer, "%s: the host has no address: %s", transfer->where,
                         gai_strerror(failed != 0 ? failed : EAI_NONAME));
}

/* Checks the URL, or complains of its host. */
static bool transfer_check_url(struct transfer *transfer, bool unknown) {
    char *authority = transfer_authority(transfer->where), *host, *port;
    bool good;
    if (!split_authority(authority, &host, &port))
        good =
            transfer_fail(transfer, "\"%s\" has no port: write https://HOST:PORT", transfer->where);
    else /* libcurl would take what is before an @ for a user */
        good = (!unknown && strpbrk(host, "@?#\\") == NULL &&
                port[strspn(port, "0123456789")] == '\0') ||
               tell_unknown_host(transfer, host, port);
    free(authority);
    return good;
}

/* Relative paths stay relative: the whole path could be too long for a socket. */
static bool transfer_set_where(struct transfer *transfer) {
    const char *where = transfer->where;
    char url[sizeof http + ADDRESS_TEXT] = "http://localhost";
    struct address address;
    transfer->secure = begins_with_scheme(where, https);
    if (is_url(where)) {
        curl_easy_setopt(transfer->curl, CURLOPT_URL, where);
        return transfer_check_url(transfer, false);
    }
    if (transfer_is_path(where)) {
        if (strlen(where) >= sizeof address.local.sun_path)
            return transfer_fail(transfer,
                                 "\"%s\" is neither a path with a slash nor "
                                 "ADDRESS:PORT: it is too long for a Unix socket",
                                 where);
        curl_easy_setopt(transfer->curl, CURLOPT_UNIX_SOCKET_PATH, where);
    } else if (address_parse(&address, slice_from(where), 0)) {
        address_format(&address, url + sizeof http - 1);
    } else {
        return transfer_fail(transfer,
                             "\"%s\" is neither a path with a slash nor ADDRESS:PORT, "
                             "nor https://HOST:PORT",
                             where);
    }
    curl_easy_setopt(transfer->curl, CURLOPT_URL, url);
    return true;
}

/* TLS. */

static const char *environment(const char *name) {
    const char *value = getenv(name);
    return value != NULL && value[0] != '\0' ? value : NULL;
}

static const char *library_reason(void) {
    const char *reason = ERR_reason_error_string(ERR_peek_last_error());
    return reason != NULL ? reason : strerror(errno);
}

static bool load_trust_of(struct transfer *transfer, SSL_CTX *context) {
    const char *ca_file = environment(TRANSFER_CA);
    if (ca_file == NULL)
        return SSL_CTX_set_default_verify_paths(context) == 1 ||
               transfer_fail(transfer, "the system's authorities can't be read: %s",
                             library_reason());
    return SSL_CTX_load_verify_locations(context, ca_file, NULL) == 1 ||
           transfer_fail(transfer, "--ca-file %s can't be used: %s", ca_file, library_reason());
}

static bool load_own(struct transfer *transfer, SSL_CTX *context) {
    const char *certificate = environment(TRANSFER_CERTIFICATE), *key = environment(TRANSFER_KEY);
    if (certificate == NULL)
        return key == NULL || transfer_fail(transfer, "--key is of use with --certificate only");
    if (SSL_CTX_use_certificate_chain_file(context, certificate) != 1)
        return transfer_fail(transfer, "--certificate %s can't be used: %s", certificate,
                             library_reason());
    if (key == NULL)
        key = certificate;
    return SSL_CTX_use_PrivateKey_file(context, key, SSL_FILETYPE_PEM) == 1 ||
           transfer_fail(transfer, "--key %s can't be used: %s", key, library_reason());
}

static void expect_host(const struct transfer *transfer, SSL_CTX *context) {
    X509_VERIFY_PARAM *param = SSL_CTX_get0_param(context);
    char *authority = transfer_authority(transfer->where), *host, *port;
    ASSERT(split_authority(authority, &host, &port));
    ASSERT(X509_VERIFY_PARAM_set1_ip_asc(param, host) == 1 ||
           X509_VERIFY_PARAM_set1_host(param, host, 0) == 1);
    free(authority);
}

static CURLcode on_tls(CURL *curl, void *context, void *arg) {
    struct transfer *transfer = arg;
    (void)curl;
    transfer->shaking = true;
    ERR_clear_error();
    expect_host(transfer, context);
    /* The length of an answer says whether it is whole. */
    SSL_CTX_set_options(context, SSL_OP_IGNORE_UNEXPECTED_EOF);
    return load_trust_of(transfer, context) && load_own(transfer, context)
               ? CURLE_OK
               : CURLE_ABORTED_BY_CALLBACK;
}

/* What OpenSSL is told (on_tls) is that it verifies the host as well, so libcurl need not. */
static bool set_tls(struct transfer *transfer) {
    CURL *curl = transfer->curl;
    signal(SIGPIPE, SIG_IGN); /* OpenSSL may write to a connection that is already closed */
    curl_easy_setopt(curl, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    curl_easy_setopt(curl, CURLOPT_SSL_OPTIONS, (long)CURLSSLOPT_NO_PARTIALCHAIN);
    curl_easy_setopt(curl, CURLOPT_CAINFO, NULL);
    curl_easy_setopt(curl, CURLOPT_CAPATH, NULL);
    curl_easy_setopt(curl, CURLOPT_SSL_VERIFYHOST, 0L);
    curl_easy_setopt(curl, CURLOPT_SSL_CTX_DATA, (void *)transfer);
    const char *library = curl_version_info(CURLVERSION_NOW)->ssl_version;
    return (library != NULL && strncmp(library, "OpenSSL/", strlen("OpenSSL/")) == 0 &&
            curl_easy_setopt(curl, CURLOPT_SSL_CTX_FUNCTION, on_tls) == CURLE_OK) ||
           transfer_fail(transfer, "%s: this libcurl has no OpenSSL, which https:// needs",
                         transfer->where);
}

/* The request. */

/* What is sent must have no blanks and control characters, because it is sent as it is. */
static bool is_one_word(const char *text) {
    const char *end = text + strlen(text);
    return end != text && bytes_skip(text, end, BYTES_TARGET) == end;
}

static bool is_sendable(struct transfer *transfer, const struct http_request *request) {
    if (request->token != NULL && !is_one_word(request->token))
        return transfer_fail(transfer,
                             "the token has a blank or a control byte: compare it with the "
                             "line in admin.token_file");
    return (is_one_word(request->target) &&
            (request->host == NULL || is_one_word(request->host))) ||
           transfer_fail(transfer, "a URL has a blank, a line end or another control byte: "
                                   "percent-encode it");
}

/* The caller frees it. */
static char *transfer_head_lines(const struct transfer *transfer,
                                 const struct http_request *request) {
    char *lines, *own = NULL;
    const char *host = request->host, *token = request->token;
    if (host == NULL)
        host = transfer_is_path(transfer->where) ? "localhost"
                                                 : (own = transfer_authority(transfer->where));
    ASSERT(asprintf(&lines, "Host: %s\r\n%sConnection: close\r\n%s%s", host,
                    request->headers != NULL ? request->headers : "",
                    token != NULL ? "Authorization: Bearer " : "", token != NULL ? token : "") > 0);
    free(own);
    return lines;
}

/* libcurl takes "NAME:" for a field that it shall not add, and "NAME;" for one without a value. */
static void transfer_set_fields(struct transfer *transfer, const struct http_request *request) {
    static const char *const unwanted[] = {"Accept:", "Content-Type:", "Expect:"};
    char *lines = transfer_head_lines(transfer, request), *rest;
    for (size_t i = 0; i < sizeof unwanted / sizeof *unwanted; i++)
        transfer->fields = curl_slist_append(transfer->fields, unwanted[i]);
    for (char *line = strtok_r(lines, "\r\n", &rest); line != NULL;
         line = strtok_r(NULL, "\r\n", &rest)) {
        char *colon = strchr(line, ':');
        if (colon[1 + strspn(colon + 1, " \t")] == '\0')
            memcpy(colon, ";", 2); /* libcurl's word for a field without a value */
        transfer->fields = curl_slist_append(transfer->fields, line);
    }
    free(lines);
    curl_easy_setopt(transfer->curl, CURLOPT_HTTPHEADER, transfer->fields);
}

/* A GET with a length would be a request with a body, which the cache of a listener does not serve. */
static void transfer_set_request(struct transfer *transfer, const struct http_request *request) {
    CURL *curl = transfer->curl;
    transfer_set_fields(transfer, request);
    if (strcmp(request->method, "GET") != 0) {
        curl_easy_setopt(curl, CURLOPT_POSTFIELDS, request->body != NULL ? request->body : "");
        curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->length);
    }
    curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, request->method);
    curl_easy_setopt(curl, CURLOPT_REQUEST_TARGET, request->target);
}

/* Does what is sent stay on this machine? */
static int on_connected(void *arg, char *peer, char *own, int peer_port, int own_port) {
    struct transfer *transfer = arg;
    struct address address;
    (void)own, (void)peer_port, (void)own_port;
    if (address_parse_ip(&address, slice_from(peer), 1) &&
        (address_is_loopback(&address) || strcmp(peer, "::") == 0 || strcmp(peer, "0.0.0.0") == 0))
        return CURL_PREREQFUNC_OK;
    transfer_fail(transfer,
                  "%s: the token would cross the network in clear text: write https://HOST:PORT, "
                  "or go through ssh -L",
                  transfer->where);
    return CURL_PREREQFUNC_ABORT;
}

static size_t transfer_on_head(char *line, size_t size, size_t count, void *arg) {
    struct transfer *transfer = arg;
    if (line[0] == '\r' || line[0] == '\n')
        transfer->head_ended = transfer_status(transfer) >= 200;
    return size * count;
}

static void set_usual(struct transfer *transfer) {
    CURL *curl = transfer->curl;
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, transfer->detail);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_PROXY, "");
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, (long)HTTP_CALL_SECONDS);
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, (long)HTTP_CALL_SECONDS);
    curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, transfer_on_head);
    curl_easy_setopt(curl, CURLOPT_HEADERDATA, (void *)transfer);
}

static void begin_libcurl(void) {
    ASSERT(curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK);
}

bool transfer_open(struct transfer *transfer, const char *where,
                   const struct http_request *request) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, begin_libcurl);
    transfer->where = where;
    transfer->curl = curl_easy_init();
    ASSERT(transfer->curl != NULL);
    set_usual(transfer);
    if (!is_sendable(transfer, request) || !transfer_set_where(transfer) ||
        (transfer->secure && !set_tls(transfer)))
        return false;
    if (request->token != NULL && !transfer->secure && !transfer_is_path(where)) {
        curl_easy_setopt(transfer->curl, CURLOPT_PREREQFUNCTION, on_connected);
        curl_easy_setopt(transfer->curl, CURLOPT_PREREQDATA, (void *)transfer);
    }
    transfer_set_request(transfer, request);
    return true;
}

void transfer_close(struct transfer *transfer) {
    curl_easy_cleanup(transfer->curl);
    curl_slist_free_all(transfer->fields);
}

/* The end. */

unsigned transfer_status(const struct transfer *transfer) {
    long status = 0;
    curl_easy_getinfo(transfer->curl, CURLINFO_RESPONSE_CODE, &status);
    return (unsigned)status;
}

int64_t transfer_length(const struct transfer *transfer) {
    curl_off_t length = -1;
    curl_easy_getinfo(transfer->curl, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
    return length;
}

bool transfer_cut_off(struct transfer *transfer) {
    return transfer_fail(transfer, "%s: %s", transfer->where, transfer->cut_off);
}

/* What the operator should check, by the reason why the connection failed. */
static const char *advice_on(int reason, bool local) {
    switch (reason) {
    case ENOENT: return ": is retort running, and is admin.listen set to this path?";
    case ECONNREFUSED:
        return local ? ": no process listens on this socket: is retort running?"
                     : ": is retort running, and is admin.listen set to this address?";
    case EACCES: return ": only root and retort's own user may connect; try sudo";
    default: return "";
    }
}

static bool tell_unconnected(struct transfer *transfer, int reason) {
    return transfer_fail(transfer, "can't connect to %s: %s%s", transfer->where, strerror(reason),
                         advice_on(reason, transfer_is_path(transfer->where)));
}

/* OpenSSL's number, which stands in what libcurl says: "...error:0A00010B:SSL routines::wrong version number". */
static unsigned long openssl_number(const struct transfer *transfer) {
    const char *at = strstr(transfer->detail, "error:");
    return at != NULL ? strtoul(at + strlen("error:"), NULL, 16) : 0;
}

/* "Recv failure: Connection reset by peer"; NULL: the other side has closed the connection. */
static const char *system_reason(const struct transfer *transfer) {
    const char *at = strstr(transfer->detail, "failure: ");
    return at != NULL ? at + strlen("failure: ") : NULL;
}

static bool tell_tls(struct transfer *transfer) {
    const char *reason = ERR_reason_error_string(openssl_number(transfer));
    if (reason == NULL)
        reason = system_reason(transfer);
    return transfer_fail(transfer, "%s: TLS has failed: %s", transfer->where,
                         reason != NULL ? reason : "the connection has ended");
}

static bool tell_distrust(struct transfer *transfer) {
    long result = X509_V_OK;
    curl_easy_getinfo(transfer->curl, CURLINFO_SSL_VERIFYRESULT, &result);
    return transfer_fail(transfer, "%s: its certificate is not trusted: %s%s", transfer->where,
                         X509_verify_cert_error_string(result),
                         result == X509_V_ERR_HOSTNAME_MISMATCH ||
                                 result == X509_V_ERR_IP_ADDRESS_MISMATCH
                             ? ": write a name that the certificate is for"
                             : ": give the certificate of its authority with --ca-file");
}

static bool tell_handshake(struct transfer *transfer) {
    if (ERR_GET_REASON(openssl_number(transfer)) == SSL_R_WRONG_VERSION_NUMBER)
        return transfer_fail(transfer, "%s does not speak TLS: write %s without https://",
                             transfer->where, transfer->where + sizeof https - 1);
    return tell_tls(transfer);
}

/* An alert about our certificate comes after the handshake in TLS 1.3. */
static bool tell_alert(struct transfer *transfer) {
    unsigned long number = openssl_number(transfer);
    switch (ERR_GET_REASON(number)) {
    case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED:
        return transfer_fail(transfer,
                             "%s demands a client certificate: give --certificate and --key with "
                             "one of an authority in admin.client_ca",
                             transfer->where);
    case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
    case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
    case SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE:
        return transfer_fail(transfer, "%s refused the client certificate: %s", transfer->where,
                             ERR_reason_error_string(number));
    default: return tell_tls(transfer);
    }
}

static bool tell_silence(struct transfer *transfer) {
    curl_off_t ready = 0;
    curl_easy_getinfo(transfer->curl, CURLINFO_PRETRANSFER_TIME_T, &ready);
    if (ready > 0)
        return transfer_fail(transfer, "%s: no answer within %d s", transfer->where,
                             HTTP_CALL_SECONDS);
    return transfer->shaking ? transfer_fail(transfer, "%s: TLS has failed: %s", transfer->where,
                                             strerror(EAGAIN))
                             : tell_unconnected(transfer, EINPROGRESS);
}

static bool tell_broken(struct transfer *transfer, const char *what) {
    const char *reason = system_reason(transfer);
    if (openssl_number(transfer) != 0)
        return tell_alert(transfer);
    if (reason == NULL && !transfer->secure)
        return transfer_cut_off(transfer);
    return transfer_fail(transfer, "%s: can't %s: %s", transfer->where, what,
                         reason != NULL ? reason : "the connection has ended");
}

/* libcurl takes EAGAIN of a Unix socket for a connection that is under way, and finds none. */
bool transfer_must_wait(struct transfer *transfer, CURLcode code) {
    const struct timespec pause = {.tv_nsec = 1000000000 / TRIES_A_SECOND};
    long reason = 0;
    curl_easy_getinfo(transfer->curl, CURLINFO_OS_ERRNO, &reason);
    if (code != CURLE_COULDNT_CONNECT || !transfer_is_path(transfer->where) ||
        (reason != 0 && reason != EAGAIN && reason != ENOTCONN) ||
        transfer->tries++ == HTTP_CALL_SECONDS * TRIES_A_SECOND)
        return false;
    nanosleep(&pause, NULL);
    return true;
}

bool transfer_end(struct transfer *transfer, CURLcode code) {
    long reason = 0;
    curl_easy_getinfo(transfer->curl, CURLINFO_OS_ERRNO, &reason);
    if (transfer->told)
        return false;
    switch (code) {
    case CURLE_OK: return transfer->head_ended || transfer_cut_off(transfer);
    case CURLE_URL_MALFORMAT:
    case CURLE_COULDNT_RESOLVE_HOST: return transfer_check_url(transfer, true);
    case CURLE_COULDNT_CONNECT: return tell_unconnected(transfer, (int)reason);
    case CURLE_OPERATION_TIMEDOUT: return tell_silence(transfer);
    case CURLE_PEER_FAILED_VERIFICATION: return tell_distrust(transfer);
    case CURLE_SSL_CONNECT_ERROR: return tell_handshake(transfer);
    case CURLE_SEND_ERROR: return tell_broken(transfer, "send");
    case CURLE_RECV_ERROR: return tell_broken(transfer, "receive");
    default: return transfer_cut_off(transfer);
    }
}
