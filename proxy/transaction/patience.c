#include "transaction/patience.h"

#include "base/assert.h"
#include "http/head_parser.h"

/* TICK: milliseconds between looks at the progress. */
enum { TICK = 500, REFRESH_SECONDS = 2, NAME_MAX_SHOWN = 100, PIECE = 16384, TURNS = 16 };

#define PREFIX "/.retort-patience/"

static const char page[] =
    "<!DOCTYPE html>\n"
    "<html><head><meta charset=\"utf-8\"><title>%.*s</title>\n"
    "<meta http-equiv=\"refresh\" content=\"%d; url=%.*s\"></head>\n"
    "<body><h1>%.*s is being checked</h1>\n"
    "<p>%.*s</p>\n"
    "<p>It comes by itself when that is done. This page asks again every %d seconds; or "
    "<a href=\"%.*s\">ask now</a>.</p>\n"
    "</body></html>\n";

static bool patience_is_plain(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '-' || c == '_';
}

/* The last part of the path, under which a browser saves what it gets; nothing in it needs an
 * escape anywhere. */
static struct slice patience_name_of(struct slice path) {
    size_t begin = path.length;
    while (begin > 0 && path.base[begin - 1] != '/')
        begin--;
    struct slice name = slice_make(path.base + begin, path.length - begin);
    for (size_t i = 0; i < name.length; i++)
        if (!patience_is_plain(name.base[i]))
            return SLICE("download");
    return name.length == 0 || name.length > NAME_MAX_SHOWN ? SLICE("download") : name;
}

static struct slice progress_text(struct transaction *transaction, const struct parcel *parcel) {
    unsigned long received = (unsigned long)atomic_load(&parcel->received);
    unsigned long expected = parcel->expected > 0 ? (unsigned long)parcel->expected : 0;
    if (expected == 0 || received > expected)
        return arena_printf(&transaction->arena, "%lu bytes have come so far.", received);
    unsigned percent = (unsigned)((double)received * 100 / (double)expected);
    return arena_printf(&transaction->arena,
                        "<progress max=\"100\" value=\"%u\"></progress> %u %% (%lu of %lu bytes)",
                        percent, percent, received, expected);
}

/* The page in place of what is not there yet. */
static enum step reply_page(struct transaction *transaction, const struct parcel *parcel) {
    struct reply *reply = &transaction->delivery.reply;
    struct arena *arena = &transaction->arena;
    struct slice name = patience_name_of(url_path(&transaction->request.url));
    struct slice url =
        arena_concat(arena, SLICE(PREFIX), slice_from(parcel->token), SLICE("/"), name);
    struct slice progress = progress_text(transaction, parcel);
    struct slice text =
        arena_printf(arena, page, SLICE_PRINT(name), REFRESH_SECONDS, SLICE_PRINT(url),
                     SLICE_PRINT(name), SLICE_PRINT(progress), REFRESH_SECONDS, SLICE_PRINT(url));
    body_release(&transaction->storing.body);
    transaction->storing.body = body_of_bytes(text);
    transaction->outcome.status = 200;
    transaction->outcome.result = RESULT_SERVICE;
    transaction->outcome.step = step_name(transaction->step);
    reply->head = arena_printf(arena,
                               "HTTP/1.1 200 OK\r\n"
                               "Content-Type: text/html; charset=utf-8\r\n"
                               "Cache-Control: no-store\r\n"
                               "Refresh: %d; url=%.*s\r\n"
                               "Via: 1.1 %s\r\n",
                               REFRESH_SECONDS, SLICE_PRINT(url), transaction->settings->name);
    reply->body = transaction->storing.body;
    reply->length = (int64_t)text.length;
    return STEP_DELIVER;
}

/* The side of whoever makes it. */

static void note_progress(struct patience *patience) {
    const struct transaction *transaction = patience->transaction;
    uint64_t received = adapt_chain_received(transaction->respmod);
    if (received > atomic_load(&patience->parcel->received))
        atomic_store(&patience->parcel->received, received);
}

