/*
 * An adapter: one service of the configuration as one worker uses it, wherever that service runs. A
 * chain (adapt/chain.h), remembered verdicts, the access log and the admin plane know services by
 * this only.
 *
 * Kinds of adapters differ by a class, a table of functions. Who adds a kind writes such a table,
 * puts a struct adapter first into a struct of his own, and names the table in a row of a part (part.services).
 * icap/adapter.c is the kind that asks an ICAP server, inside/adapter.c the one that runs the service
 * in the proxy.
 *
 *     struct adapter *adapter = shared->class->open(shared, settings, host);
 *     struct adapter_call *call =
 *         adapter_call_start(adapter, &request, &adapted_head, &transaction->task);
 *     ... adapt/adapter_call.h ...
 *     adapter_bypassed(adapter, call->error);         a message goes on without it
 *     adapter->class->close(&adapter);                when all its calls are closed
 *
 * Errors: a call that fails has a reason (call->error), and whoever runs the chain decides whether the
 * message goes on without the service. Ownership: `open` gives an adapter to the caller, which closes
 * it; settings, host and shared service outlive it.
 *
 * Threads: the worker's, but for the functions of a class that take a struct shared_service
 * (adapt/shared_service.h): those are called by whoever reads the configuration, and by the admin
 * plane.
 */
#ifndef RETORT_ADAPT_ADAPTER_H
#define RETORT_ADAPT_ADAPTER_H

#include "adapt/adapter_accounts.h"
#include "adapt/bypasses.h"
#include "adapt/foreign_call.h"
#include "adapt/service_tag.h"
#include "net/context.h"
#include "settings/settings.h"

struct adapter;
struct adapter_call;
struct adapter_request;
struct http_head;
struct recording_class;
struct service_connection;
struct service_log_line;
struct service_report;
struct shared_service;
struct shared_services;
struct sockaddr_storage;
struct verdicts;

/* What a service is told of outside of calls. */
enum adapter_event { ADAPTER_HEARS_LOG = 1, ADAPTER_HEARS_CLOSED = 2, ADAPTER_HEARS_NAMES = 4 };

/* What the adapters of one worker share; the worker lends it. */
struct adapter_host {
    struct net_context *net;
    unsigned worker;                   /* which of them it is, counted from 0 */
    struct mailbox *mailbox;           /* for messages of other workers; NULL: there are none */
    struct adapter_accounts *accounts; /* NULL: nobody sums them up */
    struct verdicts *verdicts;         /* of all workers; NULL: none are remembered */
    const struct recording_class
        *records;    /* who records messages now (adapt/recording.h); NULL: nobody */
    void *recorders; /* its state */
    bool first;      /* the worker does what is done once for all of them */
    struct foreign_call foreign;
};

struct adapter_class {
    const char *name;

    /* What all workers share of a service: goes on where the same service of `before` was, NULL:
     * there is none before. */
    struct shared_service *(*share)(const struct settings *settings, size_t index,
                                    const struct shared_services *before);
    void (*unshare)(struct shared_service **sharedp);
    /* Does `share` wait for somebody else? Then it is called in a thread of its own, beside those of other
     * services. May be missing: it does not. */
    bool (*share_waits)(const struct service_settings *settings);
    /* Its state, and those of its endpoints. */
    void (*report_shared)(struct shared_service *shared, struct service_report *report);
    /* Why it can't be used with its settings: then the configuration is refused. NULL: it can be.
     * May be missing: whether it can be used shows later. */
    const char *(*problem)(struct shared_service *shared);

    struct adapter *(*open)(struct shared_service *shared, const struct service_settings *settings,
                            struct adapter_host *host);
    /* A reload has brought another one: from now on it keeps nothing that its calls do not use. */
    void (*retire)(struct adapter *adapter);
    void (*close)(struct adapter **adapterp);
    /* What this worker has of it; adapter_report adds the account. */
    void (*report)(const struct adapter *adapter, struct service_report *report);
    /* A result of it is used without asking it: it looks whether the service is still the same, so
     * that a new version of it shows in the tag. */
    void (*refresh)(struct adapter *adapter);
    /* Or-ed bits of enum client_field: what a service gets to know of the client. */
    unsigned (*client_fields)(const struct adapter *adapter);

    /* One call; see adapt/adapter_call.h. call_size: of the struct that begins with a struct
     * adapter_call. */
    size_t call_size;
    /* In memory that has not been set. Ends with adapter_call_settle, at once or later. */
    void (*start)(struct adapter_call *call, struct adapter *adapter,
                  const struct adapter_request *request, struct http_head *adapted,
                  struct task *waker);
    /* What the service made; NULL: no body. */
    struct source *(*body)(struct adapter_call *call);
    /* At any time after start; once. */
    void (*end)(struct adapter_call *call);

    /* Outside of calls, for adapters that hear of it: see service/event.h and `resolved` in
     * service/service.h. They may be missing. */
    void (*logged)(struct adapter *adapter, const struct service_log_line *line);
    void (*closed)(struct adapter *adapter, const struct service_connection *connection);
    size_t (*resolved)(struct adapter *adapter, struct slice name,
                       struct sockaddr_storage *addresses, size_t count);
};

struct adapter {
    unsigned magic;
#define ADAPTER_MAGIC 0xada97e40u
    const struct adapter_class *class;
    const struct service_settings *settings;
    struct adapter_host *host;
    struct service_tag *tag; /* the shared service's */
    const void *module; /* what may opt out of transactions (adapt/opt_outs.h); NULL: it can not */
    unsigned hears;     /* enum adapter_event, or-ed; set by `open` */
    struct adapter_account account;
    struct adapter_accounts_entry account_entry;
    struct bypass_log bypass_log;
};

/* Both by a class: first in its `open`, and last in its `close`. */
void adapter_init(struct adapter *adapter, const struct shared_service *shared,
                  const struct service_settings *settings, struct adapter_host *host);
void adapter_release(struct adapter *adapter);

/* A message goes on without the service, for that reason. */
void adapter_bypassed(struct adapter *adapter, const char *reason);
void adapter_report(const struct adapter *adapter, struct service_report *report);

#endif
