#include "net/name_review.h"

#include "base/assert.h"
#include "net/remembered_name.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { REVIEW_MOST = 2 * DNS_ANSWER_IPS };

/* A text for ever: there are as many as services that ever left out all addresses of a name. */
struct kept_text {
    struct kept_text *next;
    char text[];
};

static const char *name_review_keep_text(const char *text) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static struct kept_text *kept;
    pthread_mutex_lock(&lock);
    struct kept_text *entry = kept;
    while (entry != NULL && strcmp(entry->text, text) != 0)
        entry = entry->next;
    if (entry == NULL) {
        entry = xmalloc(sizeof *entry + strlen(text) + 1);
        strcpy(entry->text, text);
        entry->next = kept;
        kept = entry;
    }
    pthread_mutex_unlock(&lock);
    return entry->text;
}

static const char *all_left_out(const char *by) {
    char text[160];
    snprintf(text, sizeof text, "the service %.100s left out all addresses of the name", by);
    return name_review_keep_text(text);
}

static void put_storage(struct sockaddr_storage *storage, bool v6, const unsigned char *ip) {
    *storage = (struct sockaddr_storage){0};
    if (v6) {
        struct sockaddr_in6 *address = (struct sockaddr_in6 *)storage;
        address->sin6_family = AF_INET6;
        memcpy(&address->sin6_addr, ip, 16);
    } else {
        struct sockaddr_in *address = (struct sockaddr_in *)storage;
        address->sin_family = AF_INET;
        memcpy(&address->sin_addr, ip, 4);
    }
}

static size_t list_ips(const struct name_ips *ips, struct sockaddr_storage *addresses) {
    size_t count = 0;
    for (int v6 = 1; v6 >= 0; v6--)
        for (unsigned i = 0; i < ips->count[v6]; i++)
            put_storage(&addresses[count++], v6, ips->ips[v6][i]);
    return count;
}

static void take_ips(struct name_ips *ips, const struct sockaddr_storage *addresses, size_t count) {
    ips->count[0] = ips->count[1] = 0;
    ips->ordered = true;
    for (size_t i = 0; i < count; i++) {
        bool v6 = addresses[i].ss_family == AF_INET6;
        unsigned char *to = ips->ips[v6][ips->count[v6]++];
        if (v6)
            memcpy(to, &((const struct sockaddr_in6 *)&addresses[i])->sin6_addr, 16);
        else
            memcpy(to, &((const struct sockaddr_in *)&addresses[i])->sin_addr, 4);
        ips->families[i] = v6;
    }
}

bool name_review(const struct net_context *net, const char *name, struct name_ips *ips,
                 const char **error) {
    struct sockaddr_storage addresses[REVIEW_MOST];
    const char *by = "";
    if (net->reviewer == NULL)
        return true;
    size_t count = list_ips(ips, addresses);
    size_t left = net->reviewer->review(net->reviewer, slice_from(name), addresses, count, &by);
    ASSERT(left <= count);
    take_ips(ips, addresses, left);
    if (left == 0)
        *error = all_left_out(by);
    return left > 0;
}
