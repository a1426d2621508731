#include "inject/answer.h"

#include "service/adapted_head.h"
#include "service/url_pattern.h"

#include <poll.h>
#include <stdio.h>

void answer_watch(struct answer *answer) {
    service_wait_none(answer->exchange);
    if (answer->job != NULL && !helper_job_finished(answer->job))
        answer->exchange->wait =
            (struct service_wait){.fd = helper_job_fd(answer->job),
                                  .events = POLLIN,
                                  .deadline = helper_job_deadline(answer->job)};
}

/* The job has finished without a text to insert. */
static void answer_report(struct answer *answer) {
    char line[240];
    enum helper_status status = helper_job_status(answer->job);
    if (status == HELPER_UNCHANGED)
        return;
    service_count(answer->exchange->host,
                  status == HELPER_TIMEOUT ? INJECT_LATE : INJECT_HELPER_FAILED);
    if (helper_job_outage(answer->job) != NULL)
        service_failed(answer->exchange, helper_job_outage(answer->job));
    snprintf(line, sizeof line, "a page passes without its text: %s",
             helper_job_error(answer->job));
    service_log(answer->exchange->host, LOG_LEVEL_WARN, line);
}

/* What the helper is told: the address, then the URL and the name on lines of their own. */
static struct slice answer_about(const struct answer *answer, bool with_url) {
    const struct service_exchange *exchange = answer->exchange;
    struct slice url = SLICE("");
    if (with_url)
        url = exchange_url(exchange);
    if (url.length == 0 && exchange->client_user.length == 0)
        return exchange->client_ip;
    return arena_concat(exchange->arena, exchange->client_ip, SLICE("\n"), url, SLICE("\n"),
                        exchange->client_user);
}

static bool answer_find_in_cache(struct answer *answer) {
    char room[TEXT_CACHE_TEXT_MAX];
    size_t length;
    if (answer->ttl == 0 ||
        !text_cache_find(answer->cache, answer->about, service_now(), room, &length))
        return false;
    answer->text = arena_slice(answer->exchange->arena, slice_make(room, length));
    return true;
}

static void answer_ask_helper(struct answer *answer) {
    const struct inject_settings *settings = answer->settings;
    struct helper_request request = {.socket = settings->helperd,
                                     .pool = slice_from(settings->pool),
                                     .parameters = answer->about,
                                     .body = -1,
                                     .milliseconds = (uint32_t)settings->deadline,
                                     .client = answer->exchange->client_ip};
    answer->job = helper_job_start(&request);
}

/* The helper has answered, with a text or without one. Both answers are worth keeping. */
static void answer_take(struct answer *answer) {
    enum helper_status status = helper_job_status(answer->job);
    if (status != HELPER_DONE && status != HELPER_UNCHANGED) {
        answer_report(answer);
        return;
    }
    answer->text = helper_job_parameters(answer->job);
    if (answer->ttl > 0)
        text_cache_store(answer->cache, answer->about, answer->text,
                         service_now() + (int64_t)answer->ttl);
}

bool answer_has_come(struct answer *answer) {
    if (answer->job == NULL || answer->is_taken)
        return true;
    helper_job_run(answer->job);
    answer_watch(answer);
    if (!helper_job_finished(answer->job))
        return false;
    answer_take(answer);
    answer->is_taken = true;
    return true;
}

bool answer_ask(struct answer *answer, bool with_url) {
    answer->about = answer_about(answer, with_url);
    if (answer_find_in_cache(answer))
        return answer->text.length > 0;
    answer_ask_helper(answer);
    if (helper_job_finished(answer->job)) { /* nobody there */
        answer_report(answer);
        return false;
    }
    answer_watch(answer);
    return true;
}

void answer_end(struct answer *answer) {
    helper_job_end(&answer->job);
}
