#include "net/dns_channel.h"

#include "base/assert.h"
#include "base/log.h"

/* Newer versions deprecate ares_query, whose answers are bytes that dns_message.c parses. */
#define CARES_NO_DEPRECATED
#include <ares.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>

const char dns_channel_closed[] = "the resolver ends";

/* A socket of c-ares, watched by the loop. */
struct name_socket {
    struct list_link link;
    struct event event;
    struct dns_channel *channel;
};

struct dns_channel {
    unsigned magic;
#define DNS_CHANNEL_MAGIC 0xd45c4a44u
    struct net_context *net;
    ares_channel ares;
    struct timer timer;
    struct list_link sockets;
    struct ares_options found; /* what c-ares has read from /etc/resolv.conf */
    char **domains;            /* of those, ended by NULL */
};

/* A question that is not answered yet. */
struct dns_question {
    dns_answer_fn *on_answer;
    void *arg;
};

static void dns_channel_rearm(struct dns_channel *channel) {
    struct timeval most = {60, 0}, wait;
    struct timeval *next = ares_timeout(channel->ares, &most, &wait);
    uint64_t milliseconds = (uint64_t)next->tv_sec * 1000 + (uint64_t)next->tv_usec / 1000 + 1;
    if (list_empty(&channel->sockets))
        timer_cancel(&channel->net->loop->timers, &channel->timer);
    else
        loop_timer_after(channel->net->loop, &channel->timer, milliseconds);
}

