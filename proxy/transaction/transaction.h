/*
 * A transaction: one request from its head to its line in the access log.
 *
 *     RECEIVE -> ADMIT -> REQMOD -> LOOKUP -> REQMOD_POSTCACHE -> FETCH -> RESPMOD -> STORE
 *             -> VARIANT -> RESPMOD_POSTCACHE -> TUNNEL -> DELIVER -> LOG
 *
 * The steps stand in one table (transaction.c), each in a file of its own (steps/). A step does what
 * it can and returns the next one, which lies ahead, or STEP_WAIT: then transaction_task runs it
 * again when something has happened. Nothing re-enters: callbacks of input and output store a result and
 * defer the task. A hit jumps from LOOKUP to DELIVER (by way of VARIANT and RESPMOD_POSTCACHE where
 * services are to see it), an error page from anywhere, an answer that a service made from REQMOD
 * to STORE.
 *
 *     transaction_start(host, exchange);          from the client's on_request
 *
 * Memory: one arena a transaction, recycled with it. Threads: the worker's.
 */
#ifndef RETORT_TRANSACTION_TRANSACTION_H
#define RETORT_TRANSACTION_TRANSACTION_H

#include "adapt/chain.h"
#include "client/client.h"
#include "transaction/access_log.h"
#include "transaction/caching.h"
#include "transaction/late.h"
#include "transaction/outcome.h"
#include "transaction/remembered.h"
#include "transaction/request.h"
#include "transaction/response.h"
#include "transaction/steps/deliver.h"
#include "transaction/steps/fetch.h"
#include "transaction/steps/lookup.h"
#include "transaction/steps/store.h"
#include "transaction/steps/tunnel.h"

enum step {
    STEP_RECEIVE,
    STEP_ADMIT,
    STEP_REQMOD,
    STEP_LOOKUP,
    STEP_REQMOD_POSTCACHE,
    STEP_FETCH,
    STEP_RESPMOD,
    STEP_STORE,
    STEP_VARIANT,
    STEP_RESPMOD_POSTCACHE,
    STEP_TUNNEL,
    STEP_DELIVER,
    STEP_LOG,
    STEP_DONE,
    STEP_WAIT, /* not a step: the same one again, later */
};

struct parcels;

/* What all transactions of a worker share; the worker's. */
struct transaction_host {
    struct net_context *net;
    struct mailbox *mailbox;
    struct cache *cache;
    struct disk *disk; /* NULL: there is none */
    struct flights *flights;
    struct origin_places *places;
    struct parcels *parcels;
    struct timer parcels_timer; /* when the next one's time is over */
    struct adapt_set *adapt;    /* the current one */
    struct pool *origins;
    struct access_logs *logs;
    struct list_link active;
    struct transaction *free_list;
    unsigned free_count;
    uint64_t id_prefix, id_next;
    void (*on_end)(void *arg); /* a transaction has ended: a draining worker counts */
    void *on_end_arg;
};

struct patience;

struct transaction {
    unsigned magic;
#define TRANSACTION_MAGIC 0x74a450c7u
    enum step step;
    bool begun; /* more than a hit has: see end_fetch */
    struct transaction_host *host;
    struct net_context *net;
    struct arena arena;
    struct list_link link;
    struct transaction *next_free;
    struct task task;
    struct adapt_set *adapt;         /* referenced */
    const struct settings *settings; /* adapt's */
    struct exchange *exchange;       /* NULL after LOG has let the client go */
    uint64_t number;
    char id[SLICE_HEX + 1]; /* see transaction_id */

    struct outcome outcome;
    struct request request;
    struct caching caching;
    struct lookup lookup;
    struct delivery delivery;

    struct adapt_message message; /* what the chains work on */
    struct adapt_chain *reqmod, *respmod;
    struct outgoing *reqmod_postcache; /* what services behind the cache made of the request for the
                                        * origin; NULL: none */
    struct adapt_mark *seen;           /* by which services before the cache; NULL: by none */
    struct remembered *variant;        /* what they made for all clients; NULL: no such are asked */
    struct late *respmod_postcache;    /* what they make of the response for this client; NULL: none
                                     * was asked */
    struct patience *waiting_page;     /* NULL: none is asked for */
    int64_t expected_length;           /* of the response's body before RESPMOD; -1: not known */

