/*
 * Records on disk: what was written is read again, whatever else stands there is not, and objects
 * are made only of what can be one. Lines, then bytes:
 *
 *     the body's length, a byte to damage (0: none), status, etag_at, etag_length, scope, the URL,
 *     the length of vary
 *     vary and the head
 */
#include "base/assert.h"
#include "cache/vary.h"
#include "disk/purge_slot.h"
#include "disk/record.h"
#include "lines.h"

enum { IDENTITY = 7, SEQUENCE = 9 };

struct scene {
    struct record_front front;
    struct slice url, head, vary;
    uint64_t damage;
};

static void take_scene(struct scene *scene, struct lines *lines) {
    memset(scene, 0, sizeof *scene);
    struct record_front *front = &scene->front;
    front->identity = IDENTITY;
    front->sequence = SEQUENCE;
    front->kind = RECORD_OBJECT;
    front->body_length = lines_number(lines) % (4 * RECORD_CHUNK);
    scene->damage = lines_number(lines);
    front->image.status = (uint16_t)lines_number(lines);
    front->image.etag_at = (uint32_t)lines_number(lines);
    front->image.etag_length = (uint16_t)lines_number(lines);
    front->image.scope = (uint8_t)lines_number(lines);
    scene->url = lines_next(lines);
    size_t vary = (size_t)lines_number(lines), rest = lines->rest.length;
    vary = vary < rest ? vary : rest;
    scene->vary = slice_make(lines->rest.base, vary);
    scene->head = slice_make(lines->rest.base + vary, rest - vary);
    front->url_length = (uint32_t)scene->url.length;
    front->vary_length = (uint32_t)vary;
    front->head_length = (uint32_t)scene->head.length;
}

/* Of its own size, so that reading past it is seen. */
static enum record_verdict read_part(struct record *record, const char *bytes, size_t length,
                                     uint64_t sequence) {
    struct slice part = lines_copy(slice_make(bytes, length));
    enum record_verdict verdict = record_read(record, part, IDENTITY, sequence);
    free((void *)part.base);
    return verdict;
}

static void check_refused(const char *bytes, size_t length, uint64_t damage) {
    struct record record;
    ASSERT(read_part(&record, bytes, length, SEQUENCE + 1) == RECORD_BAD);
    for (size_t part = 0; part < length; part += 1 + length / 8) {
        ASSERT(read_part(&record, bytes, part, SEQUENCE) == RECORD_SHORT);
        ASSERT(record.front_length > part && record.front_length <= length);
    }
    if (damage == 0)
        return;
    char *damaged = xmalloc(length);
    memcpy(damaged, bytes, length);
    damaged[damage % length] ^= (char)(1 + damage / length % 255);
    ASSERT(read_part(&record, damaged, length, SEQUENCE) != RECORD_GOOD);
    free(damaged);
}

/* What an object that was read says of itself is what an object made of it says. */
static void check_vary(const struct object *object, const struct http_head *request,
                       const struct http_head *head) {
    const struct freshness freshness = object_freshness(object);
    const struct object_provenance provenance = object_provenance(object);
    struct slice vary = object_vary(object), selector = object_selector(object);
    ASSERT(selector.base + selector.length == vary.base + vary.length);
    ASSERT(selector.length == 0 || (selector.base[0] != '@' && selector.base[0] != ':'));
    struct object *again = object_new_made(object->key, object_url(object), request, head,
                                           &freshness, object->body, &provenance, &selector);
    const struct object_provenance same = object_provenance(again);
    ASSERT(same.kind == provenance.kind && object_source_equal(&same.source, &provenance.source));
    ASSERT(same.kind == OBJECT_UNSEEN ||
           (same.chain == provenance.chain && same.tag == provenance.tag));
    ASSERT(slice_equal(object_selector(again), selector));
    object_release(&again);
    vary_matches(selector, request);
}

static void check_object(const struct record *record) {
    struct http_head head, request;
    struct object_image again;
    struct body *body = body_of_bytes(SLICE("x"));
    struct object *object = object_import(record->front.key, &record->front.image, record->url,
                                          record->head, record->vary, body);
    if (object != NULL) {
        http_head_init(&request);
        request.method_id = HTTP_METHOD_GET;
        object_parse_head(object, &head);
        ASSERT(head.status == record->front.image.status);
        for (unsigned i = 0; i < head.field_count; i++)
            ASSERT(head.fields[i].value.base >= object_head(object).base);
        check_vary(object, &request, &head);
        object_has_tag(object, SLICE("a"));
        object_export(object, &again);
        ASSERT(again.status == record->front.image.status);
        object_release(&object);
    }
    body_release(&body);
}

static void check_written(const struct scene *scene) {
    static uint64_t sums[8];
    struct record record;
    size_t length = record_front_length(&scene->front);
    char *bytes = xmalloc(length);
    for (size_t i = 0; i < sizeof sums / sizeof sums[0]; i++)
        sums[i] = i * 0x9e3779b97f4a7c15u;
    record_write(&scene->front, scene->url, scene->head, scene->vary, sums, bytes);
    ASSERT(record_read(&record, slice_make(bytes, length), IDENTITY, SEQUENCE) == RECORD_GOOD);
    ASSERT(record.front_length == length);
    ASSERT(slice_equal(record.url, scene->url) && slice_equal(record.head, scene->head));
    ASSERT(slice_equal(record.vary, scene->vary));
    size_t chunks = (size_t)record_chunks(scene->front.body_length);
    ASSERT(chunks * RECORD_CHUNK >= scene->front.body_length);
    ASSERT(memcmp(record.sums, sums, chunks * sizeof sums[0]) == 0);
    check_object(&record);
    check_refused(bytes, length, scene->damage);
    free(bytes);
}

/* Bytes that nobody wrote. */
static void check_foreign(struct slice bytes) {
    struct record record;
    union {
        struct volume_header volume;
        struct purge_sector purges;
        struct segment_header segment;
        struct segment_seal seal;
    } header;
    struct segment_header segment = {.identity = IDENTITY, .sequence = SEQUENCE};
    ASSERT(read_part(&record, bytes.base, bytes.length, SEQUENCE) != RECORD_GOOD);
    memset(&header, 0, sizeof header);
    memcpy(&header, bytes.base, bytes.length < sizeof header ? bytes.length : sizeof header);
    ASSERT(!volume_header_good(&header.volume) && !purge_sector_good(&header.purges, IDENTITY, 0));
    ASSERT(!segment_header_good(&header.segment, IDENTITY));
    ASSERT(!segment_seal_good(&header.seal, &segment, 1 << 20));
    volume_header_seal(&header.volume);
    ASSERT(volume_header_good(&header.volume));
    header.volume.size++;
    ASSERT(!volume_header_good(&header.volume));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct scene scene;
    struct lines lines = lines_of(data, size);
    if (size == 0)
        return 0;
    take_scene(&scene, &lines);
    check_written(&scene);
    check_foreign(slice_make((const char *)data, size));
    return 0;
}
