#include "transaction/variables.h"

#include "tls/facts.h"
#include "transaction/access.h"
#include "transaction/transaction.h"

static struct slice variable_number(struct transaction *transaction, int64_t number) {
    char *digits = arena_alloc(&transaction->arena, SLICE_DIGITS);
    return slice_of_number(digits, number);
}

static struct slice variable_time(struct transaction *transaction) {
    enum { CAPACITY = sizeof "-2147481748-12-31T23:59:60Z" };
    char *text = arena_alloc(&transaction->arena, CAPACITY);
    time_t now = transaction->net->loop->wall;
    struct tm parts;
    gmtime_r(&now, &parts);
    return slice_make(text, strftime(text, CAPACITY, "%Y-%m-%dT%H:%M:%SZ", &parts));
}

/* The host as it stands in the URL. */
static struct slice variable_host(struct transaction *transaction) {
    const struct url *url = &transaction->request.url;
    return url->host_is_ipv6 ? arena_concat(&transaction->arena, SLICE("["), url->host, SLICE("]"))
                             : url->host;
}

/* A CONNECT has no scheme. */
static struct slice variable_scheme(const struct transaction *transaction) {
    return transaction->request.kind == REQUEST_CONNECT ? slice_make("", 0)
                                                        : transaction->request.url.scheme;
}

/* A request that was refused before its URL was read has none. */
static struct slice variable_port(struct transaction *transaction) {
    return transaction->request.url.host.length == 0
               ? slice_make("", 0)
               : variable_number(transaction, transaction->request.url.port);
}

/* A URL that was not read has no path, and neither has a CONNECT. */
static struct slice variable_path(const struct transaction *transaction) {
    return transaction->request.url.path_query.length == 0 ? slice_make("", 0)
                                                           : url_path(&transaction->request.url);
}

static struct slice variable_query(const struct transaction *transaction) {
    struct slice text = transaction->request.url.path_query;
    const char *mark = text.length > 0 ? memchr(text.base, '?', text.length) : NULL;
    return mark == NULL ? slice_make("", 0)
                        : slice_make(mark + 1, (size_t)(text.base + text.length - mark - 1));
}

static struct slice variable_status(struct transaction *transaction) {
    unsigned status = transaction->outcome.status;
    if (status == 0 && transaction->response.head != NULL)
        status = transaction->response.head->status;
    return status == 0 ? slice_make("", 0) : variable_number(transaction, status);
}

static struct slice variable_reason(const struct transaction *transaction) {
    unsigned status = transaction->outcome.status;
    return slice_from(status == 0 ? "" : http_reason(status));
}

static struct slice variable_listener(const struct transaction *transaction) {
    const struct listen_settings *listen =
        transaction->exchange != NULL ? transaction->exchange->listen : NULL;
    return slice_from(listen != NULL ? listen->name : "");
}

static struct slice variable_user(const struct transaction *transaction) {
    const struct class_user *user = transaction->request.user;
    return user != NULL ? user->name : slice_make("", 0);
}

static struct slice variable_groups(struct transaction *transaction) {
    const struct class_user *user = transaction->request.user;
    struct slice groups = slice_make("", 0);
    for (size_t i = 0; user != NULL && i < user->group_count; i++)
        groups = i == 0 ? user->groups[i]
                        : arena_concat(&transaction->arena, groups, SLICE(","), user->groups[i]);
    return groups;
}

static struct slice variable_client_port(struct transaction *transaction) {
    return transaction->exchange == NULL
               ? slice_make("", 0)
               : variable_number(transaction, address_port(request_client(transaction)));
}

static struct slice variable_tls(struct transaction *transaction, enum variable variable) {
    const struct tls_facts *facts =
        transaction->exchange != NULL ? transaction->exchange->ends->tls : NULL;
    if (variable == VARIABLE_TLS_SNI && facts == NULL)
        return early_tunnel_sni(transaction->early_tunnel);
    if (facts == NULL)
        return slice_make("", 0);
    switch (variable) {
    case VARIABLE_TLS_VERSION: return slice_from(facts->version);
    case VARIABLE_TLS_CIPHER: return slice_from(facts->cipher);
    case VARIABLE_TLS_SNI: return slice_from(facts->server_name);
    default: return slice_from(facts->subject);
    }
}

static struct slice variable_field(struct transaction *transaction, const struct http_head *head,
                                   struct slice name) {
    return head != NULL ? http_head_joined_text(head, name, &transaction->arena)
                        : slice_make("", 0);
}

struct slice transaction_variable(void *arg, enum variable variable, struct slice field) {
    struct transaction *transaction;
    CAST_OBJ(transaction, arg, TRANSACTION_MAGIC);
    switch ((int)variable) {
    case VARIABLE_REQUEST_FIELD:
        return variable_field(transaction, transaction->request.head, field);
    case VARIABLE_RESPONSE_FIELD:
        return variable_field(transaction, transaction->response.head, field);
    case VARIABLE_CLIENT_IP: return request_client_ip(transaction);
    case VARIABLE_CLIENT_PORT: return variable_client_port(transaction);
    case VARIABLE_USER: return variable_user(transaction);
    case VARIABLE_GROUPS: return variable_groups(transaction);
    case VARIABLE_ID: return slice_from(transaction_id(transaction));
    case VARIABLE_TIME: return variable_time(transaction);
    case VARIABLE_METHOD: return transaction->request.head->method;
    case VARIABLE_URL: return transaction->request.url_text;
    case VARIABLE_SCHEME: return variable_scheme(transaction);
    case VARIABLE_HOST: return variable_host(transaction);
    case VARIABLE_PORT: return variable_port(transaction);
    case VARIABLE_PATH: return variable_path(transaction);
    case VARIABLE_QUERY: return variable_query(transaction);
    case VARIABLE_PATH_QUERY: return transaction->request.url.path_query;
    case VARIABLE_STATUS: return variable_status(transaction);
    case VARIABLE_REASON: return variable_reason(transaction);
    case VARIABLE_ERROR: return slice_from(transaction->outcome.error);
    case VARIABLE_LISTENER: return variable_listener(transaction);
    case VARIABLE_TLS_VERSION:
    case VARIABLE_TLS_CIPHER:
    case VARIABLE_TLS_SNI:
    case VARIABLE_TLS_SUBJECT: return variable_tls(transaction, variable);
    case VARIABLE_RULE: return access_rule_name(transaction);
    case VARIABLE_SERVER_NAME: return slice_from(transaction->settings->name);
    default: return slice_make("", 0);
    }
}
