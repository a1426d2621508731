/*
 * The guard of the admin plane: who calls, and whether the call may have been made by a web page or
 * by a client of a proxy. It decides when the head has arrived, before a body is taken.
 *
 *     struct admin_caller caller;
 *     struct admin_denial denial;
 *     if (!admin_guard_admits(&guard, connection, settings, &caller, &denial))
 *         ... answer denial.status and denial.reason ...
 *     if (!admin_guard_allows(&guard, &caller, OPERATOR_OPERATE, &denial)) ...
 *
 * On a Unix socket the kernel says who calls (SO_PEERCRED): the proxy's user and root are admins.
 * Others can connect only where somebody has opened the socket for them (a service manager makes it
 * with mode 0666, unless told otherwise), and they need a token. On an address everybody needs one.
 * A token is compared on a Unix socket too, if one is sent. With TLS a client certificate says who
 * calls (admin.certificate_roles), unless a token is sent. It is looked up for each request, so it
 * counts no longer after a reload that takes it out of the file, or that revokes it.
 *
 * Nothing slows down who guesses: a token has at least 32 characters, and whoever could make
 * answers slow could keep the operators out. Each failure closes its connection, is counted, and
 * the log tells of failures once a minute.
 *
 * Threads: any.
 */
#ifndef RETORT_ADMIN_GUARD_H
#define RETORT_ADMIN_GUARD_H

#include "admin/admin_tls.h"
#include "admin/operators.h"
#include "settings/settings.h"

#include <microhttpd.h>
#include <pthread.h>
#include <sys/types.h>
#include <time.h>

enum admin_denied {
    ADMIN_DENIED_CREDENTIALS, /* no token, or a wrong one */
    ADMIN_DENIED_ROLE,
    ADMIN_DENIED_PAGE, /* a web page has sent it */
    ADMIN_DENIED_PROXY,
    ADMIN_DENIED_COUNT
};

struct admin_guard {
    bool local;  /* a Unix socket */
    bool secure; /* TLS */
    pthread_mutex_t lock;
    struct admin_tls *tls; /* the latest, under the lock; NULL: clear text */
    _Atomic uint64_t denied[ADMIN_DENIED_COUNT];
    _Atomic uint64_t changes;    /* that were made or tried */
    _Atomic uint64_t audit_lost; /* changes that the audit log does not have */
    _Atomic time_t warned_at;
};

enum { ADMIN_CALLER_NAME = OPERATOR_NAME + 1, ADMIN_REASON = 400 };

struct admin_caller {
    char name[ADMIN_CALLER_NAME]; /* of the token or the certificate, or "uid 1000" */
    char from[ADDRESS_TEXT];      /* "unix", or the address */
    const char *certificate;      /* its subject; "": the connection showed none */
    enum operator_role role;
};

struct admin_denial {
    unsigned status; /* of HTTP */
    char reason[ADMIN_REASON];
};

void admin_guard_init(struct admin_guard *guard, const struct settings *settings);
void admin_guard_release(struct admin_guard *guard);
/* The certificates for connections from now on, referenced: those of the settings. When these have
 * none, the latest ones count, because a reload can't end TLS. NULL: clear text. `settings` may be
 * NULL: the latest ones. */
struct admin_tls *admin_guard_tls(struct admin_guard *guard, const struct settings *settings);
/* May this caller have what everybody may have, the files of the web page? A link on a page of
 * somebody else may lead to them; no such page may load them as its own. */
bool admin_guard_shows(struct admin_guard *guard, struct MHD_Connection *connection,
                       struct admin_denial *denial);
bool admin_guard_admits(struct admin_guard *guard, struct MHD_Connection *connection,
                        const struct settings *settings, struct admin_caller *caller,
                        struct admin_denial *denial);
bool admin_guard_allows(struct admin_guard *guard, const struct admin_caller *caller,
                        enum operator_role needed, struct admin_denial *denial);
/* What a user may do on a Unix socket without a token; `own` is the proxy's user. */
enum operator_role admin_guard_role_of(uid_t user, uid_t own);
/* `guard` may be NULL: nothing is printed. */
void admin_guard_print_metrics(FILE *out, const struct admin_guard *guard);

#endif
