#include "identity/helper_question.h"

#include "base/assert.h"
#include "base/log.h"

#include <sys/epoll.h>

/* A helper that is gone is told once in this time, however many clients ask. */
enum { TELL_EVERY = 10000, LATE_RETRY = 10 };
/* Of an address, what counts as one client. */
enum { IPV4_BITS = 32, IPV6_BITS = 64 };

static void helper_question_conclude(struct helper_question *question, enum helper_says says,
                                     const char *reason) {
    question->says = says;
    question->reason = reason;
    question->on_answer(question);
}

/* Says in the log why nobody could answer. */
static void helper_question_tell(struct helper_question *question) {
    struct net_context *net = question->net;
    net->counters.identity_helper_failures++;
    if (net->questions_told != 0 && net->loop->now < net->questions_told + TELL_EVERY)
        return;
    net->questions_told = net->loop->now;
    log_warn("a helper could not say who a user is, so requests are answered with 503: %s",
             helper_job_error(question->job));
}

static void helper_question_leave(struct helper_question *question) {
    if (question->event.fd >= 0)
        loop_remove(question->net->loop, &question->event);
    timer_cancel(&question->net->loop->timers, &question->timer);
    if (!list_empty(&question->link)) {
        list_remove(&question->link);
        question->net->question_count--;
    }
}

static void helper_question_finish(struct helper_question *question) {
    enum helper_status status = helper_job_status(question->job);
    helper_question_leave(question);
    if (status == HELPER_UNUSABLE) {
        helper_question_tell(question);
        helper_question_conclude(question, HELPER_SAYS_NOTHING,
                                 "the helper's pool does not take such questions");
    } else if (status != HELPER_DONE) {
        helper_question_tell(question);
        helper_question_conclude(question, HELPER_SAYS_NOTHING, "the helper does not answer");
    } else if (!helper_line_valid(helper_job_parameters(question->job)) ||
               !helper_line_read(helper_job_parameters(question->job), &question->answer)) {
        question->net->counters.identity_helper_failures++;
        helper_question_conclude(question, HELPER_SAYS_NOTHING, "the helper's answer is none");
    } else {
        static const enum helper_says says[] = {[HELPER_LINE_OK] = HELPER_SAYS_YES,
                                                [HELPER_LINE_ERR] = HELPER_SAYS_NO,
                                                [HELPER_LINE_BROKEN] = HELPER_SAYS_BROKEN};
        helper_question_conclude(question, says[question->answer.result], NULL);
    }
}

static void helper_question_on_event(struct event *event, uint32_t events) {
    struct helper_question *question = CONTAINER_OF(event, struct helper_question, event);
    (void)events;
    helper_job_run(question->job);
    if (helper_job_finished(question->job))
        helper_question_finish(question);
}

static void helper_question_on_timeout(struct timer *timer) {
    struct helper_question *question = CONTAINER_OF(timer, struct helper_question, timer);
    helper_job_run(question->job);
    if (helper_job_finished(question->job))
        helper_question_finish(question);
    else /* the loop's clock is a little ahead */
        loop_timer_after(question->net->loop, &question->timer, LATE_RETRY);
}

/* May the client ask one more? */
static bool helper_question_may_ask(const struct helper_question *question) {
    const struct net_context *net = question->net;
    unsigned own = 0;
    if (net->question_count >= QUESTIONS_MOST)
        return false;
    if (net->question_count < QUESTIONS_OF_CLIENT)
        return true;
    char text[ADDRESS_NETWORK_KEY], other[ADDRESS_NETWORK_KEY];
    struct slice client = address_network_key(&question->client, IPV4_BITS, IPV6_BITS, text);
    LIST_FOR_EACH (link, &net->questions) {
        const struct helper_question *one = CONTAINER_OF(link, struct helper_question, link);
        own += slice_equal(client, address_network_key(&one->client, IPV4_BITS, IPV6_BITS, other));
    }
    return own < QUESTIONS_OF_CLIENT;
}

void helper_question_init(struct helper_question *question, struct net_context *net,
                          const struct address *client, void *owner,
                          void (*on_answer)(struct helper_question *question)) {
    *question = (struct helper_question){
        .net = net, .client = *client, .owner = owner, .on_answer = on_answer};
}

/* Starts the job, with a NUL between two fields. */
static void helper_question_start(struct helper_question *question,
                                  const struct helper_place *place, const struct slice *fields,
                                  size_t count) {
    char client[ADDRESS_TEXT], text[QUESTION_FIELDS], *at = text;
    for (size_t i = 0; i < count; i++) {
        ASSERT(fields[i].length < QUESTION_FIELDS - (size_t)(at - text));
        at = slice_put(at, fields[i]);
        *at++ = '\0';
    }
    question->job = helper_job_start(&(struct helper_request){
        .socket = place->socket,
        .pool = slice_from(place->pool),
        .parameters = slice_make(text, (size_t)(at - text) - 1),
        .body = -1,
        .milliseconds = (uint32_t)place->timeout,
        .client = slice_make(client, address_format_ip(&question->client, client)),
    });
    explicit_bzero(text, sizeof text); /* one of them may be a password */
}

void helper_question_ask(struct helper_question *question, const struct helper_place *place,
                         const struct slice *fields, size_t count) {
    struct net_context *net = question->net;
    list_init(&question->link);
    event_init(&question->event);
    timer_init(&question->timer, helper_question_on_timeout);
    if (!helper_question_may_ask(question)) {
        net->counters.identity_overloads++;
        helper_question_conclude(question, HELPER_SAYS_NOTHING, "too many questions wait");
        return;
    }
    net->counters.identity_helper_questions++;
    helper_question_start(question, place, fields, count);
    if (helper_job_finished(question->job)) {
        helper_question_finish(question);
        return;
    }
    if (!loop_add(net->loop, &question->event, helper_job_fd(question->job), EPOLLIN,
                  helper_question_on_event)) {
        net->counters.identity_helper_failures++;
        helper_question_conclude(question, HELPER_SAYS_NOTHING, "there is no memory");
        return;
    }
    list_append(&net->questions, &question->link);
    net->question_count++;
    loop_timer_after(net->loop, &question->timer, place->timeout);
}

bool helper_question_next(struct helper_question *question, struct helper_line_pair *pair) {
    return helper_line_next(&question->answer, pair) == HELPER_LINE_PAIR;
}

void helper_question_end(struct helper_question *question) {
    if (question->job == NULL)
        return;
    helper_question_leave(question);
    helper_job_end(&question->job);
}
