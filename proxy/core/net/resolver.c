#include "net/resolver.h"

#include "base/assert.h"
#include "net/dns_channel.h"
#include "net/dns_message.h"
#include "net/hosts_file.h"
#include "net/lookup_share.h"
#include "net/name_review.h"
#include "net/remembered_name.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    LOOKUPS_MAX = 4096,       /* under way at a time */
    FAILED_AGAIN = 2000,      /* milliseconds between two tries while old addresses serve */
    HALF_TTL = 5000,          /* milliseconds, when only one family could be asked for */
    REFRESH_LEAST = 10 * 1000 /* a shorter time to live is not worth a refresh */
};

/* A look-up under way. It may outlive the interest in it. */
struct name_lookup {
    unsigned magic;
#define NAME_LOOKUP_MAGIC 0x4a3e0002u
    struct list_link link; /* of resolver->lookups, the oldest first */
    struct resolver *resolver;
    struct name_entry *entry;   /* NULL: it has been given up */
    struct lookup_share *share; /* NULL: nobody's */
    uint64_t until;
    unsigned step;    /* which of the names that search domains make of it */
    unsigned waiting; /* answers of this step that have not come */
    bool failed, no_address;
    const char *error;
    uint64_t ttl, negative_ttl; /* milliseconds */
    struct name_ips found;
};

struct resolver {
    unsigned magic;
#define RESOLVER_MAGIC 0x4e501feeu
    struct net_context *net;
    struct dns_channel *channel;
    struct hosts_file *hosts;
    struct timer timer; /* gives up look-ups, and refreshes kept names */
    struct list_link lookups;
    unsigned lookup_count;
    struct list_link used, kept;
    char **search;         /* origin.dns_search; NULL: that of the system */
    char *signature;       /* of the settings on which it depends what names stand for */
    struct table names[2]; /* of struct name_entry; [true]: names that search domains are for */
    struct table shares;   /* of clients; net/lookup_share.h */
};

static void lookup_ask(struct name_lookup *lookup);

/* Results. */

static void put_ip(struct address *address, bool v6, const unsigned char *ip) {
    memset(address, 0, sizeof *address);
    if (v6) {
        address->length = sizeof address->v6;
        address->v6.sin6_family = AF_INET6;
        memcpy(&address->v6.sin6_addr, ip, 16);
    } else {
        address->length = sizeof address->v4;
        address->v4.sin_family = AF_INET;
        memcpy(&address->v4.sin_addr, ip, 4);
    }
}

/* In the order that somebody has said. */
static void put_ordered(struct resolution *result, const struct name_ips *ips) {
    unsigned next[2] = {0, 0}, count = ips->count[0] + ips->count[1];
    for (unsigned i = 0; i < count; i++) {
        bool v6 = ips->families[i];
        put_ip(&result->addresses[result->count++], v6, ips->ips[v6][next[v6]++]);
    }
}

static void put_result(struct resolution *result, const struct name_ips *ips, const char *error) {
    result->count = 0;
    result->ordered = ips->ordered;
    if (ips->ordered)
        put_ordered(result, ips);
    for (int v6 = 1; v6 >= 0 && !ips->ordered; v6--)
        for (unsigned i = 0; i < ips->count[v6]; i++)
            put_ip(&result->addresses[result->count++], v6, ips->ips[v6][i]);
    result->error = result->count > 0 ? NULL : error;
}

static bool has_ips(const struct name_ips *ips) {
    return ips->count[0] + ips->count[1] > 0;
}

static bool answer_error(struct resolver_query *query, const char *error) {
    query->result.count = 0;
    query->result.error = error;
    query->result.refused = true;
    return true;
}

/* The table of names. */

static void name_entry_free(struct resolver *resolver, struct name_entry *entry) {
    table_remove(&resolver->names[entry->completed], &entry->entry);
    list_remove(&entry->used);
    if (entry->lookup != NULL)
        entry->lookup->entry = NULL;
    resolver->net->counters.dns_names--;
    FREE_OBJ(entry);
}

static bool may_go(const struct name_entry *entry) {
    return entry->lookup == NULL && !entry->calling && list_empty(&entry->kept) &&
           list_empty(&entry->queries);
}

