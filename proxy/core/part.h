/*
 * A part: a feature that a build may leave out (../configure --with-parts). Everything that is not a part is the core,
 * and the core names no part: it goes through this table.
 *
 * A part is a folder, proxy/parts/NAME/, with a row of functions, and a row of proxy/parts.def: what it is called, which
 * other parts it needs, and which sections and options of the configuration are its own. For example:
 *
 *     PART(EVENTS, events, "", "the event stream: ...", "admin.event_consumers ...")       parts.def
 *
 *     static void events_open(struct server *server) {                            parts/events/part.c
 *         server->parts[PART_EVENTS] = event_stream_new(&demand);
 *     }
 *
 *     static void events_close(struct server *server) {
 *         struct event_stream *stream = server->parts[PART_EVENTS];
 *         event_stream_free(&stream);
 *     }
 *
 *     const struct part part_events = {.process = {.open = events_open, .close = events_close}};
 *
 *     if PART_EVENTS                                                              parts/events/local.mk, which
 *     proxy_libproxy_a_SOURCES += proxy/parts/events/part.c ...                   parts/local.mk includes
 *     endif
 *
 * What a part keeps is found by its number: for the process in server->parts, for a worker in host->parts, for a
 * transaction in transaction->parts, for the settings in settings->parts. The admin plane gives a page the states of the
 * process (admin_calls.parts). So a state is one load away, and the numbers are the same whichever parts are built: the
 * objects of the core are, too.
 *
 * A part includes the core, and the parts that its row names (tests/check-includes.sh). A function that a part does not
 * have is NULL. Parts are opened in the order of parts.def and closed in the opposite one.
 *
 * Threads: constants. Each function says whose thread calls it.
 */
#ifndef RETORT_PART_H
#define RETORT_PART_H

#include "base/slice.h"

#include <stdint.h>
#include <stdio.h>

struct adapter_class;
struct adapting_class;
struct address;
struct cache;
struct class_lists_class;
struct client_accepted;
struct client_arrival;
struct clients;
struct coding;
struct content_class;
struct findings;
struct http_head;
struct inherited;
struct listen_settings;
struct origin_group;
struct origin_call_class;
struct page_choice;
struct page_text;
struct part_settings;
struct patience_class;
struct removal_order;
struct removal_spread;
struct second_level;
struct server;
struct service_report;
struct settings;
struct step_row;
struct transaction;
struct transaction_host;
struct trickle_class;
struct variant_class;
struct worker;
struct tls_pki;
struct version_library;

enum part_number {
    PART_CORE, /* no part */
#define PART(number, name, needs, what, options) PART_##number,
#include "parts.def"
#undef PART
    PART_COUNT
};

enum { PART_LIST = 512 };

