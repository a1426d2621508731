#include "limits/step.h"

#include "base/assert.h"
#include "limits/limits.h"
#include "transaction/fail.h"
#include "transaction/forwarding.h"
#include "transaction/request_rules.h"
#include "transaction/transaction.h"

/* A piece is what flows in a twentieth of a second, and has between LEAST and MOST bytes. CREDIT is
 * how long the bandwidth is saved up while nobody uses it, in nanoseconds. */
enum { PIECES_A_SECOND = 20, LEAST = 256, MOST = 64 * 1024 };
#define CREDIT      UINT64_C(100000000)
#define MILLISECOND UINT64_C(1000000)

static struct shared_pace *shared_pace_of(struct pace *base) {
    struct shared_pace *pace = CONTAINER_OF(base, struct shared_pace, base);
    CHECK_OBJ(pace, SHARED_PACE_MAGIC);
    return pace;
}

static void shared_pace_on_timeout(struct timer *timer) {
    struct shared_pace *pace = CONTAINER_OF(timer, struct shared_pace, timer);
    CHECK_OBJ(pace, SHARED_PACE_MAGIC);
    pace->base.on_ready(pace->base.arg);
}

static uint64_t shared_pace_piece(const struct shared_pace *pace) {
    uint64_t least = pace->shares[0].rate;
    for (unsigned i = 1; i < pace->count; i++)
        if (pace->shares[i].rate < least)
            least = pace->shares[i].rate;
    uint64_t piece = least / PIECES_A_SECOND;
    return piece < LEAST ? LEAST : piece > MOST ? MOST : piece;
}

static void shared_pace_reserve(struct shared_pace *pace) {
    pace->granted = shared_pace_piece(pace);
    pace->ready_at = 0;
    for (unsigned i = 0; i < pace->count; i++) {
        uint64_t cost = bucket_cost(pace->granted, pace->shares[i].rate);
        uint64_t at = limit_table_reserve(pace->table, pace->shares[i].entry, pace->way, cost,
                                          CREDIT, pace->loop->now_nanoseconds);
        if (at > pace->ready_at)
            pace->ready_at = at;
    }
}

static size_t shared_pace_ask(struct pace *base, size_t wanted) {
    struct shared_pace *pace = shared_pace_of(base);
    if (pace->count == 0)
        return wanted;
    if (pace->granted == 0)
        shared_pace_reserve(pace);
    if (pace->ready_at > pace->loop->now_nanoseconds) {
        timer_set(&pace->loop->timers, &pace->timer,
                  (pace->ready_at + MILLISECOND - 1) / MILLISECOND);
        return 0;
    }
    return wanted < pace->granted ? wanted : (size_t)pace->granted;
}

static void shared_pace_used(struct pace *base, size_t bytes) {
    struct shared_pace *pace = shared_pace_of(base);
    pace->granted -= bytes < pace->granted ? bytes : pace->granted;
}

static void shared_pace_end(struct pace *base) {
    struct shared_pace *pace = shared_pace_of(base);
    timer_cancel(&pace->loop->timers, &pace->timer);
    for (unsigned i = 0; i < pace->count; i++)
        limit_table_give_back(pace->table, pace->shares[i].entry, pace->way,
                              bucket_cost(pace->granted, pace->shares[i].rate));
    pace->granted = 0;
    pace->count = 0;
}

static const struct pace_class shared_pace_class = {
    .ask = shared_pace_ask,
    .used = shared_pace_used,
    .end = shared_pace_end,
};

void shared_pace_init(struct shared_pace *pace, struct loop *loop, struct limit_table *table,
                      enum pace_way way) {
    *pace = (struct shared_pace){
        .magic = SHARED_PACE_MAGIC,
        .base = {.class = &shared_pace_class},
        .loop = loop,
        .table = table,
        .way = way,
    };
    timer_init(&pace->timer, shared_pace_on_timeout);
}

/* LIMIT: what clients, users and classes use. */

/* Seconds in which a request that found others under way may be tried again. */
enum { RETRY_SOON = 1 };

