#include "http2/early_priority.h"

/* The other side may say how urgent a stream is before it opens it, and servers should keep the most
 * recent PRIORITY_UPDATE until then (RFC 9218 §7.1). A few are kept, of streams that it may open
 * before others end. */
void http2_early_priority_keep(struct http2_session *session, uint32_t id, struct slice value) {
    unsigned more = session->limits.streams - session->stream_count;
    if (id % 2 == 0 || id <= session->last_in || (id - session->last_in) / 2 > more)
        return;
    struct http2_early_priority *early = session->early, *end = early + HTTP2_EARLY_PRIORITIES;
    while (early < end && early->id != id)
        early++;
    if (early == end) {
        early = &session->early[session->early_next];
        session->early_next = (session->early_next + 1) % HTTP2_EARLY_PRIORITIES;
    }
    early->id = id;
    http2_priority_parse(value, &early->priority);
    session->has_early = true;
}

void http2_early_priority_apply(struct http2_session *session, struct http2_stream *stream) {
    session->has_early = false;
    for (unsigned i = 0; i < HTTP2_EARLY_PRIORITIES; i++) {
        struct http2_early_priority *early = &session->early[i];
        if (early->id == stream->id)
            http2_stream_update_priority(stream, &early->priority);
        if (early->id <= stream->id)
            early->id = 0;
        session->has_early |= early->id != 0;
    }
}
