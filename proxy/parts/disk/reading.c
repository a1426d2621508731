#include "disk/reading.h"

#include "base/assert.h"

#include <time.h>

/* FILE_LEAST: the smallest body that is sent from the page cache after it was read. Describing
 * pages has a fixed cost; copying has a cost for each byte. */
enum { FRONT_FIRST = 16 * 1024, FILE_LEAST = 12 * 1024 };

static size_t whole_length(const struct reading *reading) {
    return (size_t)reading->place.blocks * RECORD_ALIGN;
}

/* The whole record if it is small, otherwise a length that should contain its front. */
static size_t first_length(const struct reading *reading) {
    size_t whole = whole_length(reading);
    return whole <= DISK_SMALL + FRONT_FIRST ? whole : FRONT_FIRST;
}

static void reading_fail(struct reading *reading, const char *what) {
    volume_report_bad(reading->volume, reading->key, &reading->place, what);
    reading->state = READING_FAILED;
}

static void want(struct reading *reading, size_t length) {
    body_held_free(&reading->held);
    reading->held = body_held_new(length);
    reading->length = length;
    reading->state = reading->held != NULL ? READING_WANTS : READING_FAILED;
    if (reading->held != NULL)
        reading->bytes = reading->held->bytes;
}

bool reading_begin(struct reading *reading, struct volume *volume, const struct disk_place *place,
                   uint64_t key) {
    *reading = (struct reading){.volume = volume, .place = *place, .key = key};
    reading->offset = volume_offset(place->at);
    reading->pinned = volume_pin(volume, place, &reading->sequence);
    if (reading->pinned)
        want(reading, first_length(reading));
    return reading->pinned;
}

bool reading_wants(struct reading *reading) {
    return reading->state == READING_WANTS;
}

static bool fits_its_place(const struct reading *reading) {
    const struct record *record = &reading->record;
    uint64_t length = record->front_length + record->front.body_length;
    bool renews = (reading->place.variant & DISK_RENEWAL) != 0;
    return record_blocks(length) == reading->place.blocks &&
           record->front.key.low == reading->key &&
           record->front.kind == (renews ? RECORD_RENEWAL : RECORD_OBJECT);
}

/* The device reported the error, so it is unknown whether the record is good. */
static void reading_give_up(struct reading *reading) {
    disk_index_remove_place(reading->volume->index, reading->key, reading->place.at);
    volume_note_lost(reading->volume);
    reading->state = READING_FAILED;
}

void reading_got(struct reading *reading, bool good) {
    size_t length = reading->length;
    if (!good) {
        reading_give_up(reading);
        return;
    }
    switch (record_read(&reading->record, slice_make(reading->bytes, length),
                        reading->volume->header.identity, reading->sequence)) {
    case RECORD_GOOD:
        reading->state = READING_DONE;
        if (!fits_its_place(reading))
            reading_fail(reading, "it belongs to another object");
        return;
    case RECORD_SHORT:
        if (reading->record.front_length <= length ||
            reading->record.front_length > whole_length(reading))
            reading_fail(reading, "its lengths");
        else
            want(reading, reading->record.front_length);
        return;
    case RECORD_BAD: reading_fail(reading, "its head"); return;
    }
}

/* When memory is short, the record stays on disk and this request goes to the origin. */
static struct body *body_on_volume(struct reading *reading, struct reads *reads) {
    struct body *body =
        disk_body_new(reading->volume, reads, &reading->place, &reading->record, reading->whole);
    reading->pinned = body == NULL && reading->pinned;
    return body;
}

/* The object takes over the bytes of a small record. A record that is sent from the volume keeps
 * the pin. */
static struct body *body_of(struct reading *reading, struct reads *reads) {
    const struct record *record = &reading->record;
    reading->whole = record->front_length + record->front.body_length <= reading->length;
    if (!reading->whole)
        return body_on_volume(reading, reads);
    if (!record_body_good(&reading->record, reading->bytes + reading->record.front_length)) {
        reading_fail(reading, "its body");
        return NULL;
    }
    if (reading->cached && record->front.body_length >= FILE_LEAST && !reading->volume->copies)
        return body_on_volume(reading, reads);
    return body_of_held(&reading->held, record->front_length, (size_t)record->front.body_length);
}

struct object *reading_object(const struct record *record, struct body *body) {
    return object_import(record->front.key, &record->front.image, record->url, record->head,
                         record->vary, body);
}

bool reading_is_renewal(const struct reading *reading) {
    return reading->state == READING_DONE && reading->record.front.kind == RECORD_RENEWAL;
}

bool reading_is_renewed(const struct reading *reading, const struct record *renewal) {
    const struct record_front *front = &reading->record.front;
    return reading->state == READING_DONE && renewal->front.key.high == front->key.high &&
           renewal->front.variant == front->variant &&
           slice_equal(renewal->url, reading->record.url) &&
           renewal->front.renewed == record_contents(reading->record.sums, front->body_length);
}

/* A purged object stays purged even if it was renewed later. An object that a purge made stale
 * is fresh again with a newer head. */
static enum purge_action reading_judge(struct purge_log *purges, const struct object *object,
                                       const struct record *record, const struct record *renewal) {
    enum purge_action action = purge_log_judge(purges, object, record->front.events);
    if (action == PURGE_REMOVE || renewal == NULL)
        return action;
    return purge_log_judge(purges, object, renewal->front.events);
}

/* Returns the object unless it was purged. */
static struct object *object_of(struct reading *reading, struct body *body,
                                struct purge_log *purges, const struct record *renewal) {
    struct object *object = reading_object(renewal != NULL ? renewal : &reading->record, body);
    struct disk_index *index = reading->volume->index;
    if (object == NULL) {
        reading_fail(reading, "its head");
        return NULL;
    }
    switch (reading_judge(purges, object, &reading->record, renewal)) {
    case PURGE_NOTHING: break;
    case PURGE_STALE: object_outdate(object, false, time(NULL)); break;
    case PURGE_DOUBT: object_outdate(object, true, time(NULL)); break;
    case PURGE_REMOVE:
        volume_note_lost(reading->volume); /* if the purge is not on disk */
        disk_index_remove_place(index, reading->key, reading->place.at);
        object_release(&object);
        return NULL;
    }
    disk_index_mark(index, reading->key, reading->place.at);
    return object;
}

struct object *reading_end(struct reading *reading, struct reads *reads, struct purge_log *purges,
                           const struct record *renewal) {
    struct body *body = reading->state == READING_DONE ? body_of(reading, reads) : NULL;
    struct object *object = body == NULL ? NULL : object_of(reading, body, purges, renewal);
    body_release(&body);
    if (reading->pinned)
        volume_unpin(reading->volume, &reading->place);
    reading->pinned = false;
    body_held_free(&reading->held);
    return object;
}
