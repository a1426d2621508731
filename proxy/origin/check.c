#include "origin/check.h"

#include "base/assert.h"
#include "origin/call.h"

#include <stdio.h>

enum { FIRST_AFTER = 10 }; /* milliseconds between the first checks of two servers */

/* One server that is checked. */
struct origin_check {
    unsigned magic;
#define ORIGIN_CHECK_MAGIC 0x0419c4ecu
    struct origin_checks *checks;
    struct origin_group *group;
    struct origin_member *member; /* held */
    const struct origins_settings *settings;
    struct timer timer;
    struct task task;
    struct origin_call call;
    struct http_head response;
    char *head, *key;
    char preface[PROXY_HEADER_WRITTEN]; /* a PROXY header */
    size_t preface_length;
};

struct origin_checks {
    unsigned magic;
#define ORIGIN_CHECKS_MAGIC 0x0419c4e5u
    struct net_context *net;
    struct pool *pool;
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
        .reach = REACH_ANY,
        .security = trust == NULL ? NULL
                                  : origin_securities_find(checks->securities, key,
                                                           check->member->url.host, trust),
        .pool_key = key,
        .preface = slice_make(check->preface, check->preface_length),
        .head = slice_from(check->head),
        .method = HTTP_METHOD_GET,
        .connect_timeout = check->settings->check_timeout,
        .first_byte_timeout = check->settings->check_timeout,
        .read_timeout = check->settings->check_timeout,
        .deadline = TIMER_NEVER,
        .max_head = settings->origin.max_head,
    };
    checks->net->counters.origin_checks++;
    origin_call_start(&check->call, checks->net, checks->pool, &request, &check->response,
                      &check->task);
}

static void check_write_key(struct origin_check *check) {
    const struct url *url = &check->member->url;
    struct slice place = slice_from(check->member->host_port);
    check->key = xcalloc(1, place.length + url->host.length + ORIGIN_KEY_MORE);
    if (url_is_https(url))
        origin_security_key(check->key, place, url->host, &check->settings->trust);
    else
        memcpy(check->key, place.base, place.length);
}

static void check_start(struct origin_checks *checks, struct origin_group *group,
                        const struct origins_settings *settings, struct origin_member *member) {
    struct origin_check *check;
    ALLOC_OBJ(check, ORIGIN_CHECK_MAGIC);
    check->checks = checks;
    check->group = group;
    check->member = member;
    check->settings = settings;
    timer_init(&check->timer, check_on_timer);
    task_init(&check->task, check_on_news);
    check_write_key(check);
    if (settings->proxy_protocol != PROXY_HEADER_OFF)
        check->preface_length =
            proxy_header_write(settings->proxy_protocol, NULL, NULL, check->preface);
    int length = asprintf(&check->head,
                          "GET %s HTTP/1.1\r\n"
                          "Host: %s\r\n"
                          "User-Agent: Retort health check\r\n"
                          "Connection: close\r\n\r\n",
                          settings->health_check, member->host_port);
    ASSERT(length > 0);
    checks->list = xrealloc(checks->list, (checks->count + 1) * sizeof(struct origin_check *));
    checks->list[checks->count++] = check;
    loop_timer_after(checks->net->loop, &check->timer, FIRST_AFTER * checks->count);
}

struct origin_checks *origin_checks_new(struct net_context *net, struct pool *pool,
                                        struct origin_securities *securities,
                                        struct origin_groups *groups) {
    struct origin_checks *checks;
    ALLOC_OBJ(checks, ORIGIN_CHECKS_MAGIC);
    checks->net = net;
    checks->pool = pool;
    checks->securities = securities;
    checks->groups = origin_groups_reference(groups);
    for (size_t i = 0; i < groups->count; i++) {
        const struct origins_settings *settings = &groups->settings->origins_groups[i];
        if (settings->health_check == NULL)
            continue;
        struct origin_member **members = origin_group_hold_members(groups->list[i]);
        for (size_t j = 0; members[j] != NULL; j++)
            check_start(checks, groups->list[i], settings, members[j]);
        free(members);
    }
    return checks;
}

void origin_checks_free(struct origin_checks **checksp) {
    struct origin_checks *checks = *checksp;
    *checksp = NULL;
    if (checks == NULL)
        return;
    CHECK_OBJ(checks, ORIGIN_CHECKS_MAGIC);
    for (size_t i = 0; i < checks->count; i++) {
        struct origin_check *check = checks->list[i];
        origin_call_close(&check->call);
        task_cancel(&check->task);
        timer_cancel(&checks->net->loop->timers, &check->timer);
        origin_group_drop_member(check->group, &check->member);
        free(check->head);
        free(check->key);
        FREE_OBJ(check);
    }
    free(checks->list);
    origin_groups_release(&checks->groups);
    FREE_OBJ(checks);
}