/* Makes room for another name. Names that were asked for once go before those in use. */
static bool forget_oldest(struct resolver *resolver) {
    LIST_FOR_EACH (link, &resolver->used) {
        struct name_entry *entry = CONTAINER_OF(link, struct name_entry, used);
        if (!may_go(entry))
            continue;
        resolver->net->counters.dns_names_dropped += entry->expires > resolver->net->loop->now;
        name_entry_free(resolver, entry);
        return true;
    }
    return false;
}

/* The names used longest ago go when nothing that is remembered of them serves any more. */
static void forget_expired(struct resolver *resolver) {
    for (int i = 0; i < 2; i++) {
        struct list_link *link = list_first(&resolver->used);
        if (link == NULL)
            return;
        struct name_entry *entry = CONTAINER_OF(link, struct name_entry, used);
        uint64_t now = resolver->net->loop->now;
        if (!may_go(entry) || entry->expires > now || entry->stale_until > now)
            return;
        name_entry_free(resolver, entry);
    }
}

/* NULL: there are too many names, and none may go. */
static struct name_entry *name_entry_take(struct resolver *resolver, struct slice name,
                                          bool completed) {
    struct table *names = &resolver->names[completed];
    struct table_entry *found = table_find(names, name);
    struct name_entry *entry;
    if (found != NULL) {
        entry = CONTAINER_OF(found, struct name_entry, entry);
        list_remove(&entry->used);
        list_append(&resolver->used, &entry->used);
        return entry;
    }
    forget_expired(resolver);
    if (resolver->names[0].count + resolver->names[1].count >=
            resolver->net->configured.dns_names &&
        !forget_oldest(resolver))
        return NULL;
    entry = xcalloc(1, sizeof *entry + name.length + 1);
    entry->magic = NAME_ENTRY_MAGIC;
    table_add(names, &entry->entry, slice_copy(entry->name, name));
    entry->completed = completed;
    list_init(&entry->queries);
    list_init(&entry->kept);
    list_append(&resolver->used, &entry->used);
    resolver->net->counters.dns_names++;
    return entry;
}

/* Look-ups. */

static struct name_lookup *lookup_of(struct list_link *link) {
    struct name_lookup *lookup = CONTAINER_OF(link, struct name_lookup, link);
    CHECK_OBJ(lookup, NAME_LOOKUP_MAGIC);
    return lookup;
}

/* When a kept name is to be asked for again. A server that fails is not asked more often. */
static void resolver_rearm(struct resolver *resolver) {
    struct list_link *oldest = list_first(&resolver->lookups);
    uint64_t at = oldest == NULL ? TIMER_NEVER : lookup_of(oldest)->until;
    LIST_FOR_EACH (link, &resolver->kept) {
        const struct name_entry *entry = CONTAINER_OF(link, struct name_entry, kept);
        if (entry->lookup == NULL && entry->again < at)
            at = entry->again;
    }
    timer_set(&resolver->net->loop->timers, &resolver->timer, at);
}

/* The look-up is over. It is freed with the last answer that still comes, for nobody. */
static void lookup_detach(struct name_lookup *lookup) {
    struct resolver *resolver = lookup->resolver;
    lookup->entry->lookup = NULL;
    lookup->entry = NULL;
    list_remove(&lookup->link);
    resolver->lookup_count--;
    lookup_share_give(&resolver->shares, &lookup->share);
    if (lookup->waiting == 0)
        FREE_OBJ(lookup);
}

static void call_queries(struct name_entry *entry) {
    struct list_link waiting, *link;
    list_init(&waiting);
    while ((link = list_first(&entry->queries)) != NULL) {
        list_remove(link);
        list_append(&waiting, link);
    }
    entry->calling = true;
    while ((link = list_first(&waiting)) != NULL) {
        struct resolver_query *query = CONTAINER_OF(link, struct resolver_query, link);
        list_remove(link);
        put_result(&query->result, &entry->known, entry->error);
        query->on_resolved(query);
    }
    entry->calling = false;
}

static uint64_t bounded(uint64_t ttl, uint64_t most) {
    if (ttl > most)
        ttl = most;
    return ttl < RESOLVER_TTL_MIN ? RESOLVER_TTL_MIN : ttl;
}

