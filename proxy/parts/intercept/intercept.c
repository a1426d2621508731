#include "intercept/intercept.h"

#include "base/log.h"
#include "client/first_bytes.h"
#include "intercept/bump.h"
#include "intercept/interception.h"
#include "intercept/settings.h"
#include "transaction/access.h"
#include "transaction/fail.h"
#include "transaction/request_rules.h"
#include "transaction/route.h"
#include "transaction/transaction.h"

/* INTERCEPT: answers a CONNECT, reads the client's ClientHello, and decides what becomes of the
 * connection. */

static const struct early_tunnel_class intercept_tunnel_class;

/* A service sets it in the CONNECT that it sends back. */
static const struct slice intercept_field = {"X-Intercept", sizeof "X-Intercept" - 1};

static void intercept_on_timeout(struct timer *timer) {
    struct intercept *intercept = CONTAINER_OF(timer, struct intercept, timer);
    intercept->timed_out = true;
    loop_defer(intercept->transaction->net->loop, &intercept->transaction->task);
}

/* Tells the client that the tunnel is open, because it sends its ClientHello only then. */
static bool intercept_begin(struct transaction *transaction) {
    struct intercept *intercept = arena_zalloc(&transaction->arena, sizeof *intercept);
    struct http_head *head = arena_alloc(&transaction->arena, sizeof *head);
    request_own(transaction);
    http_head_remove_text(transaction->request.head, intercept_field);
    http_head_init(head);
    head->status = 200;
    head->reason = SLICE("Connection established");
    access_answer_tunnel(transaction, head);
    outcome_set_result(&transaction->outcome, RESULT_TUNNEL);
    outcome_set_status(&transaction->outcome, head->status);
    intercept->transaction = transaction;
    intercept->base = (struct early_tunnel){&intercept_tunnel_class, slice_make("", 0)};
    timer_init(&intercept->timer, intercept_on_timeout);
    transaction->parts[PART_INTERCEPT] = intercept;
    transaction->early_tunnel = &intercept->base;
    intercept->client = exchange_open_tunnel(transaction->exchange, head, slice_make("", 0));
    if (intercept->client == NULL)
        return false;
    intercept->client->waker = &transaction->task;
    intercept->bytes = net_buffer_take(transaction->net);
    loop_timer_after(transaction->net->loop, &intercept->timer,
                     intercept_settings(transaction)->hello_timeout);
    return true;
}

enum hello { HELLO_INCOMPLETE, HELLO_TLS, HELLO_NOT_TLS, HELLO_GONE };

/* Reads once. HELLO_INCOMPLETE: there are more bytes now. */
static enum hello read_more_of_hello(struct transaction *transaction, struct intercept *intercept,
                                     bool *waits) {
    size_t got, most = intercept_settings(transaction)->hello_size;
    if (intercept->bytes->end >= most ||
        !net_buffer_make_room(transaction->net, &intercept->bytes, most))
        return HELLO_NOT_TLS;
    struct net_buffer *bytes = intercept->bytes;
    switch (duplex_read(intercept->client, bytes->data + bytes->end, bytes->capacity - bytes->end,
                        &got)) {
    case IO_DONE: bytes->end += got; return HELLO_INCOMPLETE;
    case IO_WAIT: *waits = true; return HELLO_INCOMPLETE;
    case IO_END: return bytes->end > 0 ? HELLO_NOT_TLS : HELLO_GONE;
    default: return HELLO_GONE;
    }
}

static enum hello read_hello(struct transaction *transaction, struct intercept *intercept) {
    bool waits = false;
    while (!waits) {
        struct slice bytes = net_buffer_bytes(intercept->bytes);
        ssize_t used = client_hello_parse(&intercept->hello, bytes.base, bytes.length);
        if (used != 0)
            return used > 0 ? HELLO_TLS : HELLO_NOT_TLS;
        enum hello state = read_more_of_hello(transaction, intercept, &waits);
        if (state != HELLO_INCOMPLETE)
            return state;
    }
    return intercept->timed_out ? HELLO_NOT_TLS : HELLO_INCOMPLETE;
}

/* The first byte of a ClientHello in the form of SSLv2 counts too: the rest of it may only be late. */
static bool begins_as_tls(const struct intercept *intercept) {
    enum { OLD_FORM = 0x80 };
    struct slice bytes = net_buffer_bytes(intercept->bytes);
    enum first_bytes first = first_bytes_judge(bytes);
    return first == FIRST_BYTES_TLS ||
           (first == FIRST_BYTES_MORE && bytes.length > 0 && (bytes.base[0] & OLD_FORM) != 0);
}

