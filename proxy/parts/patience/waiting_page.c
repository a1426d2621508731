#include "patience/waiting_page.h"

#include "adapt/adaptation.h"
#include "adapt/respmod.h"
#include "base/assert.h"
#include "http/head_parser.h"
#include "patience/patience.h"
#include "text/text_template.h"
#include "transaction/fail.h"
#include "transaction/page.h"

/* TICK: milliseconds between looks at the progress. */
enum { TICK = 500, REFRESH_SECONDS = 2, NAME_MAX_SHOWN = 100, PIECE = 16384, TURNS = 16 };

static struct waiting_downloads *waiting_downloads_of(const struct transaction_host *host) {
    const struct patience_worker *worker = host->parts[PART_PATIENCE];
    return worker->downloads;
}

static struct waiting_page *waiting_page_of(const struct transaction *transaction) {
    return transaction->parts[PART_PATIENCE];
}

#define PREFIX "/.retort-patience/"

static const char page_text[] =
    "<!DOCTYPE html>\n"
    "<html><head><meta charset=\"utf-8\"><title>%.*s</title>\n"
    "<meta http-equiv=\"refresh\" content=\"%d; url=%.*s\"></head>\n"
    "<body><h1>%.*s is being checked</h1>\n"
    "<p>%.*s</p>\n"
    "<p>The download starts by itself when the check is complete. This page asks again every %d "
    "seconds. You can also <a href=\"%.*s\">ask now</a>.</p>\n"
    "</body></html>\n";

static bool waiting_page_is_plain(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '-' || c == '_';
}

/* The last segment of the path, which is the file name in browsers. None of its characters needs
 * an escape. */
static struct slice waiting_page_name_of(struct slice path) {
    size_t begin = path.length;
    while (begin > 0 && path.base[begin - 1] != '/')
        begin--;
    struct slice name = slice_make(path.base + begin, path.length - begin);
    for (size_t i = 0; i < name.length; i++)
        if (!waiting_page_is_plain(name.base[i]))
            return SLICE("download");
    return name.length == 0 || name.length > NAME_MAX_SHOWN ? SLICE("download") : name;
}

static struct slice progress_text(struct transaction *transaction,
                                  const struct waiting_download *download) {
    unsigned long received = (unsigned long)atomic_load(&download->received);
    unsigned long expected = download->expected > 0 ? (unsigned long)download->expected : 0;
    if (expected == 0 || received > expected)
        return arena_printf(&transaction->arena, "%lu bytes have arrived so far.", received);
    unsigned percent = (unsigned)((double)received * 100 / (double)expected);
    return arena_printf(&transaction->arena,
                        "<progress max=\"100\" value=\"%u\"></progress> %u %% (%lu of %lu bytes)",
                        percent, percent, received, expected);
}

static struct slice own_waiting_page(struct transaction *transaction,
                                     const struct waiting_download *download, struct slice name,
                                     struct slice url) {
    struct slice progress = progress_text(transaction, download);
    return arena_printf(&transaction->arena, page_text, SLICE_PRINT(name), REFRESH_SECONDS,
                        SLICE_PRINT(url), SLICE_PRINT(name), SLICE_PRINT(progress), REFRESH_SECONDS,
                        SLICE_PRINT(url));
}

/* What an operator's page may say of the download. */
struct shown_download {
    struct arena *arena;
    struct slice name, url;
    int64_t received, expected; /* expected 0: not known */
};

static struct slice waiting_number(const struct shown_download *shown, int64_t number) {
    return slice_of_number(arena_alloc(shown->arena, SLICE_DIGITS), number);
}

static struct slice waiting_page_value(void *arg, unsigned variable) {
    const struct shown_download *shown = arg;
    bool known = shown->expected > 0 && shown->received <= shown->expected;
    switch (variable) {
    case VARIABLE_FILE: return shown->name;
    case VARIABLE_LOCATION: return shown->url;
    case VARIABLE_RECEIVED: return waiting_number(shown, shown->received);
    case VARIABLE_EXPECTED: return known ? waiting_number(shown, shown->expected) : SLICE("");
    case VARIABLE_PERCENT:
        return known ? waiting_number(shown, (int64_t)((double)shown->received * 100 /
                                                       (double)shown->expected))
                     : SLICE("");
    default: return slice_make(NULL, 0);
    }
}

/* Answers with the waiting page. */
static enum step waiting_page_send(struct transaction *transaction,
                                   const struct waiting_download *download) {
    struct arena *arena = &transaction->arena;
    struct slice name = waiting_page_name_of(url_path(&transaction->request.url));
    struct slice url =
        arena_concat(arena, SLICE(PREFIX), slice_from(download->token), SLICE("/"), name);
    struct shown_download shown = {arena, name, url, (int64_t)atomic_load(&download->received),
                                   download->expected};
    struct page_text page = {
        .purpose = PAGE_FOR_WAITING, .value = waiting_page_value, .arg = &shown};
    if (!page_write(transaction, &page))
        page.body = own_waiting_page(transaction, download, name, url);
    struct http_head *head = delivery_make_page(transaction, RESULT_SERVICE, 200, page.body);
    page_add_language(head, &page);
    http_head_add(head, SLICE("Refresh"),
                  arena_printf(arena, "%d; url=%.*s", REFRESH_SECONDS, SLICE_PRINT(url)));
    return STEP_DELIVER;
}