static void patience_on_timer(struct timer *timer) {
    struct patience *patience = CONTAINER_OF(timer, struct patience, timer);
    CHECK_OBJ(patience, PATIENCE_MAGIC);
    struct transaction *transaction = patience->transaction;
    struct loop *loop = transaction->net->loop;
    if (patience->parcel == NULL) {
        patience->over = true;
        loop_defer(loop, &transaction->task);
        return;
    }
    note_progress(patience);
    loop_timer_after(loop, timer, TICK);
    uint64_t keep = transaction->settings->patience_keep;
    if (loop->now < atomic_load(&patience->parcel->asked) + keep)
        return;
    patience->abandoned = true;
    loop_defer(loop, &transaction->task);
}

static bool is_navigation(const struct http_head *request) {
    struct slice destination = SLICE("Sec-Fetch-Dest");
    const struct http_field *field = http_head_find_text(request, destination);
    const struct http_field *accept = http_head_find_text(request, SLICE("Accept"));
    if (request->method_id != HTTP_METHOD_GET || accept == NULL ||
        (field != NULL && !slice_equal_nocase(field->value, SLICE("document"))))
        return false;
    struct slice rest = accept->value, element;
    while (slice_next_element(&rest, &element))
        if (slice_starts_with_nocase(element, SLICE("text/html")))
            return true;
    return false;
}

static bool is_html(const struct http_head *response) {
    struct slice type = http_head_value(response, HTTP_CONTENT_TYPE);
    return slice_starts_with_nocase(type, SLICE("text/html")) ||
           slice_starts_with_nocase(type, SLICE("application/xhtml"));
}

void patience_begin(struct transaction *transaction, uint64_t after) {
    const struct http_head *response = transaction->message.response;
    if (after == 0 || transaction->exchange->background || response->status != 200 ||
        is_html(response) || !is_navigation(transaction->request.head))
        return;
    struct patience *patience = arena_alloc(&transaction->arena, sizeof *patience);
    INIT_OBJ(patience, PATIENCE_MAGIC);
    patience->transaction = transaction;
    timer_init(&patience->timer, patience_on_timer);
    loop_timer_after(transaction->net->loop, &patience->timer, after);
    transaction->waiting_page = patience;
}

bool patience_is_over(const struct transaction *transaction) {
    return transaction->waiting_page != NULL && transaction->waiting_page->over;
}

enum step patience_reply(struct transaction *transaction) {
    struct patience *patience = transaction->waiting_page;
    const struct settings *settings = transaction->settings;
    struct loop *loop = transaction->net->loop;
    patience->over = false;
    patience->parcel =
        parcels_open(transaction->host->parcels, &transaction->exchange->client->address, loop->now,
                     transaction->respmod->decoding != NULL ? -1 : transaction->expected_length,
                     settings->patience_space, settings->temporary_directory);
    if (patience->parcel == NULL)
        return STEP_WAIT; /* too many wait: this one as if there were no patience */
    note_progress(patience);
    adapt_chain_keep_quiet(transaction->respmod);
    loop_timer_after(loop, &patience->timer, TICK);
    transaction->net->counters.patience_pages++;
    transaction_land(transaction, FLIGHT_UNSTORED);
    return reply_page(transaction, patience->parcel);
}

static void patience_let_go(struct patience *patience) {
    struct transaction *transaction = patience->transaction;
    struct transaction_host *host = transaction->host;
    timer_cancel(&transaction->net->loop->timers, &patience->timer);
    source_close(&patience->body);
    parcel_release(&patience->parcel);
    timer_set(&transaction->net->loop->timers, &host->parcels_timer, transaction->net->loop->now);
}

static uint64_t end_of_keeping(const struct transaction *transaction) {
    return transaction->net->loop->now + transaction->settings->patience_keep;
}

static bool patience_fail(struct patience *patience, const char *error) {
    struct transaction *transaction = patience->transaction;
    transaction->net->counters.patience_failures++;
    parcel_failed(patience->parcel, error, end_of_keeping(transaction));
    patience_let_go(patience);
    return false;
}

static void patience_take_result(struct patience *patience) {
    struct transaction *transaction = patience->transaction;
    patience->head = transaction->message.response;
    patience->body = transaction->message.body;
    transaction->message.body = NULL;
    if (patience->body != NULL)
        source_set_waker(patience->body, &transaction->task);
}