    struct fetch fetch;
    struct response response;
    struct storing storing;
    struct tunnel tunnel;
};

void transaction_start(struct transaction_host *host, struct exchange *exchange);
/* Once its loop is there. */
void transaction_host_init(struct transaction_host *host);
void transaction_host_release(struct transaction_host *host);
/* Ends all that is under way, when a drain has taken too long. */
void transaction_abort_all(struct transaction_host *host);

const char *step_name(enum step step);

/* The steps. */
enum step step_receive(struct transaction *transaction);
enum step step_admit(struct transaction *transaction);
enum step step_reqmod(struct transaction *transaction);
enum step step_lookup(struct transaction *transaction);
enum step step_reqmod_postcache(struct transaction *transaction);
enum step step_fetch(struct transaction *transaction);
enum step step_respmod(struct transaction *transaction);
enum step step_store(struct transaction *transaction);
enum step step_variant(struct transaction *transaction);
enum step step_respmod_postcache(struct transaction *transaction);
enum step step_tunnel(struct transaction *transaction);
enum step step_deliver(struct transaction *transaction);
enum step step_log(struct transaction *transaction);

/* Shared by steps. */

/* Prepares an error page and returns STEP_DELIVER. The reason is static text for people. */
enum step transaction_fail(struct transaction *transaction, unsigned status, const char *reason);
/* The same where the client may not have what it asks for: 403, and denied in the log. */
enum step transaction_deny(struct transaction *transaction, const char *reason);
/* Likewise of where the request would go (net/reach.h). */
enum step transaction_deny_destination(struct transaction *transaction, const char *reason);
/* The number as text, written when it is first asked for. */
const char *transaction_id(struct transaction *transaction);
/* The chains of services that it went through, in their order; returns how many. */
unsigned transaction_chains(const struct transaction *transaction,
                            const struct adapt_chain *chains[ACCESS_CHAINS]);
/* Of a stored response, what goes to the client: itself, or a variant of it; NULL: none is stored.
 */
static inline struct object *transaction_shown(const struct transaction *transaction) {
    return transaction->variant != NULL && transaction->variant->made != NULL
               ? transaction->variant->made
               : transaction->lookup.object;
}

/* Copies what the request's head points to, before the client's read buffer is used again. */
void transaction_own_request(struct transaction *transaction);
/* The request's body becomes the transaction's; once. */
void transaction_take_body(struct transaction *transaction);
/* Settles by which policy the cache works, and applies what it says of the request. False: the
 * cache has no part. */
bool transaction_begin_policy(struct transaction *transaction);
/* By which what is stored for this URL under that policy is found. */
void transaction_take_name(struct transaction *transaction);
/* Does the origin get no more of the query than what the name has? */
bool transaction_sends_name(const struct transaction *transaction);
/* From here on the request is for the URL that its name has, unless the policy sends the whole one:
 * what the policy takes out could else decide what others get. */
void transaction_ask_by_name(struct transaction *transaction);
/* The response is there: policies for what it is join in. */
void transaction_review_policy(struct transaction *transaction, const struct http_head *response);
void transaction_strip_cookies(const struct transaction *transaction, struct http_head *response);
/* Puts an object into the index; the outcome for those who wait for it. */
enum flight_outcome transaction_insert(struct transaction *transaction, struct object *object);
/* One without Date is of when it came (RFC 9110 §6.6.1). */
void transaction_date_response(struct transaction *transaction);
/* Out of the cache, in memory and on disk. */
void transaction_drop(struct transaction *transaction, struct object *object);
/* Notes what has been purged by now. */
void transaction_note_moment(struct transaction *transaction);
unsigned transaction_max_variants(const struct transaction *transaction);
struct freshness_rules transaction_freshness_rules(const struct transaction *transaction);
/* Whom the URL names is in Host too, whatever has been written there, `host` (RFC 9112 §3.2.2). */
void transaction_show_host(struct transaction *transaction, struct slice host);
/* Takes the URL that is asked for into url_text and url, normalised. */
bool transaction_set_url(struct transaction *transaction, const struct url *url);
/* The same into a place of the caller's. */
bool transaction_write_url(struct transaction *transaction, const struct url *from, struct url *url,
                           struct slice *text, struct slice *authority);
/* "host:port", with brackets where the host needs them; port 0: only the host. */
struct slice transaction_authority(struct transaction *transaction, struct slice host,
                                   uint16_t port);