/* The rules are about the name that the client asks for, and about the host that it connects to. */
static enum intercept_action intercept_decide(struct transaction *transaction, struct slice name) {
    const struct url *url = &transaction->request.url;
    struct address address;
    struct class_subject connection;
    if (intercept_settings(transaction)->count == 0 || access_is_tunnel(transaction))
        return INTERCEPT_SPLICE;
    request_subject(transaction, &connection);
    const struct intercept_subject subject = {
        .host = url->host,
        .host_is_address = address_parse_ip(&address, url->host, url->port),
        .port = url->port,
        .name = name,
        .connection = &connection,
    };
    return intercept_rules_decide(intercept_settings(transaction), &subject, &transaction->arena);
}

/* Clients that refuse our certificates for a server get through, and so do all clients to servers
 * that ask for a certificate of theirs. */
static bool is_exempt(struct transaction *transaction) {
    struct interception *interception = interception_of(transaction);
    const struct interception_settings *settings = intercept_settings(transaction);
    const struct intercept *intercept = intercept_of(transaction);
    time_t now = loop_seconds(transaction->net->loop);
    return interception_is_refused(interception, settings, request_client(transaction),
                                   intercept->place, now) ||
           interception_asks_clients(interception, settings, intercept->server, now);
}

static void note_name(struct transaction *transaction, struct intercept *intercept) {
    const struct url *url = &transaction->request.url;
    struct slice sni = intercept->base.sni;
    intercept->name = sni.length > 0 ? sni : url->host;
    intercept->place = request_write_authority(transaction, intercept->name, url->port);
    intercept->server =
        slice_equal(intercept->name, url->host)
            ? intercept->place
            : arena_concat(&transaction->arena, intercept->place, SLICE(" at "), url->host);
}

/* A connection that is opened anyway shows a page; another one is cut. */
static enum step intercept_refuse(struct transaction *transaction,
                                  const struct access_refusal *refusal) {
    enum step next = fail_page(transaction, refusal->status, refusal->reason, refusal->page);
    intercept_of(transaction)->page.location = refusal->location;
    if (access_refusal_is_denial(refusal))
        outcome_set_result(&transaction->outcome, RESULT_DENIED);
    return next;
}

/* Do the access sections allow the server that the client names in its TLS? */
static bool allows_name(struct transaction *transaction, struct slice sni) {
    return transaction->access == NULL || transaction->access->class->allows_name(transaction, sni);
}

/* Nothing can be shown to a client that does not speak TLS, or not HTTP inside it. */
static enum step intercept_without_tls(struct transaction *transaction) {
    struct intercept *intercept = intercept_of(transaction);
    transaction->net->counters.intercept_not_tls++;
    note_name(transaction, intercept);
    intercept->action = intercept_decide(transaction, intercept->base.sni);
    if (!allows_name(transaction, slice_make("", 0)))
        return intercept_refuse(transaction, transaction->access->refusal);
    bool tunnelled = intercept->action == INTERCEPT_SPLICE ||
                     (intercept->action == INTERCEPT_BUMP &&
                      intercept_settings(transaction)->not_tls == NOT_TLS_TUNNEL);
    if (!tunnelled)
        return intercept_fail(transaction, 403,
                              "the connection does not begin with TLS that can be opened",
                              slice_make("", 0), NULL);
    intercept->action = INTERCEPT_SPLICE;
    return STEP_NEXT;
}

/* The connection begins with TLS, but its ClientHello is malformed, too large, or too slow. If such
 * connections were relayed, clients could avoid the rules at any server. */
static enum step intercept_unfinished(struct transaction *transaction) {
    struct intercept *intercept = intercept_of(transaction);
    transaction->net->counters.intercept_unfinished++;
    intercept->hello = (struct client_hello){.name_length = 0};
    intercept->base.sni = slice_make("", 0);
    note_name(transaction, intercept);
    intercept->action = intercept_decide(transaction, intercept->base.sni);
    if (intercept->action != INTERCEPT_SPLICE || transaction->settings->access_names_servers)
        return intercept_fail(transaction, 403,
                              "the ClientHello is malformed, larger than interception.hello_size, "
                              "or did not arrive within interception.hello_timeout",
                              slice_make("", 0), NULL);
    return STEP_NEXT;
}

