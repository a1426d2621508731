#include "admin/guard.h"

#include "admin/connections.h"
#include "admin/operators.h"
#include "admin/settings.h"
#include "base/log.h"

#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

enum { WARN_AGAIN = 60 };

void admin_guard_init(struct admin_guard *guard, const struct settings *settings) {
    const struct admin_settings *mine = admin_settings_of(settings);
    guard->local = mine->address.any.sa_family == AF_UNIX;
    guard->secure = mine->tls != NULL;
    guard->tls = guard->secure ? admin_tls_reference(mine->tls) : NULL;
    pthread_mutex_init(&guard->lock, NULL);
}

void admin_guard_release(struct admin_guard *guard) {
    admin_tls_release(&guard->tls);
    pthread_mutex_destroy(&guard->lock);
}

struct admin_tls *admin_guard_tls(struct admin_guard *guard, const struct settings *settings) {
    struct admin_tls *asked = settings != NULL ? admin_settings_of(settings)->tls : NULL;
    if (!guard->secure)
        return NULL;
    pthread_mutex_lock(&guard->lock);
    /* The settings of a request that began before a reload are older than what counts. */
    if (asked != NULL && asked->number > guard->tls->number) {
        admin_tls_release(&guard->tls);
        guard->tls = admin_tls_reference(asked);
    }
    struct admin_tls *tls = admin_tls_reference(guard->tls);
    pthread_mutex_unlock(&guard->lock);
    return tls;
}

static bool deny(struct admin_guard *guard, struct admin_denial *denial, enum admin_denied kind,
                 unsigned status, const char *reason) {
    atomic_fetch_add(&guard->denied[kind], 1);
    denial->status = status;
    snprintf(denial->reason, sizeof denial->reason, "%s", reason);
    return false;
}