struct part {
    /* The main thread, and `change` that of who changes the settings, one at a time. */
    struct {
        /* Makes what the part needs once. Workers do not run yet. */
        void (*open)(struct server *server);
        /* A worker is made, and others may post to it; it does not run yet. */
        void (*add_worker)(struct worker *worker);
        /* Adds what would keep a start from it (retort -t). */
        void (*is_possible)(const struct settings *settings, struct findings *findings);
        /* Could a later process start with what is about to be saved? False: it is refused, with a message. */
        bool (*may_save)(const struct settings *old, const struct settings *new, char *error);
        /* Settings may come into use: starts what serves by them, which may take its time, and adds why they can't be used.
         * `server` NULL: they are only checked. */
        void (*prepare)(struct server *server, struct settings *settings,
                        struct findings *findings);
        /* Nobody serves by them any more: ends that. Any thread. */
        void (*unprepare)(struct settings *settings);
        /* The proxy begins to end: nobody waits any more for what `prepare` starts. */
        void (*abandon_starts)(void);
        /* Is that so? Also by a signal before the proxy serves. */
        bool (*starts_are_abandoned)(void);
        /* Waits at most so many milliseconds for threads and processes that run, start or stop what `prepare` has started, when
         * that is over. False: some are left behind. */
        bool (*await_end)(unsigned milliseconds);
        /* Other settings come into use. */
        void (*change)(struct server *server, struct settings *settings);
        /* Writes what waits: the process ends without `close`, since a worker hangs. */
        void (*write_out)(struct server *server);
        /* The process ends, or another one takes its place: from now on the part begins nothing. Before the workers are told,
         * perhaps several times. Any thread. */
        void (*drain)(struct server *server);
        /* The workers serve no more: threads of the part that use them or the second level of the cache end. */
        void (*stop)(struct server *server);
        /* The workers and the cache are gone. */
        void (*close)(struct server *server);
    } process;
    /* A second level of the cache (cache/second_level.h), behind process.open and before the workers. `taken`: another
     * process lends what is stored, or had it when it was killed. NULL: the settings have none, or, with a message, it can't
     * be had. The main thread. */
    struct second_level *(*open_second_level)(struct settings *settings, struct cache *cache,
                                              bool taken, char *error);
    /* The worker's thread, but for `join` and `leave`, which come before it begins and behind its end. */
    struct {
        /* `state`: that of the process. */
        void (*join)(struct transaction_host *host, void *state);
        /* Settings come into use: what the part makes of them for the transactions that begin with them, in
         * snapshot->parts (transaction/snapshot.h). The first call comes before `join`. */
        void *(*take)(struct transaction_host *host, const struct settings *settings);
        /* The last of these transactions has ended. */
        void (*drop)(struct transaction_host *host, void *taken);
        /* The worker has other settings. */
        void (*change)(struct transaction_host *host);
        /* The group has other members: SRV records have changed. */
        void (*members_changed)(struct transaction_host *host, struct origin_group *group);
        /* The worker begins no more work but that of its clients: another process may do it. Also behind each `change` of such a
         * worker. */
        void (*drain)(struct transaction_host *host);
        /* The loop has ended: what is under way is broken off, before transactions and connections are. */
        void (*cut)(struct transaction_host *host);
        void (*leave)(struct transaction_host *host);
        /* What it knows of each service of the settings, for the admin plane, which frees it. Of one part. */
        struct service_report *(*report)(const struct transaction_host *host);
        /* Is the worker in a function of somebody else, in which it may hang? For so long, and why: "it has been in the
         * function begin of the service gray for 12 s" (WORKER_REASON bytes). Any thread. */
        bool (*is_held)(struct transaction_host *host, uint64_t *milliseconds, char *reason);
        /* If it comes back from there, it waits for the end of the process. Any thread. */
        void (*forsake)(struct transaction_host *host);
        /* A transaction begins, while settings->traces: sets transaction->spans (transaction/spans.h). */
        void (*trace)(struct transaction *transaction);
        /* Takes a connection to a listener with mode = transparent. It is counted in clients->total. */
        void (*accept_redirected)(struct clients *clients, const struct client_accepted *accepted);
        /* Answers a request for http://retort.internal and this path (transaction/internal.h). False: the part has no
         * such page. */
        bool (*answer_internal)(struct transaction *transaction, struct slice path);
    } worker;
    /* Loads all settings, with what was changed at run time over what the files say: as settings_load_for, or
     * settings_load_again where there is `before`. `purpose`: enum settings_purpose. Of one part; NULL: the files alone
     * count. Any thread. */
    struct settings *(*load_settings)(int purpose, const char *path, const struct settings *before,
                                      char *error);
    /* Its sections and options (settings/part_settings.h); NULL: none, or they are in the core's table. */
    const struct part_settings *settings;
    /* The steps of a transaction that are this part's (transaction/step.h); ends with NULL. What the part keeps for a
     * transaction is transaction->parts[its number]: NULL at first, and ended by the `end` of its steps, or by a
     * watcher of the transaction (transaction/watcher.h). */
    const struct step_row *const *steps;
    /* A protocol beside HTTP/1.1, which TLS agrees on by its name. The worker's thread. */
    struct {
        const char *name;
        /* Takes a connection of a client. `state`: that of the worker. */
        void (*adopt)(void *state, const struct client_arrival *arrival);
        const struct origin_call_class *origin;
    } protocol;
    /* The PROXY protocol. The worker's thread. */
    struct {
        /* Takes a connection to a listener with proxy_protocol, which is counted in clients->total. */
        void (*accept)(struct clients *clients, const struct client_accepted *accepted,
                       const struct listen_settings *listen);
        /* Writes the header of this version (settings/origins.h), and returns its length. Addresses that are NULL, or not both
         * IP: the connection is the proxy's own. */
        size_t (*write)(unsigned version, const struct address *source,
                        const struct address *destination, char *out);
    } proxy_protocol;
    /* How the process takes the place of another one, and a later one that of this. The main thread; `error` has room for
     * SETTINGS_ERROR bytes. */
    struct {
        /* The first call. `arguments` are those of main. `takes_over`: there is another process, whose sockets it adds. */
        bool (*begin)(struct server *server, char **arguments, bool takes_over,
                      struct inherited *inherited, char *error);
        bool (*may_open)(struct server *server, char *error);  /* the disks */
        bool (*may_serve)(struct server *server, char *error); /* behind server_open */
        /* Opens the place where a later process asks. */
        bool (*offer)(struct server *server, struct inherited *inherited, char *error);
        bool (*finish)(struct server *server, char *error); /* the other process serves no more */
        void (*started)(struct server *server, bool good);
        void (*take_signal)(struct server *server, int number); /* SIGUSR2 or SIGCHLD */
        bool (*is_done)(struct server *server);    /* Has a later process taken over? */
        bool (*has_failed)(struct server *server); /* And died since, so that nobody serves? */
        void (*stop)(struct server *server);
        void (*leave)(struct server *server); /* the last call */
    } takeover;
    /* A kind of services (enum service_kind). Any thread. */
    struct {
        unsigned kind;
        const struct adapter_class *class;
        /* How long the first starts of all processes of the services may take, in milliseconds. */
        uint64_t (*start_time)(const struct settings *settings);
    } services;
    /* OCSP responses, and certificates that servers did not send (tls/verify.h). NULL: nothing. Any thread. */
    const struct tls_pki *pki;
    /* What services do with transactions, for the steps of the core (transaction/adapting.h). NULL: nothing. */
    const struct adapting_class *adapting;
    const struct variant_class *variants;  /* likewise: their results are remembered */
    const struct patience_class *patience; /* likewise: what clients get while they think */
    const struct trickle_class *trickle;   /* likewise */
    /* Pages that operators have written (transaction/page.h). The worker's thread. */
    struct {
        struct http_head *(*reply)(struct transaction *transaction,
                                   const struct page_choice *choice);
        bool (*write)(struct transaction *transaction, struct page_text *page);
    } pages;
    /* Lists in files, for URL classes. The functions: any thread. */
    const struct class_lists_class *lists;
    /* Content codings that it undoes (adapt/coding.h); ends with a name without letters. NULL: none. Any thread. */
    const struct coding *codings;
    /* What services do with the content of the cache (cache/content_numbers.h). NULL: nothing. */
    const struct content_class *content;
    /* A socket beside those of listen sections. The main thread, but for `address`: any, and for `number` and
     * `give_away`: also that of the handover, which ends before `close`. */
    struct {
        /* Where it is to listen; NULL: nowhere. Requests of clients are not sent there. */
        const struct address *(*address)(const struct settings *settings);
        /* The workers are there, and run next: opens the socket, or takes that of another process. Threads of the part
         * may call the server from now on. False with a message, for which `error` has room for SETTINGS_ERROR bytes. */
        bool (*open)(struct server *server, struct inherited *inherited, char *error);
        int (*number)(struct server *server); /* the descriptor; -1: there is none */
        /* The process that had the socket before serves no more: its file is this one's to remove. */
        void (*own)(struct server *server);
        /* A later process has the socket: accepts no more. */
        void (*give_away)(struct server *server);
        /* The workers have ended, or have never begun: calls the server no more. Also without `open`. */
        void (*close)(struct server *server);
    } socket;
    /* retort --print-options: the manual of all options. False: there is no such form. */
    bool (*print_options)(const char *form);
    /* Tells the other nodes of a fleet of a removal that is in force here (cache/removal.h), and waits so many milliseconds for
     * it to be in force there. `state`: that of the process; NULL too. Threads that may wait. */
    void (*spread)(void *state, const struct removal_order *order, uint64_t wait,
                   struct removal_spread *spread);
    /* Libraries that no other part needs, for retort --version; ends with a NULL name. */
    const struct version_library *(*libraries)(void);
};

