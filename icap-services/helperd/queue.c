#include "helperd/queue.h"

#include "base/assert.h"
#include "helperd/pool.h"

#include <arpa/inet.h>
#include <string.h>

/* The cost that a share may spend in a turn. The smaller it is, the closer the shares are to equal
 * at any time. */
static const uint64_t turns[LANE_COUNT] = {64 * 1024, 1024 * 1024};

static struct job *job_of(struct list_link *link) {
    return CONTAINER_OF(link, struct job, place.link);
}

void queue_init(struct queue *queue) {
    memset(queue, 0, sizeof *queue);
    for (int lane = 0; lane < LANE_COUNT; lane++)
        list_init(&queue->lanes[lane].shares);
}

/* Behind "::ffff:" stands an address of IPv4. */
void queue_set_client(struct queue_place *place, const char *client) {
    enum { NETWORK = 8, MAPPED = 12 };
    struct in6_addr address;
    memset(place->client, 0, sizeof place->client);
    if (inet_pton(AF_INET6, client, &address) != 1) {
        for (size_t i = 0; client[i] != 0 && i < sizeof place->client - 1; i++)
            place->client[i] = client[i] > ' ' && client[i] <= '~' ? client[i] : '?';
    } else if (IN6_IS_ADDR_V4MAPPED(&address))
        inet_ntop(AF_INET, address.s6_addr + MAPPED, place->client, sizeof place->client);
    else {
        memset(address.s6_addr + NETWORK, 0, sizeof address.s6_addr - NETWORK);
        inet_ntop(AF_INET6, &address, place->client, sizeof place->client);
    }
}

static struct share *find_share(const struct queue_lane *lane, const char *client) {
    LIST_FOR_EACH (link, &lane->shares) {
        struct share *share = CONTAINER_OF(link, struct share, link);
        if (strcmp(share->client, client) == 0)
            return share;
    }
    return NULL;
}

static struct share *open_share(struct queue_lane *lane, const struct queue_place *place) {
    struct share *share;
    ALLOC_OBJ(share, SHARE_MAGIC);
    list_init(&share->jobs);
    memcpy(share->client, place->client, sizeof share->client);
    list_append(&lane->shares, &share->link);
    lane->share_count++;
    return share;
}

static void queue_enter(struct queue *queue, struct job *job) {
    struct queue_place *place = &job->place;
    struct queue_lane *lane = &queue->lanes[place->lane];
    ASSERT(place->share == NULL);
    struct share *share = find_share(lane, place->client);
    if (share == NULL)
        share = open_share(lane, place);
    share->count++;
    share->cost += place->cost;
    lane->count++;
    lane->cost += place->cost;
    place->share = share;
    place->queue = queue;
}

void queue_add(struct queue *queue, struct job *job) {
    queue_enter(queue, job);
    list_append(&job->place.share->jobs, &job->place.link);
}

void queue_put_back(struct queue *queue, struct job *job) {
    queue_enter(queue, job);
    struct share *share = job->place.share;
    list_prepend(&share->jobs, &job->place.link);
    list_remove(&share->link);
    list_prepend(&queue->lanes[job->place.lane].shares, &share->link);
    share->deficit += job->place.cost;
}

void queue_remove(struct job *job) {
    struct queue_place *place = &job->place;
    struct share *share = place->share;
    if (share == NULL)
        return;
    CHECK_OBJ(share, SHARE_MAGIC);
    struct queue_lane *lane = &place->queue->lanes[place->lane];
    list_remove(&place->link);
    lane->count--;
    lane->cost -= place->cost;
    share->count--;
    share->cost -= place->cost;
    place->share = NULL;
    if (share->count > 0)
        return;
    list_remove(&share->link);
    lane->share_count--;
    FREE_OBJ(share);
}

/* The loop ends, since each round gives every share the cost of another turn. */
struct job *queue_take(struct queue *queue, enum lane number) {
    struct queue_lane *lane = &queue->lanes[number];
    struct list_link *first;
    while ((first = list_first(&lane->shares)) != NULL) {
        struct share *share = CONTAINER_OF(first, struct share, link);
        struct job *job = job_of(list_first(&share->jobs));
        if (share->deficit >= job->place.cost || lane->share_count == 1) {
            share->deficit -= share->deficit < job->place.cost ? share->deficit : job->place.cost;
            queue_remove(job);
            return job;
        }
        share->deficit += turns[number];
        list_remove(&share->link);
        list_append(&lane->shares, &share->link);
    }
    return NULL;
}

struct job *queue_any(struct queue *queue) {
    for (int lane = 0; lane < LANE_COUNT; lane++) {
        struct list_link *first = list_first(&queue->lanes[lane].shares);
        if (first != NULL)
            return job_of(list_first(&CONTAINER_OF(first, struct share, link)->jobs));
    }
    return NULL;
}

const struct share *queue_largest_share(const struct queue *queue, enum lane lane) {
    const struct share *largest = NULL;
    LIST_FOR_EACH (link, &queue->lanes[lane].shares) {
        const struct share *share = CONTAINER_OF(link, struct share, link);
        if (largest == NULL || share->cost > largest->cost)
            largest = share;
    }
    return largest;
}

struct job *queue_most_greedy(struct queue *queue, enum lane first, const struct job *newcomer) {
    const struct queue_place *place = &newcomer->place;
    const struct share *own = find_share(&queue->lanes[place->lane], place->client), *most = NULL;
    uint64_t most_cost = place->cost + (own == NULL ? 0 : own->cost);
    for (int lane = (int)first; lane < LANE_COUNT; lane++) {
        const struct share *share = queue_largest_share(queue, lane);
        if (share != NULL && share != own && share->cost > most_cost) {
            most = share;
            most_cost = share->cost;
        }
    }
    return most == NULL ? NULL : job_of(most->jobs.prev);
}

uint64_t queue_cost_before(const struct queue *queue, const struct queue_place *place) {
    const struct queue_lane *lane = &queue->lanes[place->lane];
    const struct share *own = find_share(lane, place->client);
    uint64_t mine = own == NULL ? 0 : own->cost, before = mine;
    LIST_FOR_EACH (link, &lane->shares) {
        const struct share *share = CONTAINER_OF(link, struct share, link);
        uint64_t most = mine + place->cost;
        if (share != own)
            before += share->cost < most ? share->cost : most;
    }
    return before;
}

unsigned queue_count(const struct queue *queue) {
    unsigned count = 0;
    for (int lane = 0; lane < LANE_COUNT; lane++)
        count += queue->lanes[lane].count;
    return count;
}

const char *lane_text(enum lane lane) {
    static const char *const texts[] = {"small", "large"};
    return texts[lane];
}
