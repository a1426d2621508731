/*
 * A transaction: one request from its head to its line in the access log.
 *
 *     RECEIVE -> ADMIT -> REQMOD -> LOOKUP -> REQMOD_POSTCACHE -> FETCH -> RESPMOD -> STORE
 *             -> VARIANT -> RESPMOD_POSTCACHE -> TUNNEL -> DELIVER -> LOG
 *
 * The steps stand in one table (transaction.c), each in a file of its own (steps/). A step does
 * what it can and returns the next one, which lies ahead, or STEP_WAIT: then transaction_task runs
 * it again when something has happened. Nothing re-enters: callbacks of input and output store a
 * result and defer the task. A hit jumps from LOOKUP to DELIVER (by way of VARIANT and
 * RESPMOD_POSTCACHE where services are to see it), an error page from anywhere, an answer that a
 * service made from REQMOD to STORE.
 *
 *     transaction_start(host, exchange);          from clients.on_request
 *
 * Memory: one arena a transaction, recycled with it. Threads: the worker's.
 */
#ifndef RETORT_TRANSACTION_TRANSACTION_H
#define RETORT_TRANSACTION_TRANSACTION_H

#include "adapt/chain.h"
#include "client/exchange.h"
#include "transaction/access_log.h"
#include "transaction/adapted_variant.h"
#include "transaction/caching.h"
#include "transaction/outcome.h"
#include "transaction/postcache.h"
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

struct waiting_downloads;

/* What all transactions of a worker share; the worker's. */
struct transaction_host {
    struct net_context *net;
    struct mailbox *mailbox;
    struct cache *cache;
    struct disk *disk; /* NULL: there is none */
    struct shared_fetches *shared_fetches;
    struct origin_places *places;
    struct waiting_downloads *waiting_downloads;
    struct timer waiting_downloads_timer; /* when the next one expires */
    struct adapt_set *adapt;              /* the current one */
    struct pool *origins;
    struct access_logs *logs;
    struct list_link active;
    struct transaction *free_list;
    unsigned free_count;
    uint64_t id_prefix, id_next;
    void (*on_end)(void *arg); /* a transaction has ended: a draining worker counts */
    void *on_end_arg;
};

struct waiting_page;

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
    struct reqmod_postcache
        *reqmod_postcache;           /* what services behind the cache made of the request for the
                                        * origin; NULL: none */
    struct adapt_mark *seen;         /* by which services before the cache; NULL: by none */
    struct adapted_variant *variant; /* what they made for all clients; NULL: no such are asked */
    struct postcache
        *respmod_postcache;            /* what they make of the response for this client; NULL: none
                                     * was asked */
    struct waiting_page *waiting_page; /* NULL: none is asked for */
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
enum step fail_with(struct transaction *transaction, unsigned status, const char *reason);
/* The same where the client may not have what it asks for: 403, and denied in the log. */
enum step fail_denied(struct transaction *transaction, const char *reason);
/* Likewise of where the request would go (net/reach.h). */
enum step fail_destination_denied(struct transaction *transaction, const char *reason);
/* The number as text, written when it is first asked for. */
const char *transaction_id(struct transaction *transaction);
/* The chains of services that it went through, in their order; returns how many. */
unsigned transaction_chains(const struct transaction *transaction,
                            const struct adapt_chain *chains[ACCESS_CHAINS]);
/* Of a stored response, what goes to the client: itself, or a variant of it; NULL: none is stored.
 */
static inline struct object *transaction_shown(const struct transaction *transaction) {
    return transaction->variant != NULL && transaction->variant->object != NULL
               ? transaction->variant->object
               : transaction->lookup.object;
}

/* Copies what the request's head points to, before the client's read buffer is used again. */
void request_own(struct transaction *transaction);
/* The request's body becomes the transaction's; once. */
void request_take_body(struct transaction *transaction);
/* Settles by which policy the cache works, and applies what it says of the request. False: the
 * cache has no part. */
bool caching_begin(struct transaction *transaction);
/* By which what is stored for this URL under that policy is found. */
void caching_take_name(struct transaction *transaction);
/* Does the origin get no more of the query than what the name has? */
bool caching_sends_name(const struct transaction *transaction);
/* From here on the request is for the URL that its name has, unless the policy sends the whole one:
 * what the policy takes out could else decide what others get. */
void caching_ask_by_name(struct transaction *transaction);
/* The response is there: policies for what it is join in. */
void caching_review(struct transaction *transaction, const struct http_head *response);
void caching_strip_cookies(const struct transaction *transaction, struct http_head *response);
/* Puts an object into the index; the outcome for those who wait for it. */
enum shared_fetch_outcome storing_insert(struct transaction *transaction, struct object *object);
/* One without Date is of when it came (RFC 9110 §6.6.1). */
void response_date(struct transaction *transaction);
/* Out of the cache, in memory and on disk. */
void storing_drop(struct transaction *transaction, struct object *object);
/* Notes what has been purged by now. */
void storing_note_moment(struct transaction *transaction);
unsigned caching_max_variants(const struct transaction *transaction);
struct freshness_rules caching_freshness_rules(const struct transaction *transaction);
/* Whom the URL names is in Host too, whatever has been written there, `host` (RFC 9112 §3.2.2). */
void request_show_host(struct transaction *transaction, struct slice host);
/* Takes the URL that is asked for into url_text and url, normalised. */
bool request_set_url(struct transaction *transaction, const struct url *url);
/* The same into a place of the caller's. */
bool request_write_url(struct transaction *transaction, const struct url *from, struct url *url,
                       struct slice *text, struct slice *authority);