static void dns_channel_on_timer(struct timer *timer) {
    struct dns_channel *channel = CONTAINER_OF(timer, struct dns_channel, timer);
    ares_process_fd(channel->ares, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
    dns_channel_rearm(channel);
}

static void dns_channel_on_socket(struct event *event, uint32_t events) {
    struct name_socket *watched = CONTAINER_OF(event, struct name_socket, event);
    struct dns_channel *channel = watched->channel;
    CHECK_OBJ(channel, DNS_CHANNEL_MAGIC);
    bool readable = events & (EPOLLIN | EPOLLERR | EPOLLHUP), writable = events & EPOLLOUT;
    int fd = event->fd;
    ares_process_fd(channel->ares, readable ? fd : ARES_SOCKET_BAD,
                    writable ? fd : ARES_SOCKET_BAD);
    dns_channel_rearm(channel);
}

static struct name_socket *find_name_socket(struct dns_channel *channel, int fd) {
    LIST_FOR_EACH (link, &channel->sockets) {
        struct name_socket *watched = CONTAINER_OF(link, struct name_socket, link);
        if (watched->event.fd == fd)
            return watched;
    }
    return NULL;
}

/* c-ares calls this to say which events of one of its sockets it needs. */
static void on_name_socket_state(void *arg, ares_socket_t fd, int readable, int writable) {
    struct dns_channel *channel;
    CAST_OBJ(channel, arg, DNS_CHANNEL_MAGIC);
    struct name_socket *watched = find_name_socket(channel, fd);
    if (watched != NULL)
        loop_remove(channel->net->loop, &watched->event);
    if (!readable && !writable) {
        if (watched != NULL) {
            list_remove(&watched->link);
            free(watched);
        }
        return;
    }
    if (watched == NULL) {
        watched = xcalloc(1, sizeof *watched);
        watched->channel = channel;
        list_append(&channel->sockets, &watched->link);
    }
    uint32_t interest = (readable ? (uint32_t)EPOLLIN : 0) | (writable ? (uint32_t)EPOLLOUT : 0);
    if (!loop_add(channel->net->loop, &watched->event, fd, interest, dns_channel_on_socket))
        log_error("cannot watch a socket of the resolver: %s", strerror(errno));
}

static bool dns_channel_read_back(struct dns_channel *channel) {
    int mask;
    if (ares_save_options(channel->ares, &channel->found, &mask) != ARES_SUCCESS)
        return false;
    size_t count = channel->found.ndomains > 0 ? (size_t)channel->found.ndomains : 0;
    channel->domains = xcalloc(count + 1, sizeof *channel->domains);
    for (size_t i = 0; i < count; i++)
        channel->domains[i] = channel->found.domains[i];
    return true;
}

/* c-ares doubles the time with each round of tries. */
static int first_timeout(const struct dns_terms *terms) {
    uint64_t rounds = (UINT64_C(1) << terms->tries) - 1;
    return (int)(terms->timeout / rounds) + 1;
}

/* Sets the servers, as text with commas between them. IPv6 addresses are always in brackets. */
static int dns_channel_set_servers(struct dns_channel *channel, char *const *servers) {
    char *text = xcalloc(1, 1), *longer;
    for (size_t i = 0; servers[i] != NULL; i++) {
        struct address address;
        char one[ADDRESS_TEXT];
        if (!address_parse_ip(&address, slice_from(servers[i]), 53) &&
            !address_parse(&address, slice_from(servers[i]), 53))
            continue;
        address_format(&address, one);
        ASSERT(asprintf(&longer, "%s%s%s", text, text[0] != '\0' ? "," : "", one) > 0);
        free(text);
        text = longer;
    }
    int status = ares_set_servers_ports_csv(channel->ares, text);
    free(text);
    return status;
}

/* Returns a status of c-ares. */
static int dns_channel_open(struct dns_channel *channel, const struct dns_terms *terms) {
    struct ares_options options = {
        .timeout = first_timeout(terms),
        .tries = (int)terms->tries,
        .sock_state_cb = on_name_socket_state,
        .sock_state_cb_data = channel,
    };
    int given = ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_SOCK_STATE_CB;
#ifdef ARES_OPT_QUERY_CACHE
    /* Answers are remembered by the resolver alone, which forgets them when it is told to: newer
     * versions of c-ares would keep them beside that. */
    options.qcache_max_ttl = 0;
    given |= ARES_OPT_QUERY_CACHE;
#endif
    int status = ares_init_options(&channel->ares, &options, given);
    if (status != ARES_SUCCESS)
        return status;
    if (terms->servers != NULL && terms->servers[0] != NULL &&
        strcmp(terms->servers[0], "system") != 0)
        status = dns_channel_set_servers(channel, terms->servers);
    if (status == ARES_SUCCESS && dns_channel_read_back(channel))
        return ARES_SUCCESS;
    ares_destroy(channel->ares);
    return status != ARES_SUCCESS ? status : ARES_ENOMEM;
}

struct dns_channel *dns_channel_new(struct net_context *net, const struct dns_terms *terms) {
    struct dns_channel *channel;
    ALLOC_OBJ(channel, DNS_CHANNEL_MAGIC);
    channel->net = net;
    list_init(&channel->sockets);
    timer_init(&channel->timer, dns_channel_on_timer);
    int status = dns_channel_open(channel, terms);
    if (status == ARES_SUCCESS)
        return channel;
    log_error("cannot start the resolver: %s; is /etc/resolv.conf readable?",
              ares_strerror(status));
    FREE_OBJ(channel);
    return NULL;
}

void dns_channel_free(struct dns_channel **channelp) {
    struct dns_channel *channel = *channelp;
    *channelp = NULL;
    if (channel == NULL)
        return;
    CHECK_OBJ(channel, DNS_CHANNEL_MAGIC);
    ares_destroy(channel->ares);
    timer_cancel(&channel->net->loop->timers, &channel->timer);
    LIST_FOR_EACH_SAFE (link, next, &channel->sockets) {
        struct name_socket *watched = CONTAINER_OF(link, struct name_socket, link);
        loop_remove(channel->net->loop, &watched->event);
        free(watched);
    }
    ares_destroy_options(&channel->found);
    free(channel->domains);
    FREE_OBJ(channel);
}

/* With some errors of a server the bytes of its answer are there, with others not. */
static void on_ares_answer(void *arg, int status, int timeouts, unsigned char *bytes, int length) {
    struct dns_question *question = arg;
    bool answered = bytes != NULL && length > 0 &&
                    (status == ARES_SUCCESS || status == ARES_ENODATA || status == ARES_ENOTFOUND);
    (void)timeouts;
    question->on_answer(question->arg, bytes, answered ? (size_t)length : 0,
                        status == ARES_EDESTRUCTION || status == ARES_ECANCELLED
                            ? dns_channel_closed
                            : ares_strerror(status));
    free(question);
}

void dns_channel_ask(struct dns_channel *channel, const char *name, int type,
                     dns_answer_fn *on_answer, void *arg) {
    CHECK_OBJ(channel, DNS_CHANNEL_MAGIC);
    struct dns_question *question = xcalloc(1, sizeof *question);
    question->on_answer = on_answer;
    question->arg = arg;
    ares_query(channel->ares, name, 1 /* IN */, type, on_ares_answer, question);
    dns_channel_rearm(channel);
}

char *const *dns_channel_domains(const struct dns_channel *channel) {
    CHECK_OBJ(channel, DNS_CHANNEL_MAGIC);
    return channel->domains;
}

unsigned dns_channel_dots(const struct dns_channel *channel) {
    CHECK_OBJ(channel, DNS_CHANNEL_MAGIC);
    return channel->found.ndots > 0 ? (unsigned)channel->found.ndots : 1;
}