static void keep_found(struct name_entry *entry, const struct name_lookup *lookup,
                       const struct net_context *net) {
    uint64_t now = net->loop->now;
    entry->known = lookup->found;
    entry->error = NULL;
    entry->failing = false;
    entry->ttl = bounded(lookup->ttl, net->configured.dns_ttl_max);
    if (lookup->failed && entry->ttl > HALF_TTL)
        entry->ttl = HALF_TTL;
    entry->expires = now + entry->ttl;
    entry->stale_until = entry->expires + net->configured.dns_stale;
    entry->again =
        now + (entry->ttl < REFRESH_LEAST ? REFRESH_LEAST : entry->ttl - entry->ttl / 10);
}

/* The servers say that there are no addresses. */
static void keep_none(struct name_entry *entry, const struct name_lookup *lookup,
                      const struct net_context *net) {
    memset(&entry->known, 0, sizeof entry->known);
    entry->error = lookup->no_address ? "the name has no address" : "there is no such name";
    entry->failing = false;
    entry->expires =
        net->loop->now + bounded(lookup->negative_ttl, net->configured.dns_negative_ttl_max);
    entry->stale_until = 0;
    entry->again = entry->expires > net->loop->now + FAILED_AGAIN ? entry->expires
                                                                  : net->loop->now + FAILED_AGAIN;
}

/* The servers did not say anything. */
static void keep_failure(struct name_entry *entry, const char *error, struct net_context *net) {
    uint64_t now = net->loop->now;
    entry->again = now + FAILED_AGAIN;
    if (has_ips(&entry->known) && (entry->expires > now || entry->stale_until > now)) {
        entry->failing = true;
        return;
    }
    memset(&entry->known, 0, sizeof entry->known);
    entry->error = error;
    entry->failing = false;
    entry->expires = now + RESOLVER_TTL_MIN;
    entry->stale_until = 0;
}

static void lookup_finish(struct name_lookup *lookup) {
    struct name_entry *entry = lookup->entry;
    struct resolver *resolver = lookup->resolver;
    struct net_context *net = resolver->net;
    if (has_ips(&lookup->found)) {
        const char *none_left = NULL;
        name_review(net, entry->name, &lookup->found, &none_left);
        keep_found(entry, lookup, net);
        entry->error = none_left;
    } else {
        net->counters.dns_failures++;
        if (lookup->failed)
            keep_failure(entry, lookup->error, net);
        else
            keep_none(entry, lookup, net);
    }
    if (entry->failing)
        net->counters.dns_stale += !list_empty(&entry->queries);
    lookup_detach(lookup);
    call_queries(entry);
    resolver_rearm(resolver);
}

/* The name that a step asks for. Search domains come behind a name with enough dots, and before any
 * other (resolv.conf(5)). Returns false behind the last one. */
static bool name_of_step(const struct name_lookup *lookup, char name[2 * RESOLVER_NAME_MAX]) {
    const struct resolver *resolver = lookup->resolver;
    const struct name_entry *entry = lookup->entry;
    char *const *domains = resolver->search;
    unsigned dots = 0, count = 0, step = lookup->step;
    if (domains == NULL)
        domains = dns_channel_domains(resolver->channel);
    for (const char *at = entry->name; *at != '\0'; at++)
        dots += *at == '.';
    while (entry->completed && domains[count] != NULL)
        count++;
    if (step > count)
        return false;
    unsigned itself = dots >= dns_channel_dots(resolver->channel) ? 0 : count;
    if (step == itself) {
        strcpy(name, entry->name);
        return true;
    }
    const char *domain = domains[step - (itself == 0)];
    return snprintf(name, RESOLVER_NAME_MAX, "%s.%s", entry->name, domain) < RESOLVER_NAME_MAX;
}

static void call_some(struct name_lookup *lookup) {
    struct name_ips found = lookup->found;
    const char *none_left;
    if (!name_review(lookup->resolver->net, lookup->entry->name, &found, &none_left))
        return;
    LIST_FOR_EACH_SAFE (link, next, &lookup->entry->queries) {
        struct resolver_query *query = CONTAINER_OF(link, struct resolver_query, link);
        if (query->on_some == NULL)
            continue;
        put_result(&query->result, &found, NULL);
        query->on_some(query);
    }
}

