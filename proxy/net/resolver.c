#include "net/resolver.h"

#include "base/assert.h"
#include "base/log.h"
#include "net/secret_hash.h"

#include <ares.h>
#include <errno.h>
#include <netdb.h>

enum { TABLE_SIZE = 1024, FAILURE_TTL = 1000, TRIES = 3, NAMES_MAX = 16384 };

/* One name, which is being looked up or remembered. */
struct name_entry {
    unsigned magic;
#define NAME_ENTRY_MAGIC 0x4a3e0001u
    struct name_entry *next;
    struct resolver *resolver;
    char name[RESOLVER_NAME_MAX + 1];
    bool asking;
    uint64_t expires;
    struct resolution result;
    struct list_link queries;
};

/* A socket of c-ares, watched by the loop. */
struct name_socket {
    struct list_link link;
    struct event event;
    struct resolver *resolver;
};

struct resolver {
    unsigned magic;
#define RESOLVER_MAGIC 0x4e501feeu
    struct net_context *net;
    ares_channel channel;
    struct timer timer;
    struct list_link sockets;
    struct name_entry *table[TABLE_SIZE];
    unsigned name_count;
};

static void rearm(struct resolver *resolver) {
    struct timeval most = {60, 0}, wait;
    struct timeval *next = ares_timeout(resolver->channel, &most, &wait);
    uint64_t milliseconds = (uint64_t)next->tv_sec * 1000 + (uint64_t)next->tv_usec / 1000 + 1;
    if (list_empty(&resolver->sockets))
        timer_cancel(&resolver->net->loop->timers, &resolver->timer);
    else
        loop_timer_after(resolver->net->loop, &resolver->timer, milliseconds);
}