static struct limits *limits_at_work(const struct transaction *transaction) {
    return transaction->host->parts[PART_LIMITS];
}

static struct slice name_of(const struct transaction *transaction,
                            const struct limit_settings *limit, char *out) {
    const struct class_user *user = transaction->request.user;
    if (limit->by == LIMIT_BY_CLASS)
        return limit_name_of_all(out);
    if (limit->by == LIMIT_BY_USER && user != NULL)
        return limit_name_of_user(user->name, out);
    return address_network_key(request_client(transaction), limit->ipv4_prefix, limit->ipv6_prefix,
                               out);
}

static enum step limit_break_off(struct transaction *transaction, const char *reason) {
    exchange_abort(transaction->exchange);
    outcome_set_page(&transaction->outcome, RESULT_DENIED, limit_step.name);
    outcome_set_error(&transaction->outcome, reason);
    return STEP_LOG;
}

/* `wait`: seconds. The connection of a trusted proxy carries the requests of other clients too, so it
 * stays open. */
static enum step limit_answer(struct transaction *transaction, enum limit_answer answer,
                              uint64_t wait, const char *reason) {
    if (answer == LIMIT_ANSWER_CLOSE && !forwarding_peer_is_trusted(transaction->exchange))
        return limit_break_off(transaction, reason);
    return fail_later(transaction, answer == LIMIT_ANSWER_503 ? 503 : 429, reason, (unsigned)wait);
}

static void limit_note(struct transaction *transaction, const struct limit_settings *limit,
                       enum limit_count count) {
    outcome_set_limit(&transaction->outcome, limit->name);
    transaction->net->counters.limit_refused++;
    limit_section_refused(limit->section, count);
}

static enum step limit_refuse(struct transaction *transaction, const struct limit_settings *limit,
                              const struct limit_verdict *verdict) {
    const uint64_t second = 1000000000;
    switch (verdict->reason) {
    case LIMIT_RATE:
        limit_note(transaction, limit, LIMIT_COUNT_RATE);
        return limit_answer(transaction, limit->status, (verdict->wait + second - 1) / second,
                            "too many requests have come in a short time: wait before the next");
    case LIMIT_ACTIVE:
        limit_note(transaction, limit, LIMIT_COUNT_CONCURRENT);
        return limit_answer(transaction, limit->status, RETRY_SOON,
                            "too many requests are under way at the same time");
    default:
        limit_note(transaction, limit, LIMIT_COUNT_TABLE);
        transaction->net->counters.limit_table_full++;
        return limit_answer(transaction, LIMIT_ANSWER_503, RETRY_SOON,
                            "the proxy counts as many clients as it can (limits.entries)");
    }
}

/* A connection that a trusted proxy in front has opened carries the requests of many. It is none of
 * the client's or the user's whom the proxy names. A request that a service makes comes on none. */
static bool counts_connection(const struct transaction *transaction,
                              const struct limit_settings *limit) {
    return limit->connections > 0 && !transaction->exchange->of_service &&
           (limit->by == LIMIT_BY_CLASS || transaction->exchange->behind == NULL);
}

/* The connection that the request came on counts until it is closed. */
static bool limit_take_connection(struct transaction *transaction,
                                  const struct limit_settings *limit, struct slice name,
                                  enum step *next) {
    const struct limit_demand demand = {.most_active = limit->connections};
    const struct limit_key key = {limit_section_connections(limit->section), name};
    struct limit_verdict verdict;
    struct limits *limits = limits_at_work(transaction);
    if (connection_holds_take(&transaction->exchange->ends->holds, limits, &key, &demand,
                              transaction->net->loop->now_nanoseconds, &verdict))
        return true;
    if (verdict.reason == LIMIT_TABLE_FULL) {
        *next = limit_refuse(transaction, limit, &verdict);
        return false;
    }
    limit_note(transaction, limit, LIMIT_COUNT_CONNECTIONS);
    *next = limit_answer(transaction, limit->status, RETRY_SOON,
                         "too many connections are open at the same time");
    if (*next == STEP_DELIVER)
        delivery_close_connection(transaction);
    return false;
}

