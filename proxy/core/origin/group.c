#include "origin/group.h"

#include "base/assert.h"
#include "base/backoff.h"
#include "base/clocks.h"
#include "base/log.h"
#include "origin/member.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

/* Members. */

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
        member->back_off = backoff_next(member->back_off, group->rules.down_max);
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

/* The settings do not have them any more. */
static void free_entries(struct origin_place *entries, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (entries[i].source != NULL) {
            entries[i].source->listed = false;
            origin_source_release(entries[i].source);
        }
        free((char *)entries[i].text);
    }
    free(entries);
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
    free_entries(group->entries, group->entry_count);
    pthread_mutex_destroy(&group->lock);
    free(group->members);
    free(group->name);
    FREE_OBJ(group);
}

/* The new list of members. Those that stay keep their state; the others are freed after their last
 * request. */

/* Takes the member out of the former ones, which are known by their text. */
static struct origin_member *take_over(struct table *former, const struct origin_place *place) {
    struct table_entry *entry = table_find(former, slice_from(place->text));
    for (; entry != NULL; entry = table_find_next(entry)) {
        struct origin_member *member = CONTAINER_OF(entry, struct origin_member, entry);
        if (!origin_member_is_at(member, place))
            continue;
        table_remove(former, entry);
        return member;
    }
    return origin_member_new(place);
}

static void leave_out_others(struct table *former) {
    TABLE_FOR_EACH_SAFE(entry, following, former) {
        struct origin_member *member = CONTAINER_OF(entry, struct origin_member, entry);
        member->listed = false;
        member->source = NULL;
        origin_member_release(member);
    }
    table_release(former);
}

/* Call with the lock held. */
static void origin_group_renew(struct origin_group *group, uint64_t now, const struct loop *loop) {
    struct origin_list list;
    struct table former;
    table_init(&former);
    for (size_t i = 0; i < group->member_count; i++)
        table_add(&former, &group->members[i]->entry, slice_from(group->members[i]->text));
    origin_list_make(&list, group->entries, group->entry_count);
    struct origin_member **members = xcalloc(list.count + 1, sizeof(struct origin_member *));
    for (size_t i = 0; i < list.count; i++) {
        members[i] = take_over(&former, &list.places[i]);
        origin_member_configure(members[i], &list.places[i]);
        members[i]->credit = 0;
    }
    leave_out_others(&former);
    free(group->members);
    group->members = members;
    group->member_count = list.count;
    group->tiers = list.tiers;
    group->changes++;
    origin_list_release(&list);
    origin_group_serve_queue(group, now, loop);
}

/* What the settings list. Sources that stay keep what they have found. */

static struct origin_source *take_source(struct origin_group *group,
                                         const struct origin_server_settings *server) {
    for (size_t i = 0; i < group->entry_count; i++) {
        struct origin_source *source = group->entries[i].source;
        if (source == NULL || !origin_source_is_for(source, server))
            continue;
        group->entries[i].source = NULL;
        return source;
    }
    return origin_source_new(server->text, server->name);
}

static void origin_group_list(struct origin_group *group, const struct origins_settings *settings) {
    struct origin_place *entries = xcalloc(settings->server_count + 1, sizeof *entries);
    for (size_t i = 0; i < settings->server_count; i++) {
        const struct origin_server_settings *server = &settings->servers[i];
        entries[i] = (struct origin_place){
            .text = xstrdup(server->text),
            .egress = EGRESS_ANY,
            .weight = server->weight,
            .backup = server->backup,
            .drain = server->drain,
        };
        if (!server->srv)
            continue;
        entries[i].source = take_source(group, server);
        origin_source_configure(entries[i].source, server, settings);
    }
    free_entries(group->entries, group->entry_count);
    group->entries = entries;
    group->entry_count = settings->server_count;
}

static void group_configure(struct origin_group *group, const struct origins_settings *settings) {
    pthread_mutex_lock(&group->lock);
    group->rules = settings->rules;
    group->checked = settings->health_check != NULL;
    /* A health check may decide now when a member comes back, or no longer. */
    for (size_t i = 0; i < group->member_count; i++)
        if (group->members[i]->state == ORIGIN_MEMBER_DOWN)
            group->members[i]->retry_at = group->checked ? TIMER_NEVER : 0;
    origin_group_list(group, settings);
    origin_group_renew(group, clocks_milliseconds(CLOCK_MONOTONIC_COARSE), NULL);
    pthread_mutex_unlock(&group->lock);
}