/* The result into the parcel, as far as it has come. */
static bool pack(struct patience *patience) {
    char piece[PIECE];
    struct transaction *transaction = patience->transaction;
    for (unsigned turn = 0; turn < TURNS; turn++) {
        size_t got = 0;
        enum source_status status =
            patience->body == NULL ? SOURCE_END : source_read(patience->body, piece, PIECE, &got);
        if (status == SOURCE_WAIT)
            return true;
        if (status == SOURCE_FAILED)
            return patience_fail(patience, "the response broke off");
        if (status == SOURCE_END) {
            parcel_ready(patience->parcel, patience->head, end_of_keeping(transaction));
            patience_let_go(patience);
            return false;
        }
        if (!parcel_append(patience->parcel, piece, got))
            return patience_fail(patience,
                                 "there is no room to keep it for you; patience_space limits that");
    }
    loop_defer(transaction->net->loop, &transaction->task);
    return true;
}

bool patience_goes_on(struct transaction *transaction) {
    struct patience *patience = transaction->waiting_page;
    if (patience == NULL || patience->parcel == NULL)
        return false;
    const struct adapt_chain *chain = transaction->respmod;
    if (patience->abandoned)
        return patience_fail(patience, "nobody has asked for it any more");
    if (chain->state == ADAPT_RUNNING)
        return true;
    if (chain->state != ADAPT_DONE)
        return patience_fail(patience, chain->error);
    if (patience->head == NULL)
        patience_take_result(patience);
    return pack(patience);
}

void patience_end(struct transaction *transaction) {
    struct patience *patience = transaction->waiting_page;
    if (patience == NULL)
        return;
    timer_cancel(&transaction->net->loop->timers, &patience->timer);
    if (patience->parcel != NULL)
        patience_fail(patience, "the proxy has given it up");
    transaction->waiting_page = NULL;
}

/* The side of whoever asks for it. */

bool patience_is_url(struct slice path) {
    return slice_starts_with(path, SLICE(PREFIX));
}

static struct slice token_of(struct slice path) {
    size_t before = strlen(PREFIX);
    size_t length = path.length - before < PARCEL_TOKEN ? path.length - before : PARCEL_TOKEN;
    return slice_make(path.base + before, length);
}

/* As if a service had answered. */
static enum step hand_over(struct transaction *transaction, struct parcel **parcelp) {
    struct arena *arena = &transaction->arena;
    struct slice bytes = arena_slice(arena, slice_make((*parcelp)->head, (*parcelp)->head_length));
    struct http_head *head = arena_alloc(arena, sizeof *head);
    if (http_head_parse_response(head, bytes.base, bytes.length, 0) <= 0) {
        parcel_release(parcelp);
        return transaction_fail(transaction, 502, "its head is too large to be kept");
    }
    transaction->response.head = head;
    transaction->response.response_time = transaction->response.request_time =
        transaction->net->loop->wall;
    transaction->outcome.result = RESULT_SERVICE;
    transaction->response.body = parcel_body(parcelp, arena, transaction->net->loop);
    transaction->net->counters.patience_delivered++;
    return STEP_STORE;
}

enum step patience_collect(struct transaction *transaction) {
    const struct address *client = &transaction->exchange->client->address;
    struct slice token = token_of(url_path(&transaction->request.url));
    struct parcel *parcel = NULL;
    transaction_own_request(transaction);
    if (transaction->request.head->method_id == HTTP_METHOD_GET)
        parcel =
            parcels_find(transaction->host->parcels, token, client, transaction->net->loop->now);
    if (parcel == NULL)
        return transaction_fail(transaction, 404,
                                "nothing is kept under this address any more; ask for the "
                                "download again");
    enum parcel_state state = parcel_state(parcel);
    const char *error = parcel->error;
    enum step next;
    if (state == PARCEL_READY)
        return hand_over(transaction, &parcel);
    if (state == PARCEL_FAILED)
        next = transaction_fail(transaction, 502, error);
    else
        next = reply_page(transaction, parcel);
    parcel_release(&parcel);
    return next;
}
