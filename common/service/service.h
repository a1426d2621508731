/*
 * The service interface: an adaptation service (ad remover, gzip, gray, inject, your own) that is
 * written with it runs in any host, such as c-icap (icap-services/host-c-icap/). A service does not
 * depend on its host: it sees heads, body bytes and a client's address, and never blocks.
 *
 * A service is a table of functions, `struct service_ops`, which SERVICE_DEFINE makes known by the
 * service's name. One process can hold several services, and several instances of one of them with
 * different settings. An exchange is one HTTP request or response on its way through an instance.
 * The host calls, in this order:
 *
 *     start                   once: the settings are complete. Loads lists, compiles patterns.
 *       begin                 per exchange: the heads are known. NULL: not interested, pass it on.
 *       preview               the first bytes of the body, perhaps none: SKIP, ADAPT or HOLD
 *       push* finish          body bytes in; finish after the last one of a body that is whole
 *       verdict               only after HOLD: asked again after each push, finish and ready
 *       pull*                 body bytes out, as soon as the verdict is ADAPT
 *       idle*                 optional: the host has no more body bytes for the moment
 *       ready                 the descriptor the service waits for is ready, or its deadline passed
 *       end                   always, once; without finish before it when the body broke off
 *     stop                    once
 *
 * Beside the exchanges a service can have a timer, watch descriptors of its own, and be told what
 * happens in a proxy: see "Events outside of exchanges" below.
 *
 * Verdicts
 *   SKIP   the message passes unchanged (ICAP: 204). After HOLD a host that kept no copy can get
 *          the pushed bytes back with pull. After a SKIP from preview nothing can be pulled,
 *          because nothing was pushed.
 *   ADAPT  exchange->head is complete. The host sends it, and then the bytes that pull gives.
 *          The host removes Content-Length (RFC 9110 §8.6), since the size may change, and puts
 *          exchange->body_length there when the service has set it. A service that changes the head
 *          alone sets exchange->keeps_body: push and pull are not called then. A service that has
 *          taken a part of the body before can't: the host may have no copy of that part.
 *   HOLD   the service needs more of the body to decide. The host keeps the head back.
 *
 * A worked example: a service that upper-cases text.
 *
 *     struct upper {
 *         unsigned magic;
 *     #define UPPER_MAGIC 0x75707072u
 *         struct spool out;
 *         bool finished;
 *     };
 *
 *     static void *upper_begin(void *service, struct service_exchange *exchange) {
 *         struct slice type = http_head_value(exchange->head, HTTP_CONTENT_TYPE);
 *         if (!slice_starts_with_nocase(type, SLICE("text/plain")) || !exchange->has_body)
 *             return NULL;
 *         struct upper *upper;
 *         ALLOC_OBJ(upper, UPPER_MAGIC);
 *         spool_init(&upper->out);
 *         return upper;
 *     }
 *     static enum service_verdict upper_preview(void *state, struct slice body, bool complete) {
 *         return SERVICE_ADAPT;
 *     }
 *     static size_t upper_push(void *state, struct slice body) {
 *         ... takes at most what fits 64 KB in `out`; returns how many bytes it took
 *     }
 *     static void upper_finish(void *state) { ... upper->finished = true; }
 *     static enum service_flow upper_pull(void *state, char *out, size_t capacity, size_t *got) {
 *         *got = spool_read(&upper->out, out, capacity);
 *         return upper->finished && upper->out.length == 0 ? SERVICE_DONE : SERVICE_FLOW;
 *     }
 *     static void upper_end(void *state) { ... spool_release, FREE_OBJ }
 *
 *     SERVICE_DEFINE(upper) = {
 *         .version = SERVICE_VERSION, .name = "upper", .description = "text in capitals",
 *         .points = SERVICE_RESPONSE, .preview_size = 1024,
 *         .begin = upper_begin, .preview = upper_preview, .push = upper_push,
 *         .finish = upper_finish, .pull = upper_pull, .end = upper_end,
 *     };
 *
 * Rules
 *   Time      No call blocks. A service that waits for something sets exchange->wait to a
 *             descriptor and a deadline in milliseconds of CLOCK_MONOTONIC; the host calls `ready`
 *             when the descriptor is ready or the deadline has passed. Without a wait the host
 *             calls again when there is input or room; a service that takes no input, gives no
 *             output and waits for nothing has a bug, and the host aborts the exchange.
 *   Memory    Bounded: push may take fewer bytes than offered, also none. The host offers the rest
 *             later. So a slow receiver slows the sender down.
 *   Ownership Slices given to a service live until the call returns. Heads, the client address and
 *             memory of exchange->arena live until `end`. Values put into exchange->head must be
 *             literals or in memory of exchange->arena.
 *   Threads   start and stop run alone. Everything between runs in many threads at once, with
 *             `service` shared (so it is read-only after start) and the state of an exchange in one
 *             thread at a time. A host may start once and fork afterwards, so start must not make
 *             threads or connections. Variable data is in the struct that start returns or in an
 *             exchange's state, never in a static variable, which all instances would share. A
 *             host that has loaded a service with dlopen never unloads it, because code of the
 *             service may have to run when a thread ends.
 *   Opting out  A service that wants to hear no more of a transaction sets exchange->opt_out, in any
 *             call. This exchange ends as its verdict says; the module is left out afterwards.
 *   Errors    Flow and verdict report the end and errors; a length never does. When a service can't
 *             adapt a message, it calls service_failed before its verdict, and passes the message
 *             on unchanged. Caches may keep such a result for some seconds only. SERVICE_ABORT is
 *             for a body of which a part has been sent: the host must not complete that body.
 */
