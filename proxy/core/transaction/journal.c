#include "transaction/journal.h"

#include "client/identity.h"
#include "http/credentials.h"
#include "tls/facts.h"
#include "transaction/access.h"
#include "transaction/bumped.h"
#include "transaction/destination.h"
#include "transaction/request_rules.h"
#include "transaction/spans.h"
#include "transaction/transaction.h"
#include "transaction/watcher.h"

static struct slice content_type(const struct transaction *transaction) {
    if (transaction->response.head != NULL && transaction->outcome.error == NULL)
        return http_head_value(transaction->response.head, HTTP_CONTENT_TYPE);
    if (transaction_object(transaction) == NULL)
        return transaction->outcome.error != NULL ? SLICE("text/html") : slice_make("", 0);
    return object_type(transaction_shown(transaction));
}

static void put_destination(struct transaction *transaction, struct journal *journal) {
    const struct exchange_ends *ends = transaction->exchange->ends;
    const struct listen_settings *listen = transaction->exchange->listen;
    if (listen == NULL || listen->mode != LISTEN_TRANSPARENT)
        return;
    char *text = arena_alloc(&transaction->arena, ADDRESS_TEXT);
    journal->destination = slice_make(text, address_format(ends->destination, text));
    journal->unproven = destination_is_unproven(transaction);
}

/* What is known of TLS on the client's side and of the connection around the request. */
static void put_tls(const struct transaction *transaction, struct journal *journal,
                    char user[HTTP_CREDENTIALS_USER]) {
    const struct intercepted_facts *facts = bumped_facts(transaction);
    struct slice credentials = transaction->request.credentials;
    journal->tls = transaction->exchange->ends->tls;
    const struct early_tunnel *tunnel = transaction->early_tunnel;
    if (tunnel != NULL) {
        journal->sni = tunnel->sni;
        facts = tunnel->class->describe(transaction, &journal->intercept);
    }
    if (facts != NULL) {
        credentials = facts->credentials;
        journal->sni = facts->sni;
        journal->connect = facts->connect;
        journal->issuer = facts->issuer;
        journal->verification = facts->verification;
    }
    if (credentials.length == 0 && facts == NULL)
        credentials = http_head_value(transaction->request.head, HTTP_PROXY_AUTHORIZATION);
    if (transaction->identity != NULL) {
        journal->user = transaction->identity->name;
        journal->user_proved = true;
    } else if (credentials.length > 0 && transaction->settings->authenticator_count == 0)
        journal->user = http_credentials_user(credentials, user);
}

static void put_access(const struct transaction *transaction, struct journal *journal) {
    const struct url_class *logged = transaction->access->logged;
    journal->access = access_rule_name(transaction);
    journal->access_log_only = slice_from(logged != NULL ? url_class_name(logged) : "");
}

static void put_services(const struct transaction *transaction, struct journal *journal,
                         struct asked_service *asked) {
    const struct adapt_chain *chains[STEP_CHAINS];
    unsigned count = transaction_chains(transaction, chains);
    journal->asked = asked;
    for (unsigned i = 0; i < count; i++)
        journal->asked_count +=
            transaction->host->adapting->tell(chains[i], asked + journal->asked_count);
}

static bool watcher_asks_class(const struct transaction *transaction) {
    const struct entry_watcher *watcher = transaction->host->watcher;
    while (watcher != NULL && !watcher->asks_class)
        watcher = watcher->next;
    return watcher != NULL;
}

void journal_show(struct transaction *transaction, uint64_t took) {
    struct exchange *exchange = transaction->exchange;
    char user[HTTP_CREDENTIALS_USER];
    struct class_subject subject;
    struct asked_service asked[STEP_CHAINS * ASKED_MAX];
    const struct loop *loop = transaction->net->loop;
    struct journal journal = {
        .time = {loop->wall, (long)loop->wall_milliseconds * 1000000},
        .duration = took,
        .number = transaction->number,
        .trace = spans_sampled(transaction),
        .client = exchange_client_ip(exchange),
        .client_address = exchange_client(exchange),
        .listen = exchange->listen,
        .method = transaction->request.original_method,
        .url = transaction->request.original_url,
        .host = transaction->request.url.host,
        .content_type = content_type(transaction),
        .origin = transaction->fetch.origin_name,
        .request = transaction->request.head,
        .reply = transaction->delivery.reply.status != 0 ? &transaction->delivery.reply : NULL,
        .version = exchange->version,
        .status = transaction->outcome.status,
        .bytes = exchange->bytes_sent,
        .body_bytes = exchange_body_bytes(exchange),
        .result = transaction->outcome.result,
        .step = transaction->outcome.step != NULL ? transaction->outcome.step : "DELIVER",
        .error = fetch_error(transaction),
        .aborted = exchange->state == EXCHANGE_ABORTED,
        .limit = transaction->outcome.limit,
    };
    put_destination(transaction, &journal);
    if (transaction->access != NULL)
        put_access(transaction, &journal);
    put_tls(transaction, &journal, user);
    put_services(transaction, &journal, asked);
    if (transaction->tunnel.relay != NULL)
        journal.bytes = journal.body_bytes = transaction->tunnel.relay->bytes[1];
    if ((access_logs_ask_class(transaction->host->logs) || watcher_asks_class(transaction)) &&
        transaction->request.head != NULL) {
        request_subject(transaction, &subject);
        subject.content_type = journal.content_type;
        journal.subject = &subject;
    }
    access_logs_write(transaction->host->logs, &journal);
    struct entry_watcher *watcher = transaction->host->watcher;
    for (; watcher != NULL; watcher = watcher->next)
        watcher->on_entry(watcher, transaction, &journal);
}
