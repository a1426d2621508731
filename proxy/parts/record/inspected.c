#include "record/inspected.h"

#include "base/assert.h"
#include "record/inspections.h"
#include "record/mask.h"

#include <string.h>

/* Text from the network: without memory there is none. */
static char *inspected_copy(struct slice text, size_t most) {
    size_t length = text.length < most ? text.length : most;
    char *copy = malloc(length + 1);
    if (copy == NULL)
        return NULL;
    memcpy(copy, text.base == NULL ? "" : text.base, length);
    copy[length] = '\0';
    return copy;
}

static char *inspected_text(const char *text) {
    return text == NULL ? NULL : inspected_copy(slice_from(text), INSPECTED_TEXT);
}

static size_t text_cost(const char *text) {
    return text == NULL ? 0 : strlen(text) + 1;
}

void inspected_add_step(struct inspected *inspected, const struct inspected_step *step) {
    CHECK_OBJ(inspected, INSPECTED_MAGIC);
    struct inspected_step copy = *step;
    copy.found = inspected_text(step->found);
    copy.awaited = inspected_text(step->awaited);
    inspections_lock(inspected->store);
    bool room = inspected->step_count < INSPECTED_STEPS &&
                inspections_reserve(inspected, text_cost(copy.found) + text_cost(copy.awaited));
    if (room)
        inspected->steps[inspected->step_count++] = copy;
    inspections_unlock(inspected->store);
    if (!room) {
        free((char *)copy.found);
        free((char *)copy.awaited);
    }
}

void inspected_set_head(struct inspected *inspected, enum inspected_head which, struct slice head) {
    CHECK_OBJ(inspected, INSPECTED_MAGIC);
    size_t length = head.length < INSPECTED_HEAD ? head.length : INSPECTED_HEAD;
    struct slice part = slice_make(head.base, length);
    char *bytes =
        inspected->masked ? record_mask_head(part, &length) : inspected_copy(part, length);
    if (bytes == NULL)
        return;
    inspections_lock(inspected->store);
    struct slice *place = &inspected->heads[which];
    bool room = place->base == NULL && inspections_reserve(inspected, length);
    if (room)
        *place = slice_make(bytes, length);
    inspections_unlock(inspected->store);
    if (!room)
        free(bytes);
}

static void free_service(struct inspected_service *service) {
    free((char *)service->service);
    free((char *)service->point);
    free((char *)service->verdict);
    free((char *)service->error);
}

void inspected_add_service(struct inspected *inspected, const struct inspected_service *service) {
    CHECK_OBJ(inspected, INSPECTED_MAGIC);
    struct inspected_service copy = {
        .service = inspected_text(service->service),
        .point = inspected_text(service->point),
        .verdict = inspected_text(service->verdict),
        .error = inspected_text(service->error),
        .milliseconds = service->milliseconds,
    };
    size_t cost = text_cost(copy.service) + text_cost(copy.point) + text_cost(copy.verdict) +
                  text_cost(copy.error);
    inspections_lock(inspected->store);
    bool room =
        inspected->service_count < INSPECTED_SERVICES && inspections_reserve(inspected, cost);
    if (room)
        inspected->services[inspected->service_count++] = copy;
    inspections_unlock(inspected->store);
    if (!room)
        free_service(&copy);
}

void inspected_end(struct inspected **inspectedp, const struct inspected_outcome *outcome) {
    struct inspected *inspected = *inspectedp;
    *inspectedp = NULL;
    CHECK_OBJ(inspected, INSPECTED_MAGIC);
    struct inspections *store = inspected->store;
    char *result = inspected_copy(outcome->result, INSPECTED_TEXT);
    char *user = outcome->user.length == 0 ? NULL : inspected_copy(outcome->user, INSPECTED_TEXT);
    char *error = inspected_text(outcome->error);
    inspections_lock(store);
    inspected->result = result;
    inspected->user = user;
    inspected->error = error;
    inspected->status = outcome->status;
    inspected->bytes = outcome->bytes;
    inspected->took = outcome->took;
    inspected->aborted = outcome->aborted;
    inspected->active = false;
    inspections_note_end(store);
    inspections_unlock(store);
}

void inspected_free(struct inspected *inspected) {
    CHECK_OBJ(inspected, INSPECTED_MAGIC);
    for (unsigned i = 0; i < inspected->step_count; i++) {
        free((char *)inspected->steps[i].found);
        free((char *)inspected->steps[i].awaited);
    }
    for (unsigned i = 0; i < inspected->service_count; i++)
        free_service(&inspected->services[i]);
    for (unsigned i = 0; i < INSPECTED_HEADS; i++)
        free((char *)inspected->heads[i].base);
    for (unsigned i = 0; i < inspected->record_count; i++)
        inspected_record_release(&inspected->records[i]);
    free(inspected->client);
    free(inspected->method);
    free(inspected->url);
    free(inspected->result);
    free(inspected->error);
    free(inspected->user);
    FREE_OBJ(inspected);
}

struct inspected_record *inspected_record_reference(struct inspected_record *record) {
    atomic_fetch_add(&record->references, 1);
    return record;
}

void inspected_record_release(struct inspected_record **recordp) {
    struct inspected_record *record = *recordp;
    *recordp = NULL;
    if (record == NULL || atomic_fetch_sub(&record->references, 1) > 1)
        return;
    free(record->bytes);
    free(record);
}

struct slice inspected_record_content(const struct inspected_record *record) {
    return slice_make(record->bytes + RECORDED_HEAD, record->length - RECORDED_HEAD);
}
