#include "cache/memory.h"

#include "base/assert.h"
#include "base/list.h"
#include "base/reserve.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

/* A region is mapped in one call and aligned to its size. It consists of spans, and a span consists
 * of pages. The first pages of a region describe it. */
enum {
    SPAN_PAGES = 16,
    SPAN = SPAN_PAGES * MEMORY_PAGE,
    REGION = 4 << 20,
    REGION_SPANS = REGION / SPAN,
    ALL_PAGES = (1 << SPAN_PAGES) - 1,
    SPARE_MOST = 8, /* pages */
    TRIES = 4,      /* freed pages need not be adjacent */
};

/* Small sizes share slabs: in fine steps at first, then in coarse ones. */
enum {
    FINE = 8,
    FINE_MOST = 1024,
    FINE_CLASSES = FINE_MOST / FINE,
    COARSE = 16,
    SMALL_MOST = 3072,
    CLASSES = FINE_CLASSES + (SMALL_MOST - FINE_MOST) / COARSE,
    SLAB_PAGES_MOST = 8,
    WASTE_PART = 100, /* a hundredth of a slab may be lost at its end */
};

struct span {
    struct list_link link;    /* in the list of spans whose longest run is as long */
    uint16_t free, dirty;     /* bits of pages; dirty: free, and not given back to the system */
    uint8_t longest;          /* run of free pages */
    uint8_t slab[SPAN_PAGES]; /* for each page, the first page of its slab */
};

struct region {
    unsigned magic;
#define REGION_MAGIC 0x4e610400u
    struct span spans[REGION_SPANS];
};

enum { REGION_HEAD = (sizeof(struct region) + MEMORY_PAGE - 1) / MEMORY_PAGE };

/* Stands at the beginning of the slab's first page. */
struct slab {
    unsigned magic;
#define SLAB_MAGIC 0x51ab51abu
    uint16_t size_class, used, fresh; /* fresh: cells that were ever used */
    struct list_link link;            /* in the list of slabs that have room */
    void **free;                      /* cells, each pointing at the next */
};

static struct {
    pthread_mutex_t lock;
    bool started;
    struct list_link spans[SPAN_PAGES + 1]; /* by their longest run of free pages */
    struct list_link slabs[CLASSES];        /* those with room */
    void *spare[SPARE_MOST + 1]; /* the run of pages that was freed last, by its length */
    size_t dirty, reserve;       /* pages */
    _Atomic size_t held;         /* bytes */
} memory = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void memory_start(void) {
    for (unsigned i = 0; i <= SPAN_PAGES; i++)
        list_init(&memory.spans[i]);
    for (unsigned i = 0; i < CLASSES; i++)
        list_init(&memory.slabs[i]);
    memory.started = true;
}

static void memory_hold(size_t bytes) {
    atomic_fetch_add_explicit(&memory.held, bytes, memory_order_relaxed);
}

size_t memory_held(void) {
    return atomic_load_explicit(&memory.held, memory_order_relaxed);
}

void memory_promise(size_t bytes) {
    memory_hold(bytes);
}

void memory_take_back(size_t bytes) {
    memory_hold(-bytes);
}

/* Pages. */

static struct region *region_of(const void *at) {
    struct region *region;
    CAST_OBJ(region, (void *)((uintptr_t)at & ~((uintptr_t)REGION - 1)), REGION_MAGIC);
    return region;
}

static char *address_of(const struct span *span) {
    struct region *region = region_of(span);
    return (char *)region + (size_t)(span - region->spans) * SPAN;
}

static struct span *span_of(const void *at) {
    struct region *region = region_of(at);
    return &region->spans[((const char *)at - (char *)region) / SPAN];
}

static unsigned bits_of(unsigned first, unsigned count) {
    return ((1u << count) - 1) << first;
}

static unsigned longest_run(unsigned free) {
    unsigned longest = 0;
    for (; free != 0; free &= free << 1)
        longest++;
    return longest;
}

static void sort_in(struct span *span) {
    span->longest = (uint8_t)longest_run(span->free);
    list_remove(&span->link);
    list_prepend(&memory.spans[span->longest], &span->link);
}

/* NULL: the system has no memory. The region does not use huge pages: with them a single page would
 * take as much as five hundred. */