/* The client's address as text, which outlives the client. */
struct slice transaction_client_ip(struct transaction *transaction);
/* Is the request for a service that changes requests? */
bool transaction_wants_reqmod(struct transaction *transaction);
/* To the origin, by way of services that change requests behind the cache where there are any. */
enum step transaction_ask_origin(struct transaction *transaction);
/* To the client, by way of services that change responses behind the cache where there are any. */
enum step transaction_answer(struct transaction *transaction);
/* May a service behind the cache want the response, whatever it will turn out to be? */
bool transaction_may_adapt_late(struct transaction *transaction);
/* The message that services are asked about, without a body yet; what is not for them goes from the
 * heads. `response` is NULL where they are asked about the request. */
void transaction_begin_message(struct transaction *transaction, struct adapt_message *message,
                               struct http_head *request, struct http_head *response);
struct http_head *transaction_copy_request(struct transaction *transaction);
/* The response to a HEAD is not for services; of what a GET would bring only they know some things.
 */
void transaction_leave_untold(struct transaction *transaction, struct http_head *response,
                              struct icap_service *const *services, unsigned count);
/* The bits of the rules (match/rules.h) that the request is for: whatever content type they
 * want; those that want none; those that the response, which is there, fits. */
const uint64_t *transaction_rules(struct transaction *transaction);
const uint64_t *transaction_request_rules(struct transaction *transaction);
const uint64_t *transaction_response_rules(struct transaction *transaction,
                                           const struct http_head *response);
/* The leader tells those who follow how its fetch came out. */
void transaction_land(struct transaction *transaction, enum flight_outcome outcome);
/* What was to be stored has arrived, or will not: an object of unknown length enters the index now
 * that it is whole, one that broke off leaves it. Harmless before and after. */
void transaction_settle(struct transaction *transaction);
/* A list field that may stand in several lines, as one value (RFC 9110 §5.3); empty when absent. */
struct slice transaction_joined_value(struct transaction *transaction, const struct http_head *head,
                                      enum http_name id);
/* Whom a response to this request is for. */
enum object_scope transaction_scope(const struct transaction *transaction);
/* The status line and the fields, in the arena. */
struct slice transaction_write_head(struct transaction *transaction, const struct http_head *head);
/* Puts the fields of a response without a body, which is about the stored one, over those of
 * `object`, which becomes the outcome; says whether that is in the index. False: they do not go
 * together into one head, and nothing has changed. */
bool transaction_refresh(struct transaction *transaction, const struct http_head *news,
                         enum flight_outcome *outcome);
/* The response to a HEAD tells something of what is stored. */
void transaction_learn_from_head(struct transaction *transaction);
/* Does the stored part, `object`, hold what the request asks for? */
bool transaction_part_will_do(struct transaction *transaction);
/* Has the request to the origin ask for what `part` lacks to be whole, where that can be. */
bool transaction_complete_part(struct transaction *transaction, struct http_head *head);
/* Is the response to that request what was asked for? */
bool transaction_part_completes(const struct transaction *transaction);
/* The response is a part: joins it with the stored one, and with `keep` makes it ready for being
 * stored; false: it is not to be stored. */
bool transaction_take_part(struct transaction *transaction, bool keep);
/* The response is not stored: neither may `part` stay if it shows that there are other bytes now.
 */
void transaction_drop_part(struct transaction *transaction);
/* Makes of the reply, a stored response, the parts of it that the request asks for. */
void transaction_choose_ranges(struct transaction *transaction);
/* Age and Cache-Status, as the answer to this request has them. */
struct slice transaction_cache_fields(struct transaction *transaction);
/* The URL that a field of the response refers to, absolute and normalised; empty: none. */
struct slice transaction_resolve(struct transaction *transaction, struct slice reference);
/* The request as if it were a GET: what is stored is the answer to one. */
const struct http_head *transaction_as_get(struct transaction *transaction);
/* Drops what the request's success has made stale (RFC 9111 §4.4). */
void transaction_invalidate(struct transaction *transaction);
/* Turns what the origin's response says of its own URLs into the client's view of them. */
void transaction_reverse_map(struct transaction *transaction);
/* An answer that Retort makes itself, as if an origin had sent it. */
bool transaction_is_internal(const struct transaction *transaction);
void transaction_answer_internally(struct transaction *transaction);

#endif