/* Sources. */

bool origin_group_is_awaited(const struct origin_group *group) {
    for (size_t i = 0; i < group->entry_count; i++)
        if (group->entries[i].source != NULL &&
            group->entries[i].source->state == ORIGIN_SOURCE_AWAITED)
            return true;
    return false;
}

struct origin_source **origin_group_hold_sources(struct origin_group *group) {
    size_t count = 0;
    CHECK_OBJ(group, ORIGIN_GROUP_MAGIC);
    pthread_mutex_lock(&group->lock);
    struct origin_source **held = xcalloc(group->entry_count + 1, sizeof(struct origin_source *));
    for (size_t i = 0; i < group->entry_count; i++) {
        if (group->entries[i].source == NULL)
            continue;
        held[count++] = group->entries[i].source;
        group->entries[i].source->references++;
    }
    pthread_mutex_unlock(&group->lock);
    return held;
}

void origin_group_drop_source(struct origin_group *group, struct origin_source **sourcep) {
    struct origin_source *source = *sourcep;
    *sourcep = NULL;
    pthread_mutex_lock(&group->lock);
    origin_source_release(source);
    pthread_mutex_unlock(&group->lock);
}

void origin_group_heard(struct origin_group *group, struct origin_source *source,
                        const struct dns_targets *answer, const char *error, uint64_t now,
                        const struct loop *loop, struct origin_news *news) {
    CHECK_OBJ(group, ORIGIN_GROUP_MAGIC);
    *news = (struct origin_news){.ask_at = TIMER_NEVER};
    pthread_mutex_lock(&group->lock);
    if (source->listed) {
        news->changed = answer != NULL ? origin_source_answered(source, answer, now)
                                       : origin_source_unanswered(source, error, now);
        if (news->changed)
            origin_group_renew(group, now, loop);
        news->failed = source->failing;
        news->members = (unsigned)source->targets.count - source->doubled;
        news->left_out = source->left_out;
        news->error = source->error;
        news->ask_at = source->ask_at;
    }
    pthread_mutex_unlock(&group->lock);
}

/* A group that is in no snapshot. */

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
        .down = down,
        .state = member->drain     ? "drain"
                 : !down           ? "up"
                 : member->probing ? "trying"
                                   : "down",
        .error = member->error != NULL ? xstrdup(member->error) : NULL,
        .source = member->source != NULL ? xstrdup(member->source->text) : NULL,
        .priority = member->priority,
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

static void report_source(const struct origin_source *source, uint64_t now,
                          struct origin_source_report *report) {
    static const char *const states[] = {"asking", "found", "none", "unknown"};
    *report = (struct origin_source_report){
        .url = xstrdup(source->text),
        .named = xstrdup(source->named),
        .state = states[source->state],
        .drain = source->drain,
        .failing = source->failing,
        .error = source->error,
        .servers = (unsigned)source->targets.count - source->doubled,
        .left_out = source->left_out + source->doubled,
        .ttl = source->ttl,
        .ask_in = source->ask_at > now ? source->ask_at - now : 0,
    };
}

static void report_sources(const struct origin_group *group, uint64_t now,
                           struct origin_group_report *report) {
    report->source_count = 0;
    report->sources = xcalloc(group->entry_count + 1, sizeof *report->sources);
    for (size_t i = 0; i < group->entry_count; i++)
        if (group->entries[i].source != NULL)
            report_source(group->entries[i].source, now, &report->sources[report->source_count++]);
}

void origin_group_report(struct origin_group *group, uint64_t now,
                         struct origin_group_report *report) {
    CHECK_OBJ(group, ORIGIN_GROUP_MAGIC);
    pthread_mutex_lock(&group->lock);
    report->queued = group->queued;
    report->count = group->member_count;
    report->members = xcalloc(report->count + 1, sizeof *report->members);
    for (size_t i = 0; i < report->count; i++)
        report_member(group->members[i], now, &report->members[i]);
    report_sources(group, now, report);
    pthread_mutex_unlock(&group->lock);
}

void origin_group_report_release(struct origin_group_report *report) {
    for (size_t i = 0; i < report->count; i++) {
        free(report->members[i].url);
        free(report->members[i].error);
        free(report->members[i].source);
    }
    for (size_t i = 0; i < report->source_count; i++) {
        free(report->sources[i].url);
        free(report->sources[i].named);
    }
    free(report->members);
    free(report->sources);
    report->members = NULL;
    report->sources = NULL;
}