#ifndef RETORT_SERVICE_SERVICE_H
#define RETORT_SERVICE_SERVICE_H

#include "base/arena.h"
#include "base/log.h"
#include "http/head.h"
#include "service/event.h"
#include "service/option.h"

#include <sys/socket.h>

enum { SERVICE_VERSION = 4, SERVICE_NOTICE = 480 };

/* The messages that a service adapts: RFC 3507 §3.1 (REQMOD) and §3.2 (RESPMOD). */
enum service_point { SERVICE_REQUEST = 1, SERVICE_RESPONSE = 2 };

enum service_verdict { SERVICE_SKIP, SERVICE_ADAPT, SERVICE_HOLD };

enum service_flow {
    SERVICE_FLOW,  /* `got` bytes, perhaps 0: more when there is more input or after ready */
    SERVICE_DONE,  /* `got` bytes, and the body is complete */
    SERVICE_PASS,  /* `got` bytes; the host passes the rest on without the service */
    SERVICE_ABORT, /* the body can't be completed */
};

#define SERVICE_LENGTH_UNKNOWN UINT64_MAX

/* The descriptor and the deadline that a service waits for. fd -1: it waits for nothing. */
struct service_wait {
    int fd;
    short events;     /* as in poll(2) */
    int64_t deadline; /* milliseconds of CLOCK_MONOTONIC */
};

struct service_content_calls;

/* The functions and data that a host gives to one instance of a service. A service calls
 * service_log and service_count. */
struct service_host {
    /* For the host alone: it tells the host which instance logs or counts. */
    void *context;
    /* Writes one line for the operator. */
    void (*log)(void *context, enum log_level level, const char *text);
    /* Adds one to the counter of that index in service_ops.counters. */
    void (*count)(void *context, unsigned counter);
    /* The service's version for caches (ICAP: the ISTag, RFC 3507 §4.7) is made of the settings
     * and of this number. If the results depend on other data, such as lists, start mixes that data
     * into it. */
    uint64_t fingerprint;
    /* start may write a line for the operator of the proxies: which settings can't be applied.
     * ICAP: X-Operator-Notice in the answer to OPTIONS. Bytes other than visible ASCII are sent as
     * "?". */
    char notice[SERVICE_NOTICE];
    /* start may set the longest time, in milliseconds, that an exchange waits for something other
     * than the host. A client of the service should wait longer. 0: not known. ICAP:
     * X-Answers-Within in the answer to OPTIONS. */
    uint64_t answers_within;
    /* For service_watch; NULL: this host watches no descriptors for services. */
    bool (*watch)(void *context, int fd, short events);
    /* What service/content.h does with it; NULL: the host has no cache. */
    const struct service_content_calls *content;
};