static struct region *map_region(void) {
    char *at = mmap(NULL, 2 * REGION, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) {
        reserve_note();
        return NULL;
    }
    char *aligned = (char *)(((uintptr_t)at + REGION - 1) & ~((uintptr_t)REGION - 1));
    if (aligned > at)
        munmap(at, (size_t)(aligned - at));
    munmap(aligned + REGION, (size_t)(at + REGION - aligned));
    madvise(aligned, REGION, MADV_NOHUGEPAGE);
    return (struct region *)aligned;
}

static bool add_region(void) {
    struct region *region = map_region();
    if (region == NULL)
        return false;
    region->magic = REGION_MAGIC;
    for (unsigned i = 0; i < REGION_SPANS; i++) {
        struct span *span = &region->spans[i];
        list_init(&span->link);
        span->free = ALL_PAGES;
        if (i == 0)
            span->free &= (uint16_t)~bits_of(0, REGION_HEAD);
        sort_in(span);
    }
    memory_hold(REGION_HEAD * MEMORY_PAGE);
    return true;
}

/* A span that has room for `count` pages in a row, and as little more as possible. */
static struct span *choose_span(unsigned count) {
    for (unsigned longest = count; longest <= SPAN_PAGES; longest++) {
        struct list_link *link = list_first(&memory.spans[longest]);
        if (link != NULL)
            return CONTAINER_OF(link, struct span, link);
    }
    return NULL;
}

static unsigned find_run(const struct span *span, unsigned count) {
    unsigned first = 0;
    while ((span->free >> first & bits_of(0, count)) != bits_of(0, count))
        first++;
    return first;
}

/* The pages that were freed last are taken next when one object takes the place of another. */
static void *memory_take_spare(unsigned count) {
    void *at = NULL;
    if (count <= SPARE_MOST) {
        at = memory.spare[count];
        memory.spare[count] = NULL;
    }
    return at;
}

static bool give_spare(void *at, unsigned count) {
    if (count > SPARE_MOST || memory.spare[count] != NULL)
        return false;
    memory.spare[count] = at;
    return true;
}

static void *take_pages(unsigned count) {
    void *spare = memory_take_spare(count);
    if (spare != NULL)
        return spare;
    struct span *span = choose_span(count);
    if (span == NULL && add_region())
        span = choose_span(count);
    if (span == NULL)
        return NULL;
    unsigned first = find_run(span, count), bits = bits_of(first, count);
    unsigned dirty = (unsigned)__builtin_popcount(span->dirty & bits);
    memory.dirty -= dirty;
    span->free &= (uint16_t)~bits;
    span->dirty &= (uint16_t)~bits;
    memset(&span->slab[first], (int)first, count);
    sort_in(span);
    memory_hold((count - dirty) * MEMORY_PAGE);
    return address_of(span) + first * MEMORY_PAGE;
}

/* Called under the lock, which is released while the system takes the pages back. */
static void give_pages(void *at, unsigned count) {
    if (give_spare(at, count))
        return;
    struct span *span = span_of(at);
    unsigned bits = bits_of((unsigned)(((char *)at - address_of(span)) / MEMORY_PAGE), count);
    if (memory.dirty + count <= memory.reserve) {
        memory.dirty += count;
        span->dirty |= (uint16_t)bits;
    } else {
        pthread_mutex_unlock(&memory.lock);
        madvise(at, count * MEMORY_PAGE, MADV_DONTNEED);
        pthread_mutex_lock(&memory.lock);
        memory_hold(-(size_t)count * MEMORY_PAGE);
    }
    span->free |= (uint16_t)bits;
    sort_in(span);
}

void memory_set_reserve(size_t bytes) {
    pthread_mutex_lock(&memory.lock);
    memory.reserve = bytes / MEMORY_PAGE;
    pthread_mutex_unlock(&memory.lock);
}

/* Slabs. */

static unsigned class_of(size_t size) {
    if (size <= FINE_MOST)
        return size == 0 ? 0 : (unsigned)((size - 1) / FINE);
    return FINE_CLASSES + (unsigned)((size - FINE_MOST - 1) / COARSE);
}

static size_t cell_size(unsigned size_class) {
    if (size_class < FINE_CLASSES)
        return (size_class + 1) * FINE;
    return FINE_MOST + (size_class - FINE_CLASSES + 1) * (size_t)COARSE;
}

/* The smallest number of pages of which little is lost at the end. */
static unsigned slab_pages(unsigned size_class) {
    size_t cell = cell_size(size_class), least = SIZE_MAX;
    unsigned best = 1;
    for (unsigned pages = 1; pages <= SLAB_PAGES_MOST; pages++) {
        size_t all = pages * MEMORY_PAGE, lost = (all - sizeof(struct slab)) % cell;
        if (lost <= all / WASTE_PART)
            return pages;
        if (lost * SLAB_PAGES_MOST / pages < least) {
            least = lost * SLAB_PAGES_MOST / pages;
            best = pages;
        }
    }
    return best;
}

