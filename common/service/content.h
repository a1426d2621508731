/*
 * The content of the cache, for services in a host that has one: look up what is stored, fetch,
 * validate, set how long it stays fresh, delete, inject and read objects.
 *
 * An object is named by its URL, as a client would ask for it. The host normalises it, and leaves out
 * what does not matter by the policies of the operator, so all spellings of one URL are one name. A
 * URL can have several variants (RFC 9111 §4.1): the first one is number 0.
 *
 * An operation ends with an answer, and then its descriptor is readable. No call waits. So a service
 * waits for an operation inside an exchange:
 *
 *     exchanged->operation = service_content_query(host, url, 0);
 *     if (exchanged->operation == NULL) ...                no cache here, or too many under way
 *     exchange->wait = (struct service_wait){
 *         .fd = service_content_descriptor(exchanged->operation),
 *         .events = POLLIN, .deadline = service_now() + 1000};
 *     ...                                                  `ready` is called
 *     const struct service_content_answer *answer = service_content_answer(operation);
 *     if (answer == NULL) ...                              it is still under way
 *     if (answer->status == SERVICE_CONTENT_DONE) ... answer->size, answer->fresh_for ...
 *     service_content_close(&exchanged->operation);
 *
 * or outside of one, in `timer` or `descriptor`:
 *
 *     service_watch(host, service_content_descriptor(operation), POLLIN);
 *
 * An object injected in pieces, and one read in parts:
 *
 *     operation = service_content_inject_start(host, url, 60, SLICE("HTTP/1.1 200 OK\r\n"
 *                     "Content-Type: text/plain\r\n\r\n"), SERVICE_LENGTH_UNKNOWN);
 *     size_t took = service_content_inject_body(operation, piece);    less: see the answer
 *     service_content_inject_done(operation);                         then wait for the answer
 *
 *     operation = service_content_read_start(host, url, 0);           wait for the answer, its head
 *     while ((flow = service_content_read_part(operation, buffer, sizeof buffer, &got)) ==
 *            SERVICE_CONTENT_BYTES)
 *         ... got bytes ...                            WAIT: wait for the descriptor again
 *
 * Units      Bytes, and seconds.
 * Limits     The operator bounds the operations of a service that are under way or not closed
 *            (service.content_operations), the bytes of an object that is injected or read whole
 *            (service.content_object), and the bytes that all its operations hold
 *            (service.content_memory). What is beyond them is refused, and counted. A fetch that
 *            takes longer than service.content_timeout fails.
 * Done       DONE of a change is what it says: clients that ask from now on meet the change, and a
 *            restart does not undo it. FAILED after a change says in `why` what is certain.
 * Fetching   A fetch is a request like one of a client: the same rules say what is allowed, where it
 *            may go, and what services do with it. With an exchange it is a request of the client
 *            of that exchange, who may have nothing fetched that it may not fetch itself. Without
 *            one it is a request of the service, from the address service.fetch_as. Services see it
 *            as exchange->of_service, and a fetch with such an exchange is refused: so no service
 *            makes fetches of fetches without an end. A service that remembers URLs for later looks
 *            at of_service itself.
 * Ownership  The operation is the caller's until service_content_close, also when it has ended. What
 *            is passed in is copied, the answer and its slices live until the close. Close each
 *            operation: of an exchange, in `end`; all others, in `stop`. What is open after `stop`
 *            is closed by the host, and named in the log.
 * Closing    The operation may be under way: a fetch is broken off as if its client had left; a
 *            change may happen or not.
 * Threads    An operation belongs to one thread at a time. It may begin in any call between `start`
 *            and `stop`; in `start` there is no cache yet.
 */
#ifndef RETORT_SERVICE_CONTENT_H
#define RETORT_SERVICE_CONTENT_H

#include "service/service.h"

struct service_content;

enum service_content_status {
    SERVICE_CONTENT_DONE,
    SERVICE_CONTENT_NOT_STORED, /* nothing is stored under that name, or not that variant */
    SERVICE_CONTENT_REFUSED,    /* a limit, a rule, or something that is no URL or no response */
    SERVICE_CONTENT_FAILED,
};

struct service_content_answer {
    enum service_content_status status;
    const char *why;  /* a sentence without a full stop; empty after DONE */
    struct slice url; /* the name of the object; empty: there is none */
    uint64_t objects; /* variants that there were; after a fetch 1 if it is stored now */
    /* After a fetch: of the answer to it. Else of the object, of query, read and inject. */
    unsigned http_status;
    struct slice result; /* after a fetch: as in the access log: "HIT", "MISS", ... */
    struct slice state;  /* "fresh", "stale", "arriving", "failed" or "banned" */
    uint64_t size;       /* bytes of the body */
    int64_t age;
    int64_t fresh_for; /* less than 0: it is stale since then */
    int64_t stored;    /* when, seconds since 1970 */
    uint64_t hits;
    bool pinned, on_disk;
    struct slice vary; /* a line for each field of a request that selects this variant */
    struct slice
        head; /* of the stored response: status line and field lines, without an empty one */
    struct slice body; /* after service_content_read */
};

/* Begins an operation. NULL: the host has no cache, or the service has too many operations. */