struct service_exchange {
    unsigned magic;
#define SERVICE_EXCHANGE_MAGIC 0x53764578u
    enum service_point point;
    const struct http_head *request; /* always there; some ICAP clients leave fields out */
    struct http_head *head;          /* the one to change: of the request, or of the response */
    bool has_body;
    struct slice client_ip;   /* as text; empty when the host does not know it */
    struct slice client_user; /* its name (X-Client-Username); empty when not known */
    struct slice arguments;   /* of the URI the service was called by: service/arguments.h */
    /* The same as in the logs of the proxy and in X-Transaction-ID: visible ASCII, and the same for
     * the request and for its response. It is the proxy's own word: what a client sends in a field
     * of that name does not count. Empty when the host does not know it. */
    struct slice transaction_id;
    struct arena *arena;
    const struct service_host *host;
    /* The request is one that a service has made (service/content.h); no client asks for it. */
    bool of_service;
    const void *requester; /* for the host alone: whose request it is; NULL: it does not say */

    /* Set by the service. */
    struct service_wait wait;
    /* A second descriptor that it waits for at the same time, if wait.fd is not -1. `ready` is
     * called when one of both is ready; the deadline is that of `wait`. fd -1: there is none. */
    struct service_wait also;
    uint64_t body_length; /* of the adapted body when known at ADAPT, else SERVICE_LENGTH_UNKNOWN */
    bool keeps_body;      /* at ADAPT: the head alone was changed */
    /* At ADAPT of a request: the head of a response that the client gets at once, without a request
     * to the origin (RFC 3507 §3.1, request satisfaction). pull gives its body, of body_length
     * bytes; 0: it has no body, as after a HEAD. The host drops the body of the request. */
    const struct http_head *answer;
    /* The service wanted to adapt and could not, because a helper, memory or its lists were
     * missing. The host counts this, and tells the client, so that nobody keeps the result for
     * long. Do not set it for an error of the message itself, such as a picture that can't be
     * decoded: that is the same each time. After ADAPT it is only counted, because the head has
     * been sent. */
    bool failed;
    const char *failed_because; /* a word for the client's log, such as "timeout"; NULL: none */
    /* For requests, set by begin: for this many seconds the result may be used again for a request
     * with the same bytes, while the fingerprint is the same (RFC 3507 §5). So the result must
     * depend on nothing else. 0: the host has to ask the service each time. */
    uint64_t lifetime;
    /* It wants to hear no more of this transaction. The host leaves the module out at all later
     * points of it, also in other sections of the configuration, and does not call `logged` for it.
     * A transaction is all that a client's request leads to; by ICAP, where each exchange stands
     * alone, it is the exchange. Set it for reasons of the URL, not of the client, if the module is
     * also asked about responses before they are stored: all clients get those. */
    bool opt_out;
};

/* A text that differs when the code does, from whoever compiles the service, such as a checksum of its
 * sources: -DSERVICE_BUILD='"1f0c..."'. What older code made is not used any more where the text is
 * another. */
#ifndef SERVICE_BUILD
#define SERVICE_BUILD NULL
#endif

struct service_ops {
    unsigned version; /* SERVICE_VERSION */
    const char *name; /* in URLs, logs and settings: the one given to SERVICE_DEFINE */
    const char *description;
    /* Which code it is, for the service's version: SERVICE_BUILD. NULL: the host takes the build ID of
     * the file, which differs where one service is built into several. */
    const char *build;
    unsigned points;                      /* enum service_point, or-ed */
    bool wants_client_ip;                 /* ICAP: X-Include: X-Client-IP */
    unsigned preview_size;                /* bytes of the body that it wants in the preview */
    size_t settings_size;                 /* of the struct that `options` fill (option.h) */
    const struct service_option *options; /* ends with a NULL name; NULL: none */
    const char *const *counters;          /* ends with NULL; NULL: none */

    /* Returns NULL and a sentence in `error` when the settings can't be used. If `start` is NULL,
     * `service` is NULL in the calls below. */
    void *(*start)(const void *settings, struct service_host *host, char *error, size_t error_size);
    void (*stop)(void *service);

    void *(*begin)(void *service, struct service_exchange *exchange);
    /* `complete`: `body` is the whole body. An empty, incomplete preview means that the host got no
     * preview: then the service decides by the head alone, or returns HOLD. */
    enum service_verdict (*preview)(void *state, struct slice body, bool complete);
    size_t (*push)(void *state, struct slice body);
    void (*finish)(void *state);
    enum service_verdict (*verdict)(void *state);
    enum service_flow (*pull)(void *state, char *out, size_t capacity, size_t *got);
    /* May be NULL. The host has no more body bytes at the moment. So a service that keeps bytes
     * back, to compress them better for example, may release them. The host pulls afterwards. */
    void (*idle)(void *state);
    void (*ready)(void *state);
    void (*end)(void *state);