static void resolver_on_timer(struct timer *timer) {
    struct resolver *resolver = CONTAINER_OF(timer, struct resolver, timer);
    ares_process_fd(resolver->channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
    rearm(resolver);
}

static void resolver_on_socket(struct event *event, uint32_t events) {
    struct name_socket *watched = CONTAINER_OF(event, struct name_socket, event);
    struct resolver *resolver = watched->resolver;
    CHECK_OBJ(resolver, RESOLVER_MAGIC);
    bool readable = events & (EPOLLIN | EPOLLERR | EPOLLHUP), writable = events & EPOLLOUT;
    int fd = event->fd;
    ares_process_fd(resolver->channel, readable ? fd : ARES_SOCKET_BAD,
                    writable ? fd : ARES_SOCKET_BAD);
    rearm(resolver);
}

static struct name_socket *find_socket(struct resolver *resolver, int fd) {
    LIST_FOR_EACH (link, &resolver->sockets) {
        struct name_socket *watched = CONTAINER_OF(link, struct name_socket, link);
        if (watched->event.fd == fd)
            return watched;
    }
    return NULL;
}

/* c-ares calls this to say which events of one of its sockets it needs. */
static void on_socket_state(void *arg, ares_socket_t fd, int readable, int writable) {
    struct resolver *resolver;
    CAST_OBJ(resolver, arg, RESOLVER_MAGIC);
    struct name_socket *watched = find_socket(resolver, fd);
    if (watched != NULL)
        loop_remove(resolver->net->loop, &watched->event);
    if (!readable && !writable) {
        if (watched != NULL) {
            list_remove(&watched->link);
            free(watched);
        }
        return;
    }
    if (watched == NULL) {
        watched = xcalloc(1, sizeof *watched);
        watched->resolver = resolver;
        list_append(&resolver->sockets, &watched->link);
    }
    uint32_t interest = (readable ? (uint32_t)EPOLLIN : 0) | (writable ? (uint32_t)EPOLLOUT : 0);
    if (!loop_add(resolver->net->loop, &watched->event, fd, interest, resolver_on_socket))
        log_error("cannot watch a socket of the resolver: %s", strerror(errno));
}

struct resolver *resolver_new(struct net_context *net) {
    struct resolver *resolver;
    ALLOC_OBJ(resolver, RESOLVER_MAGIC);
    resolver->net = net;
    list_init(&resolver->sockets);
    timer_init(&resolver->timer, resolver_on_timer);
    struct ares_options options = {
        .timeout = (int)(net->configured.dns_timeout / TRIES) + 1,
        .tries = TRIES,
        .sock_state_cb = on_socket_state,
        .sock_state_cb_data = resolver,
    };
    int status = ares_init_options(&resolver->channel, &options,
                                   ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_SOCK_STATE_CB);
    if (status == ARES_SUCCESS)
        return resolver;
    log_error("cannot start the resolver: %s; is /etc/resolv.conf readable?",
              ares_strerror(status));
    FREE_OBJ(resolver);
    return NULL;
}

void resolver_free(struct resolver **resolverp) {
    struct resolver *resolver = *resolverp;
    *resolverp = NULL;
    if (resolver == NULL)
        return;
    CHECK_OBJ(resolver, RESOLVER_MAGIC);
    ares_destroy(resolver->channel);
    timer_cancel(&resolver->net->loop->timers, &resolver->timer);
    LIST_FOR_EACH_SAFE (link, next, &resolver->sockets) {
        struct name_socket *watched = CONTAINER_OF(link, struct name_socket, link);
        loop_remove(resolver->net->loop, &watched->event);
        free(watched);
    }
    for (unsigned i = 0; i < TABLE_SIZE; i++)
        while (resolver->table[i] != NULL) {
            struct name_entry *entry = resolver->table[i];
            resolver->table[i] = entry->next;
            FREE_OBJ(entry);
        }
    FREE_OBJ(resolver);
}

static struct name_entry **resolver_bucket_of(struct resolver *resolver, const char *name) {
    return &resolver->table[secret_hash(slice_from(name)) % TABLE_SIZE];
}

/* Removes expired names from a chain, so that the table does not grow with names seen once. */
static void prune(struct resolver *resolver, struct name_entry **bucket) {
    while (*bucket != NULL) {
        struct name_entry *entry = *bucket;
        if (!entry->asking && entry->expires <= resolver->net->loop->now) {
            *bucket = entry->next;
            resolver->name_count--;
            FREE_OBJ(entry);
        } else {
            bucket = &entry->next;
        }
    }
}

/* Removes the oldest name of a chain when the table is full, so that names seen once do not keep
 * other names out. */
static bool forget_oldest(struct resolver *resolver, struct name_entry **bucket) {
    struct name_entry **oldest = NULL;
    for (; *bucket != NULL; bucket = &(*bucket)->next)
        if (!(*bucket)->asking)
            oldest = bucket;
    if (oldest == NULL)
        return false;
    struct name_entry *entry = *oldest;
    *oldest = entry->next;
    resolver->name_count--;
    FREE_OBJ(entry);
    return true;
}

static struct name_entry *find_entry(struct resolver *resolver, const char *name) {
    struct name_entry **bucket = resolver_bucket_of(resolver, name);
    prune(resolver, bucket);
    for (struct name_entry *entry = *bucket; entry != NULL; entry = entry->next)
        if (strcmp(entry->name, name) == 0)
            return entry;
    if (resolver->name_count >= NAMES_MAX && !forget_oldest(resolver, bucket))
        return NULL;
    struct name_entry *entry;
    ALLOC_OBJ(entry, NAME_ENTRY_MAGIC);
    entry->resolver = resolver;
    strcpy(entry->name, name);
    list_init(&entry->queries);
    entry->next = *bucket;
    *bucket = entry;
    resolver->name_count++;
    return entry;
}

static void keep_addresses(struct name_entry *entry, const struct ares_addrinfo *found,
                           uint64_t *ttl) {
    for (const struct ares_addrinfo_node *node = found->nodes; node != NULL; node = node->ai_next) {
        if (entry->result.count == RESOLVER_ADDRESSES)
            break;
        if (node->ai_addrlen > sizeof(struct sockaddr_in6))
            continue;
        struct address *address = &entry->result.addresses[entry->result.count++];
        memset(address, 0, sizeof *address);
        memcpy(&address->any, node->ai_addr, node->ai_addrlen);
        address->length = node->ai_addrlen;
        if ((uint64_t)node->ai_ttl * 1000 < *ttl && node->ai_ttl > 0)
            *ttl = (uint64_t)node->ai_ttl * 1000;
    }
}

static void on_found(void *arg, int status, int timeouts, struct ares_addrinfo *found) {
    struct name_entry *entry;
    CAST_OBJ(entry, arg, NAME_ENTRY_MAGIC);
    struct net_context *net = entry->resolver->net;
    uint64_t ttl = net->configured.dns_ttl_max;
    (void)timeouts;
    entry->asking = false;
    if (status == ARES_EDESTRUCTION)
        return;
    entry->result.count = 0;
    entry->result.error = NULL;
    if (status == ARES_SUCCESS && found != NULL)
        keep_addresses(entry, found, &ttl);
    if (found != NULL)
        ares_freeaddrinfo(found);
    if (entry->result.count == 0) {
        entry->result.error = status == ARES_SUCCESS ? "no address" : ares_strerror(status);
        ttl = FAILURE_TTL;
        net->counters.dns_failures++;
    }
    entry->expires = net->loop->now + ttl;
    struct list_link *link;
    while ((link = list_first(&entry->queries)) != NULL) {
        struct resolver_query *query = CONTAINER_OF(link, struct resolver_query, link);
        list_remove(link);
        query->result = entry->result;
        query->on_resolved(query);
    }
}

static void resolver_ask(struct resolver *resolver, struct name_entry *entry) {
    struct ares_addrinfo_hints hints = {
        .ai_family = resolver->net->configured.dns_ipv6 ? AF_UNSPEC : AF_INET,
        .ai_socktype = SOCK_STREAM,
    };
    entry->asking = true;
    resolver->net->counters.dns_lookups++;
    ares_getaddrinfo(resolver->channel, entry->name, NULL, &hints, on_found, entry);
    rearm(resolver);
}

static bool answer_error(struct resolver_query *query, const char *error) {
    query->result.count = 0;
    query->result.error = error;
    return true;
}

/* These names always mean loopback, whatever a server or a file says (RFC 6761 §6.3). */
static bool is_localhost(struct slice name) {
    struct slice last = SLICE("localhost");
    if (name.length > 0 && name.base[name.length - 1] == '.')
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

bool resolver_lookup(struct resolver *resolver, struct slice host, struct resolver_query *query,
                     void (*on_resolved)(struct resolver_query *query)) {
    CHECK_OBJ(resolver, RESOLVER_MAGIC);
    char name[RESOLVER_NAME_MAX + 1];
    query->on_resolved = on_resolved;
    if (resolver_knows(resolver, host, &query->result))
        return true;
    if (host.length == 0 || host.length > RESOLVER_NAME_MAX)
        return answer_error(query, "the name is empty or too long");
    for (size_t i = 0; i < host.length; i++)
        name[i] = (char)ascii_lower((unsigned char)host.base[i]);
    name[host.length] = '\0';
    struct name_entry *entry = find_entry(resolver, name);
    if (entry == NULL)
        return answer_error(query, "too many names are being looked up");
    if (!entry->asking && entry->expires <= resolver->net->loop->now) {
        /* The answer may come at once, for instance from /etc/hosts. Nobody waits for it yet. */
        resolver_ask(resolver, entry);
    }
    if (!entry->asking) {
        query->result = entry->result;
        return true;
    }
    list_append(&entry->queries, &query->link);
    return false;
}