/* False: the request is over a limit, and *next says what follows. */
static bool limit_take(struct transaction *transaction, struct limit_hold *hold, enum step *next) {
    const struct limit_settings *limit = hold->limit;
    struct limit_verdict verdict;
    char text[LIMIT_NAME];
    if (!limit->counts)
        return true;
    const struct limit_key key = {limit->section, name_of(transaction, limit, text)};
    if (counts_connection(transaction, limit) &&
        !limit_take_connection(transaction, limit, key.name, next))
        return false;
    hold->entry = limit_table_take(limits_at_work(transaction)->table, &key, &limit->demand,
                                   transaction->net->loop->now_nanoseconds, &verdict);
    transaction->net->counters.limit_entries_evicted += verdict.evicted;
    if (hold->entry == NULL)
        *next = limit_refuse(transaction, limit, &verdict);
    return hold->entry != NULL;
}

/* A request that is refused has used nothing of the sections before. */
static void limit_return_all(struct transaction *transaction) {
    struct limit_state *state = limit_state(transaction);
    struct limit_table *table = limits_at_work(transaction)->table;
    for (unsigned i = 0; i < state->count; i++)
        if (state->holds[i].entry != NULL)
            limit_table_return(table, &state->holds[i].entry, &state->holds[i].limit->demand);
}

static bool limit_take_all(struct transaction *transaction, enum step *next) {
    struct limit_state *state = limit_state(transaction);
    for (unsigned i = 0; i < state->count; i++)
        if (!limit_take(transaction, &state->holds[i], next)) {
            limit_return_all(transaction);
            return false;
        }
    return true;
}

/* Paces. */

static uint64_t limit_bandwidth(const struct limit_settings *limit, enum pace_way way) {
    return way == PACE_DOWN ? limit->bandwidth : limit->upload_bandwidth;
}

static uint64_t limit_size(const struct limit_settings *limit, enum pace_way way) {
    return way == PACE_DOWN ? limit->max_response : limit->max_request;
}

static void limit_make_pace(struct transaction *transaction, enum pace_way way) {
    struct limit_state *state = limit_state(transaction);
    struct arena *arena = &transaction->arena;
    struct pace_share *shares = arena_alloc(arena, state->count * sizeof *shares);
    struct shared_pace *pace = arena_alloc(arena, sizeof *pace);
    shared_pace_init(pace, transaction->net->loop, limits_at_work(transaction)->table, way);
    pace->shares = shares;
    for (unsigned i = 0; i < state->count; i++) {
        const struct limit_settings *limit = state->holds[i].limit;
        uint64_t rate = limit_bandwidth(limit, way), most = limit_size(limit, way);
        if (rate > 0)
            shares[pace->count++] = (struct pace_share){state->holds[i].entry, rate};
        if (most > 0 && (pace->base.most == 0 || most < pace->base.most))
            pace->base.most = most;
    }
    if (pace->count == 0 && pace->base.most == 0)
        return;
    state->paces[way] = pace;
    transaction->exchange->paces[way] = &pace->base;
}

/* The section with the least limit of a body. NULL: none has one. */
static const struct limit_settings *limit_of_size(const struct limit_state *state,
                                                  enum pace_way way) {
    const struct limit_settings *smallest = NULL;
    for (unsigned i = 0; i < state->count; i++) {
        const struct limit_settings *limit = state->holds[i].limit;
        uint64_t most = limit_size(limit, way);
        if (most > 0 && (smallest == NULL || most < limit_size(smallest, way)))
            smallest = limit;
    }
    return smallest;
}

static enum step limit_refuse_request(struct transaction *transaction) {
    const struct limit_settings *limit = limit_of_size(limit_state(transaction), PACE_UP);
    limit_note(transaction, limit, LIMIT_COUNT_REQUEST_SIZE);
    return fail_with(transaction, 413, "the request's body is larger than a limit section allows");
}

