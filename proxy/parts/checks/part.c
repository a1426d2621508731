/*
 * The part checks: health checks. Each server of a group with a health_check is asked for that path every
 * check_interval, and the group is told the outcome.
 *
 * One worker makes the checks for all workers. Each check is an ordinary call to the origin, on a
 * connection of its own. A status from 200 to 399 is good. Threads: the worker's.
 */
#include "part.h"

#include "base/assert.h"
#include "base/failure.h"
#include "origin/call.h"
#include "settings/option_rows.h"
#include "settings/part_settings.h"
#include "transaction/transaction.h"

enum { FIRST_AFTER = 10 }; /* milliseconds between the first checks of two servers */

/* One server that is checked. */
struct origin_check {
    unsigned magic;
#define ORIGIN_CHECK_MAGIC 0x0419c4ecu
    struct origin_checks *checks;
    struct origin_group *group;
    struct origin_member *member; /* held */
    const struct origins_settings *settings;
    enum origin_protocols protocols;
    struct timer timer;
    struct task task;
    struct origin_call call;
    struct http_head response;
    struct http_head request;
    struct arena arena; /* of one check */
    char *key;
    char preface[PROXY_HEADER_WRITTEN]; /* a PROXY header */
    size_t preface_length;
};

struct origin_checks {
    unsigned magic;
#define ORIGIN_CHECKS_MAGIC 0x0419c4e5u
    struct net_context *net;
    struct origin_pool *connections;
    struct origin_securities *securities;
    struct origin_groups *groups; /* referenced */
    struct origin_check **list;
    size_t count;
};

static const char *check_judge(const struct origin_check *check) {
    if (check->call.state == ORIGIN_FAILED)
        return check->call.error;
    return check->response.status < 400 ? NULL : "its health check was answered with an error";
}

static void check_on_news(struct task *task) {
    struct origin_check *check = CONTAINER_OF(task, struct origin_check, task);
    CHECK_OBJ(check, ORIGIN_CHECK_MAGIC);
    struct net_context *net = check->checks->net;
    if (check->call.state != ORIGIN_FAILED && check->call.state != ORIGIN_ANSWERED)
        return;
    const char *error = check_judge(check);
    net->counters.origin_check_failures += error != NULL;
    net->counters.origin_servers_down +=
        origin_group_checked(check->group, check->member, net->loop->now, net->loop, error);
    origin_call_close(&check->call);
    arena_release(&check->arena);
    loop_timer_after(net->loop, &check->timer, check->settings->check_interval);
}

static void check_on_timer(struct timer *timer) {
    struct origin_check *check = CONTAINER_OF(timer, struct origin_check, timer);
    CHECK_OBJ(check, ORIGIN_CHECK_MAGIC);
    struct origin_checks *checks = check->checks;
    const struct settings *settings = checks->groups->settings;
    const struct tls_trust_settings *trust =
        url_is_https(&check->member->url) ? &check->settings->trust : NULL;
    const struct slice key = slice_from(check->key);
    const struct origin_request request = {
        .host = check->member->url.host,
        .port = check->member->url.port,
        .egress = check->member->egress,
        .security = trust == NULL
                        ? NULL
                        : origin_securities_find(checks->securities, key, check->member->named.host,
                                                 trust, check->protocols),
        .pool_key = key,
        .preface = slice_make(check->preface, check->preface_length),
        .protocols = check->protocols,
        .fields = &check->request,
        .arena = &check->arena,
        .method = HTTP_METHOD_GET,
        .connect_timeout = check->settings->check_timeout,
        .first_byte_timeout = check->settings->check_timeout,
        .read_timeout = check->settings->check_timeout,
        .deadline = TIMER_NEVER,
        .max_head = settings->origin.max_head,
    };
    checks->net->counters.origin_checks++;
    origin_call_start(&check->call, checks->net, checks->connections, &request, &check->response,
                      &check->task);
}

/* As transaction/route.c names connections for requests, whose TLS sessions it shares. */
static void check_write_key(struct origin_check *check) {
    const struct origin_member *member = check->member;
    struct slice place = slice_from(member->host_port), name = member->named.host;
    struct slice mark = slice_from(egress_mark(member->egress));
    const struct tls_trust_settings *trust =
        url_is_https(&member->url) ? &check->settings->trust : NULL;
    check->protocols = origin_protocols_of(check->settings->http2, trust != NULL);
    check->key = xcalloc(1, place.length + name.length + ORIGIN_KEY_MORE + mark.length + 1);
    struct slice key = origin_security_key(check->key, place, name, trust, check->protocols);
    memcpy(check->key + key.length, mark.base, mark.length);
}

static void check_write_request(struct origin_check *check) {
    const struct origin_member *member = check->member;
    struct http_head *request = &check->request;
    bool is_found = egress_is_found(member->egress);
    http_head_init(request);
    request->method = SLICE("GET");
    request->method_id = HTTP_METHOD_GET;
    request->target = slice_from(check->settings->health_check);
    http_head_set(request, HTTP_HOST,
                  is_found ? member->named.host : slice_from(member->host_port));
    http_head_set(request, HTTP_USER_AGENT, SLICE("Retort health check"));
    http_head_set(request, HTTP_CONNECTION, SLICE("close"));
}