static void lookup_keep(struct name_lookup *lookup, const struct dns_answer *answer, bool v6) {
    uint64_t ttl = (uint64_t)answer->ttl * 1000;
    if (answer->kind == DNS_ANSWER_FOUND) {
        lookup->found.count[v6] = answer->count;
        memcpy(lookup->found.ips[v6], answer->ips, sizeof answer->ips);
        lookup->ttl = ttl < lookup->ttl ? ttl : lookup->ttl;
        return;
    }
    lookup->no_address = lookup->no_address || answer->kind == DNS_ANSWER_NO_RECORD;
    lookup->negative_ttl = ttl < lookup->negative_ttl ? ttl : lookup->negative_ttl;
}

/* Both families of a step are answered. */
static void step_finished(struct name_lookup *lookup) {
    char name[2 * RESOLVER_NAME_MAX];
    if (!has_ips(&lookup->found) && !lookup->failed) {
        lookup->step++;
        if (name_of_step(lookup, name)) {
            lookup_ask(lookup);
            return;
        }
    }
    lookup_finish(lookup);
}

static void lookup_on_answer(struct name_lookup *lookup, const unsigned char *bytes, size_t length,
                             const char *error, bool v6) {
    struct dns_answer answer = {.kind = DNS_ANSWER_BAD};
    CHECK_OBJ(lookup, NAME_LOOKUP_MAGIC);
    lookup->waiting--;
    if (lookup->entry == NULL) {
        if (lookup->waiting == 0)
            FREE_OBJ(lookup);
        return;
    }
    if (length > 0)
        dns_answer_parse(&answer, bytes, length, v6 ? DNS_TYPE_AAAA : DNS_TYPE_A);
    if (answer.kind == DNS_ANSWER_BAD) {
        lookup->failed = true;
        lookup->error = length > 0 ? "the name server sent no valid answer" : error;
    } else {
        lookup_keep(lookup, &answer, v6);
    }
    if (lookup->waiting == 0)
        step_finished(lookup);
    else if (answer.kind == DNS_ANSWER_FOUND)
        call_some(lookup);
}

static void on_answer_v4(void *arg, const unsigned char *bytes, size_t length, const char *error) {
    lookup_on_answer(arg, bytes, length, error, false);
}

static void on_answer_v6(void *arg, const unsigned char *bytes, size_t length, const char *error) {
    lookup_on_answer(arg, bytes, length, error, true);
}

/* The answers may come at once. The last one may end the look-up. */
static void lookup_ask(struct name_lookup *lookup) {
    char name[2 * RESOLVER_NAME_MAX];
    struct resolver *resolver = lookup->resolver;
    bool asks_v6 = resolver->net->configured.dns_ipv6;
    if (!name_of_step(lookup, name)) {
        lookup->failed = true;
        lookup->error = "the name is too long";
        lookup_finish(lookup);
        return;
    }
    lookup->waiting = asks_v6 ? 2 : 1;
    if (asks_v6)
        dns_channel_ask(resolver->channel, name, DNS_TYPE_AAAA, on_answer_v6, lookup);
    dns_channel_ask(resolver->channel, name, DNS_TYPE_A, on_answer_v4, lookup);
}

/* The look-up is counted in the share, which it takes. */
static void name_lookup_begin(struct resolver *resolver, struct name_entry *entry,
                              struct lookup_share **sharep) {
    struct name_lookup *lookup;
    ALLOC_OBJ(lookup, NAME_LOOKUP_MAGIC);
    lookup->resolver = resolver;
    lookup->entry = entry;
    lookup->share = *sharep;
    *sharep = NULL;
    lookup->ttl = lookup->negative_ttl = UINT64_MAX;
    lookup->until = resolver->net->loop->now + resolver->net->configured.dns_timeout;
    list_append(&resolver->lookups, &lookup->link);
    resolver->lookup_count++;
    entry->lookup = lookup;
    resolver->net->counters.dns_lookups++;
    lookup_ask(lookup);
    resolver_rearm(resolver);
}

/* False: the client, or all together, have too many under way. */
static bool lookup_start(struct resolver *resolver, struct name_entry *entry,
                         const struct address *client) {
    struct lookup_share *share;
    if (resolver->lookup_count >= LOOKUPS_MAX ||
        !lookup_share_take(&resolver->shares, client, resolver->net->configured.dns_client_lookups,
                           &share)) {
        resolver->net->counters.dns_refused++;
        return false;
    }
    name_lookup_begin(resolver, entry, &share);
    return true;
}