/* What is stored. *answer says how many variants there are, and describes that one. */
struct service_content *service_content_query(const struct service_host *host, struct slice url,
                                              unsigned variant);
/* Gets the URL as a client would: from the cache, or from its origin into the cache. `fields`: field
 * lines for the request, each with its CRLF; empty: none. `exchange`: see Fetching; NULL: the
 * service asks for itself. It ends when the whole response has come. */
struct service_content *service_content_fetch(const struct service_host *host, struct slice url,
                                              struct slice fields,
                                              const struct service_exchange *exchange);
/* The same, and the origin is asked in any case whether what is stored is still right (RFC 9111
 * §4.3). */
struct service_content *service_content_validate(const struct service_host *host, struct slice url,
                                                 struct slice fields,
                                                 const struct service_exchange *exchange);
/* All variants are fresh for so many seconds from now on. 0: they are stale from now on. */
struct service_content *service_content_expire(const struct service_host *host, struct slice url,
                                               int64_t seconds);
/* Deletes all variants. */
struct service_content *service_content_delete(const struct service_host *host, struct slice url);
/* Keeps all variants in memory whatever else is evicted, or no longer. */
struct service_content *service_content_pin(const struct service_host *host, struct slice url,
                                            bool pinned);

#define SERVICE_CONTENT_BY_HEAD INT64_C(-1)

/* Stores a response that nobody has fetched, for all requests of the URL. `head` is a status line
 * and field lines, with the empty line. `lifetime`: seconds that it is fresh;
 * SERVICE_CONTENT_BY_HEAD: its head says that, and whether it may be stored at all. */
struct service_content *service_content_inject(const struct service_host *host, struct slice url,
                                               int64_t lifetime, struct slice head,
                                               struct slice body);
/* The same in pieces. Nobody gets the object before service_content_inject_done; without it nothing
 * is stored. `length` SERVICE_LENGTH_UNKNOWN: its end says it. */
struct service_content *service_content_inject_start(const struct service_host *host,
                                                     struct slice url, int64_t lifetime,
                                                     struct slice head, uint64_t length);
/* Returns how many of the bytes were taken. Fewer than there are: it can't be done, and the answer
 * says why. */
size_t service_content_inject_body(struct service_content *operation, struct slice bytes);
void service_content_inject_done(struct service_content *operation);

/* Reads a variant whole: answer->head, answer->body. An object of more bytes than `most`, or than the
 * operator allows, is refused. */
struct service_content *service_content_read(const struct service_host *host, struct slice url,
                                             unsigned variant, uint64_t most);
/* The same in parts, which have no limit: first comes the answer, without a body. */
struct service_content *service_content_read_start(const struct service_host *host,
                                                   struct slice url, unsigned variant);

enum service_content_flow {
    SERVICE_CONTENT_WAIT,   /* the descriptor says when to ask again */
    SERVICE_CONTENT_BYTES,  /* *got of them, at least one */
    SERVICE_CONTENT_END,    /* all bytes were read */
    SERVICE_CONTENT_BROKEN, /* there will be no more, although there should be */
};

enum service_content_flow service_content_read_part(struct service_content *operation, char *out,
                                                    size_t capacity, size_t *got);

/* Readable when there is an answer, and later while service_content_read_part has something to say.
 * It belongs to the operation. */
int service_content_descriptor(const struct service_content *operation);
/* NULL: it is under way. */
const struct service_content_answer *
service_content_answer(const struct service_content *operation);
/* *operationp NULL: nothing happens. */
void service_content_close(struct service_content **operationp);

/* For hosts, from here on. A host that has a cache gives struct service_host a table of functions,
 * and its operations begin with struct service_content. */

enum service_content_kind {
    SERVICE_CONTENT_QUERY,
    SERVICE_CONTENT_FETCH,
    SERVICE_CONTENT_VALIDATE,
    SERVICE_CONTENT_EXPIRE,
    SERVICE_CONTENT_DELETE,
    SERVICE_CONTENT_PIN,
    SERVICE_CONTENT_INJECT,
    SERVICE_CONTENT_READ,
    SERVICE_CONTENT_KINDS,
};

struct service_content_order {
    enum service_content_kind kind;
    struct slice url;
    unsigned variant;
    int64_t seconds;         /* of expire and inject */
    bool pinned;             /* of pin */
    bool whole;              /* of inject and read: all at once */
    struct slice head, body; /* of inject; of fetch: field lines */
    uint64_t length;         /* of inject: of the body; of read: the most that it may have */
    const struct service_exchange *exchange;
};

struct service_content_calls {
    /* `context` is that of struct service_host. */
    struct service_content *(*start)(void *context, const struct service_content_order *order);
    size_t (*give)(struct service_content *operation, struct slice bytes);
    void (*done)(struct service_content *operation);
    enum service_content_flow (*take)(struct service_content *operation, char *out, size_t capacity,
                                      size_t *got);
    void (*close)(struct service_content *operation);
};

struct service_content {
    unsigned magic;
#define SERVICE_CONTENT_MAGIC 0x53764374u
    const struct service_content_calls *calls;
    int descriptor;
    /* NULL: it is under way. */
    const struct service_content_answer *_Atomic answer;
};

#endif