static void check_start(struct origin_checks *checks, struct origin_group *group,
                        const struct origins_settings *settings, struct origin_member *member) {
    struct origin_check *check;
    ALLOC_OBJ(check, ORIGIN_CHECK_MAGIC);
    check->checks = checks;
    check->group = group;
    check->member = member;
    check->settings = settings;
    arena_init(&check->arena);
    timer_init(&check->timer, check_on_timer);
    task_init(&check->task, check_on_news);
    check_write_key(check);
    PARTS_FOR_EACH (number, proxy_protocol.write)
        if (settings->proxy_protocol != PROXY_HEADER_OFF)
            check->preface_length = part_table[number]->proxy_protocol.write(
                settings->proxy_protocol, NULL, NULL, check->preface);
    check_write_request(check);
    checks->list = xrealloc(checks->list, (checks->count + 1) * sizeof(struct origin_check *));
    checks->list[checks->count++] = check;
    loop_timer_after(checks->net->loop, &check->timer, FIRST_AFTER * checks->count);
}

static void check_end(struct origin_check *check) {
    origin_call_close(&check->call);
    arena_release(&check->arena);
    task_cancel(&check->task);
    timer_cancel(&check->checks->net->loop->timers, &check->timer);
    origin_group_drop_member(check->group, &check->member);
    free(check->key);
    FREE_OBJ(check);
}

static bool checks_have(const struct origin_checks *checks, const struct origin_member *member) {
    for (size_t i = 0; i < checks->count; i++)
        if (checks->list[i]->member == member)
            return true;
    return false;
}

static bool members_have(struct origin_member *const *members, const struct origin_member *member) {
    while (*members != NULL && *members != member)
        members++;
    return *members != NULL;
}

/* Ends the checks of those that are not members any more. */
static void checks_end_others(struct origin_checks *checks, const struct origin_group *group,
                              struct origin_member *const *members) {
    size_t kept = 0;
    for (size_t i = 0; i < checks->count; i++) {
        struct origin_check *check = checks->list[i];
        if (check->group == group && !members_have(members, check->member))
            check_end(check);
        else
            checks->list[kept++] = check;
    }
    checks->count = kept;
}

/* Begins the checks of new members, and takes the references. */
static void checks_begin(struct origin_checks *checks, struct origin_group *group,
                         const struct origins_settings *settings, struct origin_member **members) {
    for (; *members != NULL; members++) {
        struct origin_member *member = *members;
        if (checks_have(checks, member))
            origin_group_drop_member(group, &member);
        else
            check_start(checks, group, settings, member);
    }
}

static void checks_renew(struct transaction_host *host, struct origin_group *group) {
    struct origin_checks *checks = host->parts[PART_CHECKS];
    if (checks == NULL)
        return;
    CHECK_OBJ(checks, ORIGIN_CHECKS_MAGIC);
    for (size_t i = 0; i < checks->groups->count; i++) {
        const struct origins_settings *settings = &checks->groups->settings->origins_groups[i];
        if (checks->groups->list[i] != group || settings->health_check == NULL)
            continue;
        struct origin_member **members = origin_group_hold_members(group);
        checks_end_others(checks, group, members);
        checks_begin(checks, group, settings, members);
        free(members);
    }
}

static void checks_cut(struct transaction_host *host) {
    struct origin_checks *checks = host->parts[PART_CHECKS];
    host->parts[PART_CHECKS] = NULL;
    if (checks == NULL)
        return;
    CHECK_OBJ(checks, ORIGIN_CHECKS_MAGIC);
    for (size_t i = 0; i < checks->count; i++)
        check_end(checks->list[i]);
    free(checks->list);
    origin_groups_release(&checks->groups);
    FREE_OBJ(checks);
}

static void checks_change(struct transaction_host *host) {
    struct origin_checks *checks;
    checks_cut(host);
    if (host->index != 0)
        return;
    ALLOC_OBJ(checks, ORIGIN_CHECKS_MAGIC);
    checks->net = host->net;
    checks->connections = host->origins;
    checks->securities = host->origin_securities;
    checks->groups = origin_groups_reference(host->snapshot->origins);
    host->parts[PART_CHECKS] = checks;
    for (size_t i = 0; i < checks->groups->count; i++)
        checks_renew(host, checks->groups->list[i]);
}

static void checks_join(struct transaction_host *host, void *state) {
    (void)state;
    checks_change(host);
}

/* Settings. */

static bool is_health_path(const char *text, char *error, size_t error_size) {
    if (text[0] == '/' && text[strcspn(text, " \t#")] == '\0')
        return true;
    return failure(error, error_size, "is not a path: write \"/healthz\"");
}

#define ORIGINS(member) ONE("origins", struct origins_settings, member)

static const struct option core_rows[] = {
    {ORIGINS(health_check), .name = "health_check", .after = "local_destinations", STRING,
     .check = is_health_path,
     .fallback_note = "none; failures of clients' requests take servers down",
     DOC "Sets a path that Retort requests from each server every check_interval. A status from "
         "200 to 399 brings a server up again; anything else counts as a failure, like that of a "
         "client's request. With health checks, a server that is down is never tried with a "
         "client's request.",
     .example = "\"/healthz\""},
    {ORIGINS(check_interval), .name = "check_interval", .after = "health_check", TIMEOUT,
     DEFAULT("5s"), DOC "Sets the pause between two health checks of a server.",
     .example = "\"1s\""},
    {ORIGINS(check_timeout), .name = "check_timeout", .after = "check_interval", TIMEOUT,
     DEFAULT("2s"),
     DOC "Sets how long a health check may take to connect, and how long it may then wait for "
         "the response.",
     .example = "\"500ms\""},
    {.name = NULL},
};

static const struct part_settings checks_part_settings = {.core_options = core_rows};

const struct part part_checks = {
    .settings = &checks_part_settings,
    .worker = {.join = checks_join,
               .change = checks_change,
               .members_changed = checks_renew,
               .drain = checks_cut,
               .cut = checks_cut,
               .leave = checks_cut},
};