static void resolver_on_timer(struct timer *timer) {
    struct resolver *resolver = CONTAINER_OF(timer, struct resolver, timer);
    CHECK_OBJ(resolver, RESOLVER_MAGIC);
    uint64_t now = resolver->net->loop->now;
    struct list_link *link;
    while ((link = list_first(&resolver->lookups)) != NULL && lookup_of(link)->until <= now) {
        struct name_lookup *lookup = lookup_of(link);
        lookup->failed = true;
        lookup->error = "the name servers did not answer in time";
        lookup_finish(lookup);
    }
    LIST_FOR_EACH_SAFE (each, next, &resolver->kept) {
        struct name_entry *entry = CONTAINER_OF(each, struct name_entry, kept);
        if (entry->lookup == NULL && entry->again <= now && !lookup_start(resolver, entry, NULL))
            entry->again = now + FAILED_AGAIN;
    }
    resolver_rearm(resolver);
}

/* The resolver itself. */

/* NULL: that of the system. */
static char **copy_search(char *const *search) {
    size_t count = 0, kept = 0;
    while (search != NULL && search[count] != NULL)
        count++;
    if (count == 0 || strcmp(search[0], "system") == 0)
        return NULL;
    char **copy = xcalloc(count + 1, sizeof *copy);
    for (size_t i = 0; i < count; i++)
        if (strcmp(search[i], "none") != 0)
            copy[kept++] = xstrdup(search[i]);
    return copy;
}

static void free_search(char ***searchp) {
    for (size_t i = 0; *searchp != NULL && (*searchp)[i] != NULL; i++)
        free((*searchp)[i]);
    free(*searchp);
    *searchp = NULL;
}

static struct dns_channel *open_channel(struct net_context *net) {
    const struct net_configuration *configured = &net->configured;
    return dns_channel_new(net, &(struct dns_terms){
                                    .servers = configured->dns_servers,
                                    .timeout = configured->dns_timeout,
                                    .tries = configured->dns_tries,
                                });
}

static char *append_texts(char *text, char *const *list) {
    char *longer;
    for (size_t i = 0; list != NULL && list[i] != NULL; i++) {
        ASSERT(asprintf(&longer, "%s %s", text, list[i]) > 0);
        free(text);
        text = longer;
    }
    return text;
}

static char *write_signature(const struct net_configuration *configured) {
    char *text;
    ASSERT(asprintf(&text, "%d %s;", configured->dns_ipv6,
                    configured->hosts_file != NULL ? configured->hosts_file : "") > 0);
    text = append_texts(text, configured->dns_servers);
    return append_texts(text, configured->dns_search);
}

/* Returns whether names may stand for something else now. */
static bool copy_configured(struct resolver *resolver) {
    const struct net_configuration *configured = &resolver->net->configured;
    char *signature = write_signature(configured);
    bool differs = resolver->signature == NULL || strcmp(signature, resolver->signature) != 0;
    free(resolver->signature);
    resolver->signature = signature;
    free_search(&resolver->search);
    resolver->search = copy_search(configured->dns_search);
    hosts_file_free(&resolver->hosts);
    if (configured->hosts_file != NULL && strcmp(configured->hosts_file, "none") != 0)
        resolver->hosts = hosts_file_new(configured->hosts_file);
    hosts_file_refresh(resolver->hosts, resolver->net->loop->now);
    return differs;
}

struct resolver *resolver_new(struct net_context *net) {
    struct resolver *resolver;
    struct dns_channel *channel = open_channel(net);
    if (channel == NULL)
        return NULL;
    ALLOC_OBJ(resolver, RESOLVER_MAGIC);
    resolver->net = net;
    resolver->channel = channel;
    list_init(&resolver->lookups);
    list_init(&resolver->used);
    list_init(&resolver->kept);
    timer_init(&resolver->timer, resolver_on_timer);
    table_init(&resolver->names[0]);
    table_init(&resolver->names[1]);
    table_init(&resolver->shares);
    copy_configured(resolver);
    return resolver;
}