/* Does the client offer a protocol that is served inside? */
static bool offers_http(const struct exchange *exchange, const struct client_hello *hello) {
    return hello->alpn_length == 0 || client_hello_offers_protocol(hello, SLICE("http/1.1")) ||
           client_hello_offers_protocol(hello, SLICE("http/1.0")) ||
           (listen_offers_http2(exchange->listen) &&
            client_hello_offers_protocol(hello, SLICE("h2")));
}

/* Inside the connection only HTTP is served. TLS inside TLS is not, so the clients of an https
 * proxy keep their connections to themselves. */
static bool can_be_opened(const struct transaction *transaction) {
    const struct exchange *exchange = transaction->exchange;
    return exchange->ends->tls == NULL && offers_http(exchange, &intercept_of(transaction)->hello);
}

static enum step intercept_tls(struct transaction *transaction) {
    struct intercept *intercept = intercept_of(transaction);
    bool allowed = allows_name(transaction, intercept->base.sni);
    if (allowed && !can_be_opened(transaction))
        return intercept_without_tls(transaction);
    intercept->is_tls = can_be_opened(transaction);
    note_name(transaction, intercept);
    intercept->action = intercept_decide(transaction, intercept->base.sni);
    if (!allowed)
        return intercept_refuse(transaction, transaction->access->refusal);
    if (intercept->action == INTERCEPT_BUMP && is_exempt(transaction)) {
        intercept->action = INTERCEPT_SPLICE;
        transaction->net->counters.intercept_exempt++;
    }
    if (intercept->action == INTERCEPT_BLOCK)
        return fail_with(transaction, 403, "connections to this server are blocked");
    return STEP_NEXT;
}

/* Before the client says a name, only the rule for the host of its CONNECT is known. At a transparent
 * listener there is none, and a client can't be told anything in clear text. */
static bool intercept_shows_refusal(struct transaction *transaction) {
    const struct interception_settings *settings = intercept_settings(transaction);
    const struct exchange *exchange = transaction->exchange;
    return intercept_of(transaction) == NULL && transaction->request.kind == REQUEST_CONNECT &&
           settings->show_denied && settings->count > 0 && settings->authority != NULL &&
           exchange->class->carries_connection && exchange->ends->tls == NULL &&
           (exchange->is_connection ||
            intercept_decide(transaction, slice_make("", 0)) != INTERCEPT_SPLICE);
}

/* Whatever the client has sent, the connection goes nowhere. */
static enum step intercept_show_refusal(struct transaction *transaction,
                                        const struct access_refusal *refusal, enum hello hello) {
    struct intercept *intercept = intercept_of(transaction);
    intercept->is_tls = hello == HELLO_TLS && can_be_opened(transaction);
    note_name(transaction, intercept);
    intercept->action = intercept_decide(transaction, intercept->base.sni);
    return intercept_refuse(transaction, refusal);
}

static enum step intercept_run(struct transaction *transaction) {
    const struct access_refusal *refusal =
        transaction->access != NULL ? transaction->access->refusal : NULL;
    if (intercept_of(transaction) == NULL && !intercept_begin(transaction))
        return STEP_LOG;
    struct intercept *intercept = intercept_of(transaction);
    enum hello hello = read_hello(transaction, intercept);
    if (hello == HELLO_INCOMPLETE)
        return STEP_WAIT;
    intercept->base.sni = client_hello_name(&intercept->hello);
    timer_cancel(&transaction->net->loop->timers, &intercept->timer);
    if (refusal != NULL)
        return intercept_show_refusal(transaction, refusal, hello);
    switch (hello) {
    case HELLO_TLS: return intercept_tls(transaction);
    case HELLO_NOT_TLS:
        return begins_as_tls(intercept) ? intercept_unfinished(transaction)
                                        : intercept_without_tls(transaction);
    default: break;
    }
    return intercept_fail(transaction, 400, "the client left before it sent anything",
                          slice_make("", 0), NULL);
}

/* Only the two that inspect less or allow less; nobody but the operator may have a connection
 * opened. */
static void intercept_narrow(struct transaction *transaction, const struct http_head *head) {
    struct intercept *intercept = intercept_of(transaction);
    const struct http_field *wish = http_head_find_text(head, intercept_field);
    if (wish == NULL)
        return;
    if (slice_equal_nocase(wish->value, SLICE("splice")) && intercept->action == INTERCEPT_BUMP)
        intercept->action = INTERCEPT_SPLICE;
    if (slice_equal_nocase(wish->value, SLICE("block")))
        intercept->action = INTERCEPT_BLOCK;
}