static void limit_refuse_reply(struct transaction *transaction) {
    const struct limit_settings *limit = limit_state(transaction)->smallest;
    const struct reply *reply = &transaction->delivery.reply;
    if (limit == NULL || transaction->outcome.limit != NULL || reply->body == NULL ||
        reply->body == transaction->delivery.page || transaction->exchange->is_head ||
        reply->length < 0 || (uint64_t)reply->length <= limit->max_response)
        return;
    limit_note(transaction, limit, LIMIT_COUNT_RESPONSE_SIZE);
    fail_with(transaction, 403, "the response is larger than a limit section allows");
    outcome_set_result(&transaction->outcome, RESULT_DENIED);
}

static void limit_note_end(struct transaction *transaction) {
    struct limit_state *state = limit_state(transaction);
    if (!transaction->exchange->reply_too_large || transaction->outcome.limit != NULL)
        return;
    limit_note(transaction, state->smallest, LIMIT_COUNT_RESPONSE_SIZE);
    outcome_set_error(&transaction->outcome, "the response is larger than a limit section allows");
}

static const struct limiting_class limit_class = {
    .refuse_reply = limit_refuse_reply,
    .refuse_request = limit_refuse_request,
    .note_end = limit_note_end,
};

/* Finds the sections that match. False: there is none. */
static bool limit_find_sections(struct transaction *transaction) {
    const struct settings *settings = transaction->settings;
    const struct limit_settings *limits = limits_settings_of(settings)->list;
    const uint64_t *bits = request_rules_without_type(transaction);
    size_t first = settings->rule_first[RULE_LIMIT], end = first + settings->rule_count[RULE_LIMIT];
    unsigned count = 0;
    for (size_t rule = rules_next(bits, first, end); rule < end;
         rule = rules_next(bits, rule + 1, end))
        count++;
    if (count == 0)
        return false;
    struct limit_state *state = arena_alloc(&transaction->arena, sizeof *state);
    *state = (struct limit_state){
        .base = {&limit_class},
        .holds = arena_alloc(&transaction->arena, count * sizeof *state->holds),
        .count = count,
    };
    struct limit_hold *hold = state->holds;
    for (size_t rule = rules_next(bits, first, end); rule < end;
         rule = rules_next(bits, rule + 1, end))
        *hold++ = (struct limit_hold){&limits[rule - first], NULL};
    transaction->limiting = &state->base;
    return true;
}

static enum step limit_run(struct transaction *transaction) {
    enum step next;
    if (!limit_find_sections(transaction))
        return STEP_NEXT;
    const struct limit_settings *limit = limit_of_size(limit_state(transaction), PACE_UP);
    if (limit != NULL && transaction->exchange->body_length > (int64_t)limit->max_request)
        return limit_refuse_request(transaction);
    if (!limit_take_all(transaction, &next))
        return next;
    limit_state(transaction)->smallest = limit_of_size(limit_state(transaction), PACE_DOWN);
    limit_make_pace(transaction, PACE_DOWN);
    if (transaction->exchange->body_length != 0 || transaction->exchange->upgrade.length > 0 ||
        transaction->request.kind == REQUEST_CONNECT)
        limit_make_pace(transaction, PACE_UP);
    return STEP_NEXT;
}

static void limit_end(struct transaction *transaction) {
    struct limit_state *state = limit_state(transaction);
    struct limits *limits = limits_at_work(transaction);
    if (state == NULL)
        return;
    for (unsigned i = 0; i < PACE_WAYS; i++)
        if (state->paces[i] != NULL)
            pace_end(&state->paces[i]->base);
    for (unsigned i = 0; i < state->count; i++)
        limit_table_leave(limits->table, &state->holds[i].entry);
}

static bool limit_is_needed(const struct settings *settings) {
    return limits_settings_of(settings)->count > 0;
}

static bool limit_is_wanted(struct transaction *transaction) {
    return !transaction->exchange->background;
}

const struct step_row limit_step = {
    .name = "LIMIT",
    .step = STEP_LIMIT,
    .run = limit_run,
    .is_needed = limit_is_needed,
    .is_wanted = limit_is_wanted,
    .begins = true,
    .let_go = limit_end,
    .end = limit_end,
};