static const char *guard_field(struct MHD_Connection *connection, const char *name) {
    return MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

/* A page of somebody else in the operator's browser could make the browser post a form to 127.0.0.1,
 * or load something from there. Browsers say so in these fields. Retort's own page is of the origin
 * that Host names. */
static bool sent_by_stranger(const struct admin_guard *guard, struct MHD_Connection *connection) {
    const char *scheme = guard->secure ? "https://" : "http://";
    const size_t length = strlen(scheme);
    const char *site = guard_field(connection, "Sec-Fetch-Site");
    const char *origin = guard_field(connection, "Origin"), *host = guard_field(connection, "Host");
    if (site != NULL && strcmp(site, "none") != 0 && strcmp(site, "same-origin") != 0)
        return true;
    return origin != NULL && (host == NULL || strncasecmp(origin, scheme, length) != 0 ||
                              strcasecmp(origin + length, host) != 0);
}

/* Somebody follows a link, or types the address. */
static bool guard_is_navigation(struct MHD_Connection *connection) {
    const char *mode = guard_field(connection, "Sec-Fetch-Mode");
    const char *place = guard_field(connection, "Sec-Fetch-Dest");
    return mode != NULL && strcmp(mode, "navigate") == 0 && place != NULL &&
           strcmp(place, "document") == 0;
}

/* With TLS, a name or address that one of our certificates is for. */
static bool names_certificate(struct admin_guard *guard, struct slice host) {
    struct admin_tls *tls = admin_guard_tls(guard, NULL);
    if (host.length > 2 && host.base[0] == '[')
        host = slice_make(host.base + 1, host.length - 2);
    bool named = tls != NULL && admin_tls_names(tls, host);
    admin_tls_release(&tls);
    return named;
}

/* Under a name of its own, such a page would be of the same origin (DNS rebinding). A browser reaches
 * a Unix socket through ssh -L. A name without a dot is no safer than another: a search domain
 * completes it. Nor does the absence of Sec-Fetch-Site and Origin show a program that is no browser:
 * a browser sends neither with a GET to the plain http origin that it has the page from. */
static bool names_this_machine(struct admin_guard *guard, struct MHD_Connection *connection) {
    struct url url;
    struct address address;
    const char *host = guard_field(connection, "Host");
    if (host == NULL || host[0] == '\0')
        return guard->local;
    if (!url_parse_authority(&url, slice_from(host), 80))
        return false;
    if (slice_equal_nocase(url.host, SLICE("localhost")))
        return true;
    if (address_parse_ip(&address, url.host, 80) && address_is_loopback(&address))
        return true;
    return guard->secure && names_certificate(guard, url.host);
}

/* A request through a proxy does not come from the process that connects; it may come from a
 * client of this proxy. */
static bool came_by_proxy(struct MHD_Connection *connection) {
    static const char *const fields[] = {"Via", "Forwarded", "X-Forwarded-For"};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (guard_field(connection, fields[i]) != NULL)
            return true;
    return false;
}

/* The token of "Bearer TOKEN"; empty: the field is something else. */
static struct slice bearer_token(const char *field) {
    static const char scheme[] = "Bearer ";
    if (strncasecmp(field, scheme, sizeof scheme - 1) != 0)
        return slice_make("", 0);
    return slice_trim(slice_from(field + sizeof scheme - 1));
}

static void warn_of_denied(struct admin_guard *guard, const struct admin_caller *caller) {
    time_t now = time(NULL), before = atomic_load(&guard->warned_at);
    if (now - before < WARN_AGAIN ||
        !atomic_compare_exchange_strong(&guard->warned_at, &before, now))
        return;
    log_warn("admin: a request from %s without a token or with a wrong one was refused; it was "
             "the %llu. since the start: correct the token%s of the program that sends it",
             caller->name[0] != '\0' ? caller->name : caller->from,
             (unsigned long long)atomic_load(&guard->denied[ADMIN_DENIED_CREDENTIALS]),
             guard->secure ? " or the certificate" : "");
}

enum operator_role admin_guard_role_of(uid_t user, uid_t own) {
    return user == 0 || user == own ? OPERATOR_ADMIN : OPERATOR_NOBODY;
}

static void tell_caller(const struct admin_guard *guard, struct MHD_Connection *connection,
                        struct admin_caller *caller) {
    struct ucred peer;
    socklen_t length = sizeof peer;
    const struct admin_connection *known = admin_connection_of(connection);
    const struct shown_certificate *shown = admin_connection_shown(known);
    int fd = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    *caller = (struct admin_caller){.role = OPERATOR_NOBODY, .certificate = ""};
    strcpy(caller->from, admin_connection_from(known));
    if (shown != NULL)
        caller->certificate = shown_certificate_subject(shown);
    if (guard->local && getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0) {
        snprintf(caller->name, sizeof caller->name, "uid %u", (unsigned)peer.uid);
        caller->role = admin_guard_role_of(peer.uid, geteuid());
    }
}

static bool guard_take_token(struct admin_guard *guard, const char *field,
                             const struct settings *settings, struct admin_caller *caller,
                             struct admin_denial *denial) {
    const struct operator_token *token = NULL;
    struct slice sent = bearer_token(field);
    if (sent.length > 0)
        token = operator_tokens_find(admin_settings_of(settings)->tokens, sent);
    if (token == NULL) {
        bool denied = deny(guard, denial, ADMIN_DENIED_CREDENTIALS, MHD_HTTP_UNAUTHORIZED,
                           "nobody has this token: compare it with the lines of admin.token_file, "
                           "and send it as Authorization: Bearer TOKEN");
        warn_of_denied(guard, caller);
        return denied;
    }
    snprintf(caller->name, sizeof caller->name, "%s", token->name);
    caller->role = token->role;
    return true;
}

/* A reload may have revoked the certificate that the connection began with. */
static bool certificate_holds(struct admin_guard *guard, struct MHD_Connection *connection,
                              const struct settings *settings, struct admin_denial *denial) {
    const struct admin_connection *known = admin_connection_of(connection);
    const struct admin_tls *began = admin_connection_tls(known);
    struct admin_tls *now = admin_guard_tls(guard, settings);
    bool holds =
        began == NULL || now == NULL || admin_tls_admits(now, began, admin_connection_shown(known));
    admin_tls_release(&now);
    return holds || deny(guard, denial, ADMIN_DENIED_CREDENTIALS, MHD_HTTP_UNAUTHORIZED,
                         "the connection began under another client_ca, client_crl or "
                         "client_certificate, or its certificate has expired: connect again");
}

static bool take_certificate(const struct settings *settings, struct admin_caller *caller) {
    const struct operator_subject *subject =
        operator_subjects_find(admin_settings_of(settings)->subjects, caller->certificate);
    if (subject == NULL)
        return false;
    snprintf(caller->name, sizeof caller->name, "%s", subject->name);
    caller->role = subject->role;
    return true;
}

static bool deny_unknown(struct admin_guard *guard, const struct admin_caller *caller,
                         struct admin_denial *denial) {
    char reason[ADMIN_REASON] =
        "only root and the proxy's user need no token, and only on a Unix socket: send "
        "Authorization: Bearer TOKEN with a token of admin.token_file, or give retortctl the token "
        "with --token-file";
    if (caller->certificate[0] != '\0')
        snprintf(reason, sizeof reason,
                 "no line of admin.certificate_roles has the subject \"%.200s\": add a line NAME "
                 "ROLE SUBJECT and reload, or send a token",
                 caller->certificate);
    else if (guard->secure)
        strcpy(reason,
               "nobody can be known here without a token or a client certificate: give retortctl "
               "--token-file, or --certificate and --key; other programs send Authorization: "
               "Bearer TOKEN");
    deny(guard, denial, ADMIN_DENIED_CREDENTIALS, MHD_HTTP_UNAUTHORIZED, reason);
    warn_of_denied(guard, caller);
    return false;
}

static bool identify(struct admin_guard *guard, struct MHD_Connection *connection,
                     const struct settings *settings, struct admin_caller *caller,
                     struct admin_denial *denial) {
    const char *field = guard_field(connection, MHD_HTTP_HEADER_AUTHORIZATION);
    tell_caller(guard, connection, caller);
    if (!certificate_holds(guard, connection, settings, denial))
        return false;
    if (field != NULL)
        return guard_take_token(guard, field, settings, caller, denial);
    if (caller->role != OPERATOR_NOBODY || take_certificate(settings, caller))
        return true;
    return deny_unknown(guard, caller, denial);
}

static bool deny_stranger(struct admin_guard *guard, struct admin_denial *denial) {
    return deny(guard, denial, ADMIN_DENIED_PAGE, MHD_HTTP_FORBIDDEN,
                guard->secure
                    ? "only requests to a name or address of admin.certificates are served, and "
                      "none from web pages other than Retort's own"
                    : "only requests to a loopback address (http://localhost/, http://127.0.0.1/) "
                      "are served, and none from web pages other than Retort's own");
}

bool admin_guard_shows(struct admin_guard *guard, struct MHD_Connection *connection,
                       struct admin_denial *denial) {
    if (came_by_proxy(connection))
        return deny(guard, denial, ADMIN_DENIED_PROXY, MHD_HTTP_FORBIDDEN,
                    "requests that come through a proxy (Via, Forwarded, X-Forwarded-For) are not "
                    "served; connect to admin.listen directly");
    bool stranger = sent_by_stranger(guard, connection) && !guard_is_navigation(connection);
    return (!stranger && names_this_machine(guard, connection)) || deny_stranger(guard, denial);
}

bool admin_guard_admits(struct admin_guard *guard, struct MHD_Connection *connection,
                        const struct settings *settings, struct admin_caller *caller,
                        struct admin_denial *denial) {
    if (!admin_guard_shows(guard, connection, denial))
        return false;
    if (sent_by_stranger(guard, connection))
        return deny_stranger(guard, denial);
    return identify(guard, connection, settings, caller, denial);
}

bool admin_guard_allows(struct admin_guard *guard, const struct admin_caller *caller,
                        enum operator_role needed, struct admin_denial *denial) {
    char reason[ADMIN_REASON];
    if (caller->role >= needed)
        return true;
    snprintf(reason, sizeof reason,
             "%s has the role %s, and this needs the role %s: use another token or certificate, or "
             "change the role in admin.token_file or admin.certificate_roles and reload",
             caller->name, operator_role_name(caller->role), operator_role_name(needed));
    return deny(guard, denial, ADMIN_DENIED_ROLE, MHD_HTTP_FORBIDDEN, reason);
}

void admin_guard_print_metrics(FILE *out, const struct admin_guard *guard) {
    static const char *const reasons[] = {"credentials", "role", "web_page", "proxy"};
    if (guard == NULL)
        return;
    fputs("# HELP retort_admin_denied_total Requests that the admin plane has refused, by reason.\n"
          "# TYPE retort_admin_denied_total counter\n",
          out);
    for (int i = 0; i < ADMIN_DENIED_COUNT; i++)
        fprintf(out, "retort_admin_denied_total{reason=\"%s\"} %llu\n", reasons[i],
                (unsigned long long)atomic_load(&guard->denied[i]));
    fprintf(out,
            "# HELP retort_admin_changes_total Changes that were asked of the admin plane, and "
            "openings "
            "of the event stream.\n"
            "# TYPE retort_admin_changes_total counter\nretort_admin_changes_total %llu\n"
            "# HELP retort_admin_audit_lost_total Changes that could not be written to "
            "admin.audit_log.\n"
            "# TYPE retort_admin_audit_lost_total counter\nretort_admin_audit_lost_total %llu\n",
            (unsigned long long)atomic_load(&guard->changes),
            (unsigned long long)atomic_load(&guard->audit_lost));
}