static enum step intercept_take_answer(struct transaction *transaction, struct http_head *answer,
                                       struct source **bodyp) {
    struct intercept *intercept = intercept_of(transaction);
    if (!intercept->is_tls)
        return intercept_fail(transaction, 403, "an adaptation service answered the CONNECT",
                              slice_make("", 0), NULL);
    intercept->page =
        (struct intercept_page){.status = answer->status, .answer = answer, .body = *bodyp};
    *bodyp = NULL;
    return STEP_BUMP;
}

/* A connection that is to be spliced is not opened for a page about a failure: the page would cost
 * the client its secrets. */
enum step intercept_fail(struct transaction *transaction, unsigned status, const char *reason,
                         struct slice sentence, const char *name) {
    struct intercept *intercept = intercept_of(transaction);
    outcome_set_error(&transaction->outcome, reason);
    outcome_set_page(&transaction->outcome, status == 403 ? RESULT_DENIED : RESULT_ERROR,
                     step_name(transaction->step));
    if (intercept->is_tls && intercept->action != INTERCEPT_SPLICE && intercept->client != NULL) {
        intercept->page =
            (struct intercept_page){.status = status, .error = sentence, .name = name};
        return STEP_BUMP;
    }
    if (intercept->client != NULL)
        duplex_abort(intercept->client);
    return STEP_LOG;
}

bool intercept_opens(struct transaction *transaction) {
    const struct intercept *intercept = intercept_of(transaction);
    if (intercept == NULL)
        return false;
    bool opens = intercept->page.status != 0 || intercept->action != INTERCEPT_SPLICE;
    if (!opens)
        intercept_splice(transaction);
    return opens;
}

struct duplex *intercept_take_client(struct transaction *transaction, struct net_buffer **bytesp) {
    struct intercept *intercept = intercept_of(transaction);
    struct duplex *client = intercept->client;
    *bytesp = intercept->bytes;
    intercept->bytes = NULL;
    intercept->client = NULL;
    return client;
}

enum source_status intercept_read_page(struct transaction *transaction, char *buffer,
                                       size_t capacity, size_t *got) {
    struct source *body = intercept_of(transaction)->page.body;
    if (body == NULL)
        return SOURCE_END;
    source_set_waker(body, &transaction->task);
    return source_read(body, buffer, capacity, got);
}

void intercept_splice(struct transaction *transaction) {
    intercept_of(transaction)->action = INTERCEPT_SPLICE;
    transaction->net->counters.intercept_spliced += intercept_of(transaction)->is_tls;
}

static void intercept_close_page(struct transaction *transaction) {
    source_close(&intercept_of(transaction)->page.body);
}

static const struct intercepted_facts *intercept_describe(const struct transaction *transaction,
                                                          const char **action) {
    static const char *const actions[] = {"splice", "bump", "block"};
    const struct intercept *intercept = intercept_of(transaction);
    *action = actions[intercept->action];
    return intercept->bump != NULL ? &intercept->bump->facts : NULL;
}

static const struct early_tunnel_class intercept_tunnel_class = {
    .fail = intercept_fail,
    .take_request = intercept_narrow,
    .take_answer = intercept_take_answer,
    .close_answer = intercept_close_page,
    .take_client = intercept_take_client,
    .describe = intercept_describe,
};

static void intercept_end(struct transaction *transaction) {
    struct intercept *intercept = intercept_of(transaction);
    if (intercept == NULL)
        return;
    timer_cancel(&transaction->net->loop->timers, &intercept->timer);
    source_close(&intercept->page.body);
    duplex_close(&intercept->client);
    net_buffer_give(transaction->net, &intercept->bytes);
}

bool intercept_is_needed(const struct settings *settings) {
    return interception_settings_of(settings)->count > 0 || settings->access_names_servers;
}

static bool intercept_is_wanted(struct transaction *transaction) {
    return transaction->request.kind == REQUEST_CONNECT;
}

const struct step_row intercept_step = {
    .name = "INTERCEPT",
    .step = STEP_INTERCEPT,
    .run = intercept_run,
    .is_needed = intercept_is_needed,
    .is_wanted = intercept_is_wanted,
    .shows_refusal = intercept_shows_refusal,
    .begins = true,
    .let_go = intercept_end,
    .end = intercept_end,
};