/* "host:port", with brackets where the host needs them; port 0: only the host. */
struct slice request_write_authority(struct transaction *transaction, struct slice host,
                                     uint16_t port);
/* The client's address as text, which outlives the client. */
struct slice request_client_ip(struct transaction *transaction);
/* Is the request for a service that changes requests? */
bool reqmod_is_wanted(struct transaction *transaction);
/* To the origin, by way of services that change requests behind the cache where there are any. */
enum step reqmod_postcache_or_fetch(struct transaction *transaction);
/* To the client, by way of services that change responses behind the cache where there are any. */
enum step respmod_postcache_or_deliver(struct transaction *transaction);
/* May a service behind the cache want the response, whatever it will turn out to be? */
bool respmod_postcache_may_want(struct transaction *transaction);
/* The message that services are asked about, without a body yet; what is not for them goes from the
 * heads. `response` is NULL where they are asked about the request. */
void message_begin(struct transaction *transaction, struct adapt_message *message,
                   struct http_head *request, struct http_head *response);
struct http_head *message_copy_request(struct transaction *transaction);
/* The response to a HEAD is not for services; of what a GET would bring only they know some things.
 */
void message_remove_untold(struct transaction *transaction, struct http_head *response,
                           struct icap_service *const *services, unsigned count);
/* The bits of the rules (match/rules.h) that the request is for: whatever content type they
 * want; those that want none; those that the response, which is there, fits. */
const uint64_t *request_rules(struct transaction *transaction);
const uint64_t *request_rules_without_type(struct transaction *transaction);
const uint64_t *request_rules_for_response(struct transaction *transaction,
                                           const struct http_head *response);
/* The leader tells those who follow how its fetch came out. */
void lookup_tell_followers(struct transaction *transaction, enum shared_fetch_outcome outcome);
/* What was to be stored has arrived, or will not: an object of unknown length enters the index now
 * that it is whole, one that broke off leaves it. Harmless before and after. */
void storing_settle(struct transaction *transaction);
/* A list field that may stand in several lines, as one value (RFC 9110 §5.3); empty when absent. */
struct slice transaction_joined_value(struct transaction *transaction, const struct http_head *head,
                                      enum http_name id);
/* Whom a response to this request is for. */
enum object_scope caching_scope(const struct transaction *transaction);
/* The status line and the fields, in the arena. */
struct slice delivery_write_head(struct transaction *transaction, const struct http_head *head);
/* Puts the fields of a response without a body, which is about the stored one, over those of
 * `object`, which becomes the outcome; says whether that is in the index. False: they do not go
 * together into one head, and nothing has changed. */
bool refresh_object(struct transaction *transaction, const struct http_head *news,
                    enum shared_fetch_outcome *outcome);
/* The response to a HEAD tells something of what is stored. */
void refresh_from_head(struct transaction *transaction);
/* Does the stored part, `object`, hold what the request asks for? */
bool stored_part_will_do(struct transaction *transaction);
/* Has the request to the origin ask for what `part` lacks to be whole, where that can be. */
bool stored_part_ask_for_rest(struct transaction *transaction, struct http_head *head);
/* Is the response to that request what was asked for? */
bool stored_part_completes(const struct transaction *transaction);
/* The response is a part: joins it with the stored one, and with `keep` makes it ready for being
 * stored; false: it is not to be stored. */
bool stored_part_join(struct transaction *transaction, bool keep);
/* The response is not stored: neither may `part` stay if it shows that there are other bytes now.
 */
void stored_part_drop(struct transaction *transaction);
/* Makes of the reply, a stored response, the parts of it that the request asks for. */
void ranges_choose(struct transaction *transaction);
/* Age and Cache-Status, as the answer to this request has them. */
struct slice cache_status_fields(struct transaction *transaction);
/* The URL that a field of the response refers to, absolute and normalised; empty: none. */
struct slice request_resolve(struct transaction *transaction, struct slice reference);
/* The request as if it were a GET: what is stored is the answer to one. */
const struct http_head *request_as_get(struct transaction *transaction);
/* Drops what the request's success has made stale (RFC 9111 §4.4). */
void invalidate_stored(struct transaction *transaction);
/* Turns what the origin's response says of its own URLs into the client's view of them. */
void reverse_map_response(struct transaction *transaction);
/* An answer that Retort makes itself, as if an origin had sent it. */
bool internal_is_asked(const struct transaction *transaction);
void internal_answer(struct transaction *transaction);

#endif