/* By number; NULL: the core, and parts that this retort does not have. */
extern const struct part *const part_table[PART_COUNT];

/* A loop over the parts that have the function, such as process.open. */
#define PARTS_FOR_EACH(number, function)                                                           \
    for (unsigned number = PART_CORE + 1; number < PART_COUNT; number++)                           \
        if (part_table[number] != NULL && part_table[number]->function != NULL)
/* The same, from the last one to the first. */
#define PARTS_FOR_EACH_BACK(number, function)                                                      \
    for (unsigned number = PART_COUNT - 1; number > PART_CORE; number--)                           \
        if (part_table[number] != NULL && part_table[number]->function != NULL)

/* The part that speaks the protocol "h2", for example; PART_CORE: none does. */
enum part_number part_of_protocol(const char *name);
/* The path of the first Unix socket of a part (part.socket); NULL: there is none. */
const char *part_socket_path(const struct settings *settings);

/* Calls process.await_end of all, with a time in which a process that hangs, or that somebody has stopped, is ended
 * (PROCESS_GRACE, runner/process.h). */
bool parts_await_end(void);

const char *part_name(enum part_number number);
/* The part that the section is of, or the option in it; NULL: the section itself. PART_CORE: it is of none. */
enum part_number part_of_option(const char *section, const char *option);
/* "NAME: this retort was built without the part ...": writes the sentence about an option or section; returns true. */
bool part_refuse(enum part_number number, const char *name, char *text, size_t size);
/* "events, spans": those that this retort has, or those that it does not have; "none". */
const char *part_list(bool built, char text[PART_LIST]);

#endif