    /* Events outside of exchanges. Each may be NULL. */

    /* `timer` is called soon after `start`, when the host runs, and then again timer_period
     * milliseconds after it has returned; 0: not again. The shortest period is one millisecond. */
    unsigned timer_period;
    void (*timer)(void *service);
    /* What service_watch has named is ready; `events` as in poll(2), also POLLERR and POLLHUP. It may
     * be called once more than there is something to read. It needs `timer`, which is the first that
     * can watch a descriptor. */
    void (*descriptor)(void *service, int fd, short events);
    /* A request is over. The slices live until the call returns. */
    void (*logged)(void *service, const struct service_log_line *line);
    /* A connection of a client has ended. */
    void (*closed)(void *service, const struct service_connection *connection);
    /* DNS has answered for `name`, in lower case. The service may change the order of the addresses
     * and remove some: it moves those that shall be used to the front, the first one first, and
     * returns how many they are. 0: the name has no address for the proxy. An address that DNS did
     * not give is not used. The result is used until the answer's time to live is over. While one of
     * IPv4 and IPv6 is still asked for, it may be called with the other's addresses alone, and then
     * again with all; if the second answer is late, the proxy begins with what it has. Names of a
     * hosts file and written addresses do not come here. */
    size_t (*resolved)(void *service, struct slice name, struct sockaddr_storage *addresses,
                       size_t count);
};

/* Defines the ops of a service, at the end of its file: SERVICE_DEFINE(upper) = {...}; The name is
 * lower-case letters and digits. Two kinds of hosts find the ops by it: a host that is linked with
 * the service by service_find("upper"), and a host that loads it with dlopen by the symbol
 * "retort_service_upper" (SERVICE_SYMBOL_PREFIX). */
#define SERVICE_DEFINE(service)                                                                    \
    extern const struct service_ops retort_service_##service;                                      \
    static const struct service_ops *const service_entry_##service                                 \
        __attribute__((used, section("retort_services"))) = &retort_service_##service;             \
    const struct service_ops retort_service_##service __attribute__((visibility("default")))
#define SERVICE_SYMBOL_PREFIX "retort_service_"

/* Find the services that are linked into this program or module. Their order is not defined.
 * service_next(NULL) is the first. NULL: there is no such service, or none after `previous`. */
const struct service_ops *service_find(const char *name);
const struct service_ops *service_next(const struct service_ops *previous);

static inline void service_log(const struct service_host *host, enum log_level level,
                               const char *text) {
    host->log(host->context, level, text);
}

static inline void service_count(const struct service_host *host, unsigned counter) {
    host->count(host->context, counter);
}

/* Notes that the service could not adapt; `because` is a literal of lower-case letters. */
static inline void service_failed(struct service_exchange *exchange, const char *because) {
    exchange->failed = true;
    exchange->failed_because = because;
}

static inline void service_wait_none(struct service_exchange *exchange) {
    exchange->wait = exchange->also = (struct service_wait){.fd = -1};
}

/* Watches a descriptor until further notice: `descriptor` is called while one of `events` is there,
 * so it has to take all that made it ready, or the host calls it again at once. `events` is POLLIN,
 * POLLOUT or both, and takes the place of what it was; 0: no longer. Call it in `timer` and in
 * `descriptor` only, and with 0 before the descriptor is closed.
 * False: it is called elsewhere, the host watches none for services, the descriptor is closed or of
 * a kind that is always ready, such as a file, or the service watches as many as it may. */
static inline bool service_watch(const struct service_host *host, int fd, short events) {
    return host->watch != NULL && host->watch(host->context, fd, events);
}

/* FNV-1a, for fingerprints. */
static inline uint64_t service_fingerprint(uint64_t seed, const void *data, size_t length) {
    const unsigned char *bytes = data;
    for (size_t i = 0; i < length; i++)
        seed = (seed ^ bytes[i]) * 0x100000001b3u;
    return seed;
}
#define SERVICE_FINGERPRINT_SEED 0xcbf29ce484222325u

/* Milliseconds of CLOCK_MONOTONIC. */
int64_t service_now(void);

/* Has the service functions for events outside of exchanges, which a host may not have? */
bool service_has_events(const struct service_ops *ops);

#endif