/* The side of the transaction that makes the download. */

static void waiting_page_note_progress(struct waiting_page *page) {
    const struct transaction *transaction = page->transaction;
    uint64_t received = adapt_chain_received(&adaptation_of(transaction)->respmod->chain);
    if (received > atomic_load(&page->download->received))
        atomic_store(&page->download->received, received);
}

static void waiting_page_on_timer(struct timer *timer) {
    struct waiting_page *page = CONTAINER_OF(timer, struct waiting_page, timer);
    CHECK_OBJ(page, WAITING_PAGE_MAGIC);
    struct transaction *transaction = page->transaction;
    struct loop *loop = transaction->net->loop;
    if (page->download == NULL) {
        page->due = true;
        loop_defer(loop, &transaction->task);
        return;
    }
    waiting_page_note_progress(page);
    loop_timer_after(loop, timer, TICK);
    uint64_t keep = patience_settings_of(transaction->settings)->keep;
    if (loop->now < atomic_load(&page->download->asked) + keep)
        return;
    page->abandoned = true;
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

/* The shortest time that a service asks for; 0: none does. */
static uint64_t waiting_page_after(struct adapter *const *services, unsigned count) {
    uint64_t least = 0;
    for (unsigned i = 0; i < count; i++) {
        uint64_t after = services[i]->settings->patience_after;
        if (after > 0 && (least == 0 || after < least))
            least = after;
    }
    return least;
}

static void waiting_page_begin(struct transaction *transaction, struct adapter *const *services,
                               unsigned count) {
    uint64_t after = waiting_page_after(services, count);
    const struct http_head *response = adaptation_of(transaction)->respmod->message.response;
    if (after == 0 || transaction->exchange->background || transaction->exchange->of_service ||
        response->status != 200 || is_html(response) || !is_navigation(transaction->request.head))
        return;
    struct waiting_page *page = arena_alloc(&transaction->arena, sizeof *page);
    INIT_OBJ(page, WAITING_PAGE_MAGIC);
    page->transaction = transaction;
    timer_init(&page->timer, waiting_page_on_timer);
    loop_timer_after(transaction->net->loop, &page->timer, after);
    transaction->parts[PART_PATIENCE] = page;
    transaction->adapting->patience = &waiting_page_class;
}

static enum step waiting_page_reply(struct transaction *transaction) {
    struct waiting_page *page = waiting_page_of(transaction);
    const struct respmod *respmod = adaptation_of(transaction)->respmod;
    const struct settings *settings = transaction->settings;
    struct loop *loop = transaction->net->loop;
    if (!page->due)
        return STEP_WAIT;
    page->due = false;
    page->download = waiting_downloads_open(
        waiting_downloads_of(transaction->host), request_client(transaction), loop->now,
        respmod->chain.decoding != NULL ? -1 : respmod->expected_length,
        patience_settings_of(settings)->space, settings->temporary_directory);
    if (page->download == NULL)
        return STEP_WAIT; /* too many downloads wait, so this request waits without a page */
    waiting_page_note_progress(page);
    respmod_keep_quiet(transaction);
    loop_timer_after(loop, &page->timer, TICK);
    transaction->net->counters.patience_pages++;
    lookup_tell_followers(transaction, SHARED_FETCH_UNSTORED);
    return waiting_page_send(transaction, page->download);
}

static void waiting_page_let_go(struct waiting_page *page) {
    struct transaction *transaction = page->transaction;
    timer_cancel(&transaction->net->loop->timers, &page->timer);
    source_close(&page->body);
    waiting_download_release(&page->download);
    struct patience_worker *worker = transaction->host->parts[PART_PATIENCE];
    timer_set(&transaction->net->loop->timers, &worker->expiry, transaction->net->loop->now);
}

static uint64_t end_of_keeping(const struct transaction *transaction) {
    return transaction->net->loop->now + patience_settings_of(transaction->settings)->keep;
}

static bool waiting_page_fail(struct waiting_page *page, const char *error) {
    struct transaction *transaction = page->transaction;
    transaction->net->counters.patience_failures++;
    waiting_download_failed(page->download, error, end_of_keeping(transaction));
    waiting_page_let_go(page);
    return false;
}

static void waiting_page_take_result(struct waiting_page *page) {
    struct transaction *transaction = page->transaction;
    respmod_give_result(transaction, &page->head, &page->body);
    if (page->body != NULL)
        source_set_waker(page->body, &transaction->task);
}

/* Appends the received part of the result to the download. */
static bool waiting_page_keep_result(struct waiting_page *page) {
    char piece[PIECE];
    struct transaction *transaction = page->transaction;
    for (unsigned turn = 0; turn < TURNS; turn++) {
        size_t got = 0;
        enum source_status status =
            page->body == NULL ? SOURCE_END : source_read(page->body, piece, PIECE, &got);
        if (status == SOURCE_WAIT)
            return true;
        if (status == SOURCE_FAILED)
            return waiting_page_fail(page, "the response ended early");
        if (status == SOURCE_END) {
            waiting_download_ready(page->download, page->head, end_of_keeping(transaction));
            waiting_page_let_go(page);
            return false;
        }
        if (!waiting_download_append(page->download, piece, got)) {
            transaction->net->counters.patience_space_refused++;
            return waiting_page_fail(page, "there is no space left to keep it (patience_space)");
        }
    }
    loop_defer(transaction->net->loop, &transaction->task);
    return true;
}

static bool waiting_page_goes_on(struct transaction *transaction) {
    struct waiting_page *page = waiting_page_of(transaction);
    if (page->download == NULL)
        return false;
    const struct adapt_chain *chain = &adaptation_of(transaction)->respmod->chain;
    if (page->abandoned)
        return waiting_page_fail(page, "the browser has stopped asking for it");
    if (chain->state == ADAPT_RUNNING)
        return true;
    if (chain->state != ADAPT_DONE)
        return waiting_page_fail(page, chain->error);
    if (page->head == NULL)
        waiting_page_take_result(page);
    return waiting_page_keep_result(page);
}

static void waiting_page_end(struct transaction *transaction) {
    struct waiting_page *page = waiting_page_of(transaction);
    timer_cancel(&transaction->net->loop->timers, &page->timer);
    if (page->download != NULL)
        waiting_page_fail(page, "the proxy has stopped it");
    transaction->adapting->patience = NULL;
}

const struct patience_class waiting_page_class = {
    .begin = waiting_page_begin,
    .wait = waiting_page_reply,
    .goes_on = waiting_page_goes_on,
    .end = waiting_page_end,
};

/* The side of the browser that asks for the download. */

static struct slice waiting_page_token_of(struct slice path) {
    size_t before = strlen(PREFIX);
    size_t length = path.length - before < WAITING_DOWNLOAD_TOKEN ? path.length - before
                                                                  : WAITING_DOWNLOAD_TOKEN;
    return slice_make(path.base + before, length);
}

/* Answers with the download, as if a service had answered. */
static enum step waiting_page_hand_over(struct transaction *transaction,
                                        struct waiting_download **downloadp) {
    struct arena *arena = &transaction->arena;
    struct slice bytes =
        arena_slice(arena, slice_make((*downloadp)->head, (*downloadp)->head_length));
    struct http_head *head = arena_alloc(arena, sizeof *head);
    if (http_head_parse_response(head, bytes.base, bytes.length, 0) <= 0) {
        waiting_download_release(downloadp);
        return fail_with(transaction, 502, "the head of the response is too large");
    }
    struct loop *loop = transaction->net->loop;
    outcome_set_result(&transaction->outcome, RESULT_SERVICE);
    struct source *body = waiting_download_body(downloadp, arena, loop);
    response_set(&transaction->response, head, &body);
    response_set_times(&transaction->response, loop->wall, loop->wall);
    transaction->net->counters.patience_delivered++;
    return STEP_STORE;
}

static enum step collect_run(struct transaction *transaction) {
    const struct address *client = request_client(transaction);
    struct slice token = waiting_page_token_of(url_path(&transaction->request.url));
    struct waiting_download *download = NULL;
    request_own(transaction);
    if (transaction->request.head->method_id == HTTP_METHOD_GET)
        download = waiting_downloads_find(waiting_downloads_of(transaction->host), token, client,
                                          transaction->net->loop->now);
    if (download == NULL)
        return fail_with(transaction, 404,
                         "there is no download at this address any more; start it again");
    enum waiting_download_state state = waiting_download_state(download);
    const char *error = download->error;
    enum step next;
    if (state == WAITING_DOWNLOAD_READY)
        return waiting_page_hand_over(transaction, &download);
    if (state == WAITING_DOWNLOAD_FAILED)
        next = fail_with(transaction, 502, error);
    else
        next = waiting_page_send(transaction, download);
    waiting_download_release(&download);
    return next;
}

static bool collect_is_needed(const struct settings *settings) {
    return settings->any_patience;
}

static bool collect_is_wanted(struct transaction *transaction) {
    return slice_starts_with(url_path(&transaction->request.url), SLICE(PREFIX));
}

static void collect_end(struct transaction *transaction) {
    response_close_body(&transaction->response);
}

const struct step_row collect_step = {
    .name = "COLLECT",
    .step = STEP_COLLECT,
    .run = collect_run,
    .is_needed = collect_is_needed,
    .is_wanted = collect_is_wanted,
    .begins = true,
    .end = collect_end,
};
