#include "origin/group.h"

#include "base/assert.h"
#include "base/clocks.h"
#include "base/log.h"

#include <stdio.h>
#include <time.h>
#include <xxhash.h>

static _Atomic uint64_t next_number = 1;

/* Members. */

static struct origin_member *member_new(const struct origin_server_settings *server) {
    struct origin_member *member;
    ALLOC_OBJ(member, ORIGIN_MEMBER_MAGIC);
    member->number = atomic_fetch_add(&next_number, 1);
    member->text = xstrdup(server->text);
    ASSERT(url_parse(&member->url, slice_from(member->text)));
    bool v6 = member->url.host_is_ipv6;
    int length = asprintf(&member->host_port, "%s%.*s%s:%u", v6 ? "[" : "",
                          SLICE_PRINT(member->url.host), v6 ? "]" : "", member->url.port);
    ASSERT(length > 0);
    /* The order depends on host and port and not on the number, so it is the same in all proxies
     * and after each start. */
    member->seed = XXH3_64bits(member->host_port, (size_t)length);
    member->references = 1;
    member->listed = true;
    return member;
}

void origin_member_release(struct origin_member *member) {
    CHECK_OBJ(member, ORIGIN_MEMBER_MAGIC);
    if (--member->references > 0)
        return;
    ASSERT(member->active == 0);
    free(member->text);
    free(member->host_port);
    free(member->error);
    FREE_OBJ(member);
}

static void origin_group_come_up(struct origin_group *group, struct origin_member *member,
                                 uint64_t now) {
    member->state = ORIGIN_MEMBER_UP;
    member->up_since = now;
    member->credit = 0;
    log_info("origins %s: server %s is up again", group->name, member->text);
}

void origin_member_succeeded(struct origin_group *group, struct origin_member *member,
                             uint64_t now) {
    member->failures = 0;
    if (member->state == ORIGIN_MEMBER_DOWN)
        origin_group_come_up(group, member, now);
}

static uint64_t retry_time(const struct origin_group *group, const struct origin_member *member,
                           uint64_t now) {
    return group->checked ? TIMER_NEVER : now + member->back_off;
}

static void origin_group_go_down(struct origin_group *group, struct origin_member *member,
                                 uint64_t now) {
    member->state = ORIGIN_MEMBER_DOWN;
    member->downs++;
    member->back_off = group->rules.down_min;
    member->retry_at = retry_time(group, member, now);
    if (group->checked)
        log_warn("origins %s: server %s is down: %s; health checks will tell when it is back",
                 group->name, member->text, member->error);
    else
        log_warn("origins %s: server %s is down: %s; trying it again in %lu ms", group->name,
                 member->text, member->error, (unsigned long)member->back_off);
}

bool origin_member_failed(struct origin_group *group, struct origin_member *member, uint64_t now,
                          bool probe, const char *error) {
    member->failed_at = now;
    member->failures++;
    free(member->error);
    member->error = xstrdup(error);
    if (member->state == ORIGIN_MEMBER_DOWN) {
        if (!probe)
            return false;
        member->back_off *= 2;
        if (member->back_off > group->rules.down_max)
            member->back_off = group->rules.down_max;
        member->retry_at = retry_time(group, member, now);
        return false;
    }
    if (group->rules.max_failures == 0 || member->failures < group->rules.max_failures)
        return false;
    origin_group_go_down(group, member, now);
    return true;
}

/* One group. */

static struct origin_group *group_new(const struct origins_settings *settings) {
    struct origin_group *group;
    ALLOC_OBJ(group, ORIGIN_GROUP_MAGIC);
    group->name = xstrdup(settings->name);
    group->references = 1;
    pthread_mutex_init(&group->lock, NULL);
    list_init(&group->queue);
    return group;
}

void origin_group_release(struct origin_group **groupp) {
    struct origin_group *group = *groupp;
    *groupp = NULL;
    CHECK_OBJ(group, ORIGIN_GROUP_MAGIC);
    if (atomic_fetch_sub_explicit(&group->references, 1, memory_order_acq_rel) != 1)
        return;
    ASSERT(list_empty(&group->queue));
    for (size_t i = 0; i < group->member_count; i++)
        origin_member_release(group->members[i]);
    pthread_mutex_destroy(&group->lock);
    free(group->members);
    free(group->name);
    FREE_OBJ(group);
}

static struct origin_member *take_over(struct origin_group *group,
                                       const struct origin_server_settings *server) {
    for (size_t i = 0; i < group->member_count; i++) {
        struct origin_member *member = group->members[i];
        if (member == NULL || strcmp(member->text, server->text) != 0)
            continue;
        group->members[i] = NULL;
        return member;
    }
    return member_new(server);
}

/* Members that stay keep their state. The others are freed after their last request. */
static void group_configure(struct origin_group *group, const struct origins_settings *settings) {
    struct origin_member **members = xcalloc(settings->server_count, sizeof *members);
    pthread_mutex_lock(&group->lock);
    group->rules = settings->rules;
    for (size_t i = 0; i < settings->server_count; i++) {
        members[i] = take_over(group, &settings->servers[i]);
        members[i]->weight = settings->servers[i].weight;
        members[i]->backup = settings->servers[i].backup;
        members[i]->drain = settings->servers[i].drain;
        members[i]->credit = 0;
        /* A health check may decide now when it comes back, or no longer. */
        if (members[i]->state == ORIGIN_MEMBER_DOWN)
            members[i]->retry_at = settings->health_check != NULL ? TIMER_NEVER : 0;
    }
    for (size_t i = 0; i < group->member_count; i++) {
        if (group->members[i] == NULL)
            continue;
        group->members[i]->listed = false;
        origin_member_release(group->members[i]);
    }
    free(group->members);
    group->members = members;
    group->member_count = settings->server_count;
    group->checked = settings->health_check != NULL;
    origin_group_serve_queue(group, clocks_milliseconds(CLOCK_MONOTONIC_COARSE), NULL);
    pthread_mutex_unlock(&group->lock);
}

