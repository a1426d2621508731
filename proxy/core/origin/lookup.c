#include "origin/lookup.h"

#include "base/assert.h"
#include "base/log.h"
#include "net/dns_channel.h"

/* In milliseconds. */
enum { COMPLAINT_PAUSE = 60 * 1000 };

/* One source that is looked up. */
struct origin_lookup {
    unsigned magic;
#define ORIGIN_LOOKUP_MAGIC 0x04191004u
    struct origin_lookups *lookups;
    struct origin_group *group;
    struct origin_source *source; /* held */
    struct timer timer;           /* until it is asked for again */
    uint64_t complains_again;     /* before this time, no failure is logged */
};

struct origin_lookups {
    unsigned magic;
#define ORIGIN_LOOKUPS_MAGIC 0x04191005u
    struct net_context *net;
    struct origin_groups *groups; /* referenced */
    origin_change_fn *on_change;
    void *arg;
    struct dns_channel *channel; /* NULL: it could not be made yet */
    struct origin_lookup **list;
    size_t count;
};

static void origin_lookup_complain(struct origin_lookup *lookup, const char *error, uint64_t now) {
    if (now < lookup->complains_again)
        return;
    lookup->complains_again = now + COMPLAINT_PAUSE;
    log_warn("origins %s: the SRV records of %s can't be looked up: %s; the servers stay as they "
             "are until a name server answers",
             lookup->group->name, lookup->source->question, error);
}

static void origin_lookup_tell_change(const struct origin_lookup *lookup,
                                      const struct origin_news *news) {
    const char *name = lookup->group->name, *question = lookup->source->question;
    if (news->members == 0)
        log_warn("origins %s: %s names no servers: %s", name, question,
                 news->error != NULL ? news->error : "all of them are in the group already");
    else
        log_info("origins %s: %s names %u server%s now", name, question, news->members,
                 news->members == 1 ? "" : "s");
    if (news->left_out > 0)
        log_warn("origins %s: not all servers that %s names are used, left out: %u. srv_servers "
                 "limits how many are used, and the name in a record must be that of a host",
                 name, question, news->left_out);
}

static void origin_lookup_note(struct origin_lookup *lookup, const struct origin_news *news,
                               uint64_t now) {
    struct counters *counters = &lookup->lookups->net->counters;
    counters->origin_srv_failures += news->failed;
    counters->origin_srv_answers += !news->failed;
    counters->origin_srv_empty += !news->failed && news->members == 0;
    counters->origin_srv_changes += news->changed && !news->failed;
    counters->origin_srv_left_out += news->failed ? 0 : news->left_out;
    if (news->failed) {
        origin_lookup_complain(lookup, news->error, now);
        return;
    }
    lookup->complains_again = 0;
    if (news->changed)
        origin_lookup_tell_change(lookup, news);
}

/* `answer` NULL: there is none. */
static void origin_lookup_end(struct origin_lookup *lookup, const struct dns_targets *answer,
                              const char *error) {
    struct origin_lookups *lookups = lookup->lookups;
    struct net_context *net = lookups->net;
    struct origin_news news;
    origin_group_heard(lookup->group, lookup->source, answer, error, net->loop->now, net->loop,
                       &news);
    if (news.ask_at == TIMER_NEVER)
        return; /* a reload has taken it away, and ends these look-ups next */
    origin_lookup_note(lookup, &news, net->loop->now);
    timer_set(&net->loop->timers, &lookup->timer, news.ask_at);
    if (news.changed)
        lookups->on_change(lookups->arg, lookup->group);
}

static void origin_lookup_on_answer(void *arg, const unsigned char *bytes, size_t length,
                                    const char *error) {
    struct origin_lookup *lookup;
    CAST_OBJ(lookup, arg, ORIGIN_LOOKUP_MAGIC);
    if (length == 0) {
        if (error != dns_channel_closed)
            origin_lookup_end(lookup, NULL, error);
        return;
    }
    struct dns_targets answer = {.room = DNS_TARGETS_MAX};
    answer.list = xcalloc(DNS_TARGETS_MAX, sizeof *answer.list);
    dns_targets_parse(&answer, bytes, length);
    if (answer.kind == DNS_ANSWER_BAD)
        origin_lookup_end(lookup, NULL, "the name server sent no valid answer");
    else
        origin_lookup_end(lookup, &answer, NULL);
    free(answer.list);
}

static bool origin_lookups_open(struct origin_lookups *lookups) {
    const struct net_configuration *configured = &lookups->net->configured;
    if (lookups->channel == NULL)
        lookups->channel = dns_channel_new(lookups->net, &(struct dns_terms){
                                                             .servers = configured->dns_servers,
                                                             .timeout = configured->dns_timeout,
                                                             .tries = configured->dns_tries,
                                                         });
    return lookups->channel != NULL;
}

static void origin_lookup_on_timer(struct timer *timer) {
    struct origin_lookup *lookup = CONTAINER_OF(timer, struct origin_lookup, timer);
    CHECK_OBJ(lookup, ORIGIN_LOOKUP_MAGIC);
    struct origin_lookups *lookups = lookup->lookups;
    if (origin_lookups_open(lookups))
        dns_channel_ask(lookups->channel, lookup->source->question, DNS_TYPE_SRV,
                        origin_lookup_on_answer, lookup);
    else
        origin_lookup_end(lookup, NULL, "no socket for name servers could be opened");
}

static void origin_lookup_start(struct origin_lookups *lookups, struct origin_group *group,
                                struct origin_source *source) {
    struct origin_lookup *lookup;
    ALLOC_OBJ(lookup, ORIGIN_LOOKUP_MAGIC);
    lookup->lookups = lookups;
    lookup->group = group;
    lookup->source = source;
    timer_init(&lookup->timer, origin_lookup_on_timer);
    lookups->list = xrealloc(lookups->list, (lookups->count + 1) * sizeof(struct origin_lookup *));
    lookups->list[lookups->count++] = lookup;
    timer_set(&lookups->net->loop->timers, &lookup->timer, lookups->net->loop->now);
}

struct origin_lookups *origin_lookups_new(struct net_context *net, struct origin_groups *groups,
                                          origin_change_fn *on_change, void *arg) {
    struct origin_lookups *lookups;
    ALLOC_OBJ(lookups, ORIGIN_LOOKUPS_MAGIC);
    lookups->net = net;
    lookups->groups = origin_groups_reference(groups);
    lookups->on_change = on_change;
    lookups->arg = arg;
    for (size_t i = 0; i < groups->count; i++) {
        struct origin_source **sources = origin_group_hold_sources(groups->list[i]);
        for (size_t j = 0; sources[j] != NULL; j++)
            origin_lookup_start(lookups, groups->list[i], sources[j]);
        free(sources);
    }
    return lookups;
}

void origin_lookups_free(struct origin_lookups **lookupsp) {
    struct origin_lookups *lookups = *lookupsp;
    *lookupsp = NULL;
    if (lookups == NULL)
        return;
    CHECK_OBJ(lookups, ORIGIN_LOOKUPS_MAGIC);
    dns_channel_free(&lookups->channel);
    for (size_t i = 0; i < lookups->count; i++) {
        struct origin_lookup *lookup = lookups->list[i];
        timer_cancel(&lookups->net->loop->timers, &lookup->timer);
        origin_group_drop_source(lookup->group, &lookup->source);
        FREE_OBJ(lookup);
    }
    free(lookups->list);
    origin_groups_release(&lookups->groups);
    FREE_OBJ(lookups);
}