void resolver_free(struct resolver **resolverp) {
    struct resolver *resolver = *resolverp;
    struct list_link *link;
    *resolverp = NULL;
    if (resolver == NULL)
        return;
    CHECK_OBJ(resolver, RESOLVER_MAGIC);
    while ((link = list_first(&resolver->lookups)) != NULL)
        lookup_detach(lookup_of(link));
    dns_channel_free(&resolver->channel);
    timer_cancel(&resolver->net->loop->timers, &resolver->timer);
    while ((link = list_first(&resolver->used)) != NULL)
        name_entry_free(resolver, CONTAINER_OF(link, struct name_entry, used));
    table_release(&resolver->names[0]);
    table_release(&resolver->names[1]);
    table_release(&resolver->shares);
    free_search(&resolver->search);
    free(resolver->signature);
    hosts_file_free(&resolver->hosts);
    FREE_OBJ(resolver);
}

/* Look-ups under way begin anew at the servers of the new channel, in the shares of the same
 * clients. */
static void resolver_restart_lookups(struct resolver *resolver) {
    struct list_link former, *link;
    list_init(&former);
    list_splice(&former, &resolver->lookups);
    while ((link = list_first(&former)) != NULL) {
        struct name_lookup *lookup = lookup_of(link);
        struct name_entry *entry = lookup->entry;
        struct lookup_share *share = lookup->share;
        lookup->share = NULL;
        lookup_detach(lookup);
        if (list_empty(&entry->queries))
            lookup_share_give(&resolver->shares, &share);
        else
            name_lookup_begin(resolver, entry, &share);
    }
}

void resolver_settings_changed(struct resolver *resolver) {
    CHECK_OBJ(resolver, RESOLVER_MAGIC);
    struct dns_channel *channel = open_channel(resolver->net);
    if (copy_configured(resolver))
        resolver_forget(resolver, slice_make("", 0));
    if (channel == NULL)
        return; /* the log says why; the former servers stay */
    struct dns_channel *old = resolver->channel;
    resolver->channel = channel;
    resolver_restart_lookups(resolver);
    dns_channel_free(&old);
}

unsigned resolver_forget(struct resolver *resolver, struct slice name) {
    CHECK_OBJ(resolver, RESOLVER_MAGIC);
    uint64_t now = resolver->net->loop->now;
    unsigned count = 0;
    LIST_FOR_EACH_SAFE (link, next, &resolver->used) {
        struct name_entry *entry = CONTAINER_OF(link, struct name_entry, used);
        if (name.length > 0 && !slice_equal_nocase(slice_from(entry->name), name))
            continue;
        count++;
        entry->expires = entry->again = now;
        entry->stale_until = 0;
        entry->failing = false;
        if (may_go(entry))
            name_entry_free(resolver, entry);
    }
    resolver_rearm(resolver);
    return count;
}

const struct list_link *resolver_remembered(const struct resolver *resolver) {
    CHECK_OBJ(resolver, RESOLVER_MAGIC);
    return &resolver->used;
}

uint64_t resolver_now(const struct resolver *resolver) {
    return resolver->net->loop->now;
}

/* Names. */

/* These names always mean loopback, whatever a server or a file says (RFC 6761 §6.3). */
static bool is_localhost(struct slice name) {
    struct slice last = SLICE("localhost");
    while (name.length > 0 && name.base[name.length - 1] == '.')
        name.length--;
    if (name.length < last.length)
        return false;
    const char *at = name.base + name.length - last.length;
    return slice_equal_nocase(slice_make(at, last.length), last) &&
           (at == name.base || at[-1] == '.');
}

bool resolver_knows(const struct resolver *resolver, struct slice host, struct resolution *result) {
    CHECK_OBJ(resolver, RESOLVER_MAGIC);
    result->error = NULL;
    result->ordered = false;
    result->count = 1;
    if (address_parse_spelt_ip(&result->addresses[0], host, 0))
        return true;
    if (!is_localhost(host))
        return false;
    address_parse_ip(&result->addresses[0], SLICE("127.0.0.1"), 0);
    address_parse_ip(&result->addresses[1], SLICE("::1"), 0);
    result->count = resolver->net->configured.dns_ipv6 ? 2 : 1;
    return true;
}