struct origin_group *origin_group_new(const struct origins_settings *settings) {
    struct origin_group *group = group_new(settings);
    group_configure(group, settings);
    return group;
}

/* The groups of a snapshot. */

static struct origin_group *find_group(struct origin_groups *groups, const char *name) {
    for (size_t i = 0; groups != NULL && i < groups->count; i++)
        if (strcmp(groups->list[i]->name, name) == 0)
            return groups->list[i];
    return NULL;
}

struct origin_groups *origin_groups_new(struct settings *settings, struct origin_groups *before) {
    struct origin_groups *groups;
    ALLOC_OBJ(groups, ORIGIN_GROUPS_MAGIC);
    groups->references = 1;
    groups->settings = settings_reference(settings);
    groups->count = settings->origins_group_count;
    groups->list = xcalloc(groups->count + 1, sizeof *groups->list);
    for (size_t i = 0; i < groups->count; i++) {
        const struct origins_settings *origins = &settings->origins_groups[i];
        struct origin_group *group = find_group(before, origins->name);
        if (group != NULL)
            atomic_fetch_add_explicit(&group->references, 1, memory_order_relaxed);
        else
            group = group_new(origins);
        group_configure(group, origins);
        groups->list[i] = group;
    }
    return groups;
}

struct origin_groups *origin_groups_reference(struct origin_groups *groups) {
    CHECK_OBJ(groups, ORIGIN_GROUPS_MAGIC);
    atomic_fetch_add_explicit(&groups->references, 1, memory_order_relaxed);
    return groups;
}

void origin_groups_release(struct origin_groups **groupsp) {
    struct origin_groups *groups = *groupsp;
    *groupsp = NULL;
    if (groups == NULL)
        return;
    CHECK_OBJ(groups, ORIGIN_GROUPS_MAGIC);
    if (atomic_fetch_sub_explicit(&groups->references, 1, memory_order_acq_rel) != 1)
        return;
    for (size_t i = 0; i < groups->count; i++)
        origin_group_release(&groups->list[i]);
    settings_release(&groups->settings);
    free(groups->list);
    FREE_OBJ(groups);
}

/* Health checks. */

bool origin_group_checked(struct origin_group *group, struct origin_member *member, uint64_t now,
                          const struct loop *loop, const char *error) {
    bool went_down = false;
    CHECK_OBJ(group, ORIGIN_GROUP_MAGIC);
    pthread_mutex_lock(&group->lock);
    if (error != NULL) {
        went_down = origin_member_failed(group, member, now, false, error);
    } else {
        origin_member_succeeded(group, member, now);
        origin_group_serve_queue(group, now, loop);
    }
    pthread_mutex_unlock(&group->lock);
    return went_down;
}

struct origin_member **origin_group_hold_members(struct origin_group *group) {
    CHECK_OBJ(group, ORIGIN_GROUP_MAGIC);
    pthread_mutex_lock(&group->lock);
    struct origin_member **held = xcalloc(group->member_count + 1, sizeof *held);
    for (size_t i = 0; i < group->member_count; i++) {
        held[i] = group->members[i];
        held[i]->references++;
    }
    pthread_mutex_unlock(&group->lock);
    return held;
}

void origin_group_drop_member(struct origin_group *group, struct origin_member **memberp) {
    struct origin_member *member = *memberp;
    *memberp = NULL;
    pthread_mutex_lock(&group->lock);
    origin_member_release(member);
    pthread_mutex_unlock(&group->lock);
}

/* Reports. */

static void report_member(const struct origin_member *member, uint64_t now,
                          struct origin_member_report *report) {
    bool down = member->state == ORIGIN_MEMBER_DOWN;
    *report = (struct origin_member_report){
        .url = xstrdup(member->text),
        .state = member->drain     ? "drain"
                 : !down           ? "up"
                 : member->probing ? "trying"
                                   : "down",
        .error = member->error != NULL ? xstrdup(member->error) : NULL,
        .weight = member->weight,
        .backup = member->backup,
        .active = member->active,
        .failures = member->failures,
        .requests = member->requests,
        .failed = member->failed,
        .downs = member->downs,
        .retry_in = TIMER_NEVER,
    };
    if (down && member->retry_at != TIMER_NEVER)
        report->retry_in = member->retry_at > now ? member->retry_at - now : 0;
}

void origin_group_report(struct origin_group *group, uint64_t now,
                         struct origin_group_report *report) {
    CHECK_OBJ(group, ORIGIN_GROUP_MAGIC);
    pthread_mutex_lock(&group->lock);
    report->queued = group->queued;
    report->count = group->member_count;
    report->members = xcalloc(report->count, sizeof *report->members);
    for (size_t i = 0; i < report->count; i++)
        report_member(group->members[i], now, &report->members[i]);
    pthread_mutex_unlock(&group->lock);
}

void origin_group_report_release(struct origin_group_report *report) {
    for (size_t i = 0; i < report->count; i++) {
        free(report->members[i].url);
        free(report->members[i].error);
    }
    free(report->members);
    report->members = NULL;
}