static unsigned cells_of(unsigned size_class) {
    return (unsigned)((slab_pages(size_class) * MEMORY_PAGE - sizeof(struct slab)) /
                      cell_size(size_class));
}

static struct slab *add_slab(unsigned size_class) {
    struct slab *slab = take_pages(slab_pages(size_class));
    if (slab == NULL)
        return NULL;
    INIT_OBJ(slab, SLAB_MAGIC);
    slab->size_class = (uint16_t)size_class;
    list_append(&memory.slabs[size_class], &slab->link);
    return slab;
}

static void *take_cell(unsigned size_class) {
    struct list_link *link = list_first(&memory.slabs[size_class]);
    struct slab *slab = link != NULL ? CONTAINER_OF(link, struct slab, link) : add_slab(size_class);
    if (slab == NULL)
        return NULL;
    void **cell = slab->free;
    if (cell != NULL)
        slab->free = *cell;
    else
        cell = (void **)((char *)(slab + 1) + slab->fresh++ * cell_size(size_class));
    slab->used++;
    if (slab->free == NULL && slab->fresh == cells_of(size_class))
        list_remove(&slab->link);
    return cell;
}

/* Takes no lock: the entry of a page does not change while the page is in use. */
static void *slab_of(const void *at) {
    const struct span *span = span_of(at);
    size_t page = (size_t)((const char *)at - address_of(span)) / MEMORY_PAGE;
    return address_of(span) + span->slab[page] * MEMORY_PAGE;
}

/* The slab that has had room for longest is filled first. A slab that has just begun to empty gets
 * time to become empty, because its cells are of the same age. */
static void give_cell(void *at) {
    struct slab *slab;
    CAST_OBJ(slab, slab_of(at), SLAB_MAGIC);
    *(void **)at = slab->free;
    slab->free = at;
    if (list_empty(&slab->link))
        list_append(&memory.slabs[slab->size_class], &slab->link);
    if (--slab->used > 0)
        return;
    list_remove(&slab->link);
    slab->magic = 0;
    give_pages(slab, slab_pages(slab->size_class));
}

void memory_prefetch_free(const void *at, size_t size) {
    if (!SANITIZED && size <= SMALL_MOST)
        __builtin_prefetch(slab_of(at), 1);
}

static unsigned pages_of(size_t size) {
    return (unsigned)((size + MEMORY_PAGE - 1) / MEMORY_PAGE);
}

size_t memory_cost(size_t size) {
    if (size > MEMORY_LARGEST)
        return size;
    if (size > SMALL_MOST)
        return pages_of(size) * (size_t)MEMORY_PAGE;
    return cell_size(class_of(size));
}

void *memory_alloc(size_t size) {
    void *at;
    if (SANITIZED || size > MEMORY_LARGEST) {
        at = malloc(size);
        if (at != NULL)
            memory_hold(memory_cost(size));
        return at;
    }
    pthread_mutex_lock(&memory.lock);
    if (!memory.started)
        memory_start();
    at = size > SMALL_MOST ? take_pages(pages_of(size)) : take_cell(class_of(size));
    pthread_mutex_unlock(&memory.lock);
    return at;
}

static struct {
    bool (*give)(void *arg);
    void *arg;
} the_giver;

void memory_set_giver(bool (*give)(void *arg), void *arg) {
    the_giver.give = give;
    the_giver.arg = arg;
}

void *memory_alloc_hard(size_t size) {
    void *at;
    for (unsigned tries = 0; (at = memory_alloc(size)) == NULL && tries < TRIES; tries++)
        if (the_giver.give == NULL || !the_giver.give(the_giver.arg))
            break;
    return at;
}

void *memory_need(size_t size) {
    void *at;
    while ((at = memory_alloc(size)) == NULL)
        reserve_spend(size);
    return at;
}

void memory_free(void *at, size_t size) {
    if (SANITIZED || size > MEMORY_LARGEST) {
        memory_hold(-memory_cost(size));
        free(at);
        return;
    }
    pthread_mutex_lock(&memory.lock);
    if (size > SMALL_MOST)
        give_pages(at, pages_of(size));
    else
        give_cell(at);
    pthread_mutex_unlock(&memory.lock);
}