/* Writes the name in lower case, and without dots at its end. Empty: it is no name. */
static struct slice write_name(struct slice host, char name[RESOLVER_NAME_MAX]) {
    while (host.length > 0 && host.base[host.length - 1] == '.')
        host.length--;
    if (host.length == 0 || host.length > RESOLVER_NAME_MAX ||
        memchr(host.base, '\0', host.length) != NULL)
        return SLICE("");
    return slice_make(name, (size_t)(slice_put_lower(name, host) - name));
}

static bool is_in_hosts(struct resolver *resolver, struct slice name, struct resolution *result) {
    struct address found[HOSTS_FILE_ADDRESSES];
    hosts_file_refresh(resolver->hosts, resolver->net->loop->now);
    unsigned count = hosts_file_find(resolver->hosts, name, found);
    result->count = 0;
    result->ordered = false;
    for (unsigned i = 0; i < count; i++)
        if (found[i].any.sa_family == AF_INET || resolver->net->configured.dns_ipv6)
            result->addresses[result->count++] = found[i];
    result->error = result->count > 0 ? NULL : "the hosts file has no IPv4 address for the name";
    return count > 0;
}

/* Is what is remembered good enough, now or while the name servers fail? */
static bool serves(const struct name_entry *entry, uint64_t now) {
    return entry->expires > now || (entry->failing && entry->stale_until > now);
}

/* Asks again for a name that is in use before, or while, what is known of it expires. */
static void refresh(struct resolver *resolver, struct name_entry *entry,
                    const struct address *client) {
    uint64_t now = resolver->net->loop->now;
    bool stale = entry->expires <= now;
    resolver->net->counters.dns_stale += stale;
    if (entry->lookup != NULL || entry->again > now || !has_ips(&entry->known))
        return;
    if (!lookup_start(resolver, entry, client))
        entry->again = now + FAILED_AGAIN;
}

bool resolver_lookup(struct resolver *resolver, struct slice host, struct resolver_query *query,
                     void (*on_resolved)(struct resolver_query *query)) {
    CHECK_OBJ(resolver, RESOLVER_MAGIC);
    char room[RESOLVER_NAME_MAX];
    bool completed =
        !query->complete && (query->configured || resolver->net->configured.dns_search_clients);
    query->on_resolved = on_resolved;
    if (resolver_knows(resolver, host, &query->result))
        return true;
    struct slice name = write_name(host, room);
    if (name.length == 0)
        return answer_error(query, "the name is empty or too long");
    if (is_in_hosts(resolver, name, &query->result))
        return true;
    struct name_entry *entry = name_entry_take(resolver, name, completed);
    if (entry == NULL)
        return answer_error(query, "too many names are being looked up");
    if (serves(entry, resolver->net->loop->now)) {
        refresh(resolver, entry, query->client);
        put_result(&query->result, &entry->known, entry->error);
        return true;
    }
    if (entry->lookup == NULL && !lookup_start(resolver, entry, query->client))
        return answer_error(query,
                            "too many names are being looked up (origin.dns_client_lookups)");
    if (entry->lookup == NULL) {
        put_result(&query->result, &entry->known, entry->error);
        return true;
    }
    list_append(&entry->queries, &query->link);
    return false;
}

void resolver_keep(struct resolver *resolver, struct slice host) {
    CHECK_OBJ(resolver, RESOLVER_MAGIC);
    char room[RESOLVER_NAME_MAX];
    struct slice name = write_name(host, room);
    struct resolution known;
    if (resolver_knows(resolver, host, &known) || name.length == 0 ||
        is_in_hosts(resolver, name, &known))
        return;
    struct name_entry *entry = name_entry_take(resolver, name, true);
    if (entry == NULL || !list_empty(&entry->kept))
        return;
    list_append(&resolver->kept, &entry->kept);
    if (entry->lookup == NULL && entry->expires <= resolver->net->loop->now &&
        !lookup_start(resolver, entry, NULL))
        entry->again = resolver->net->loop->now + FAILED_AGAIN;
    resolver_rearm(resolver);
}

void resolver_keep_none(struct resolver *resolver) {
    struct list_link *link;
    CHECK_OBJ(resolver, RESOLVER_MAGIC);
    while ((link = list_first(&resolver->kept)) != NULL)
        list_remove(link);
    resolver_rearm(resolver);
}
