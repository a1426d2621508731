/*
 * The settings of the part http2, settings->parts[PART_HTTP2]: the limits of its connections. Whether a listener offers HTTP/2 and
 * origins are asked with it stands in the settings of the core, which does the TLS handshake and chooses connections.
 *
 *     http2_settings_of(settings)->client.streams
 *
 * Threads: read-only, as all settings.
 */
#ifndef RETORT_HTTP2_SETTINGS_H
#define RETORT_HTTP2_SETTINGS_H

#include "settings/settings.h"

struct http2_settings {
    /* Of one connection: requests at a time; bytes of a body, and of all bodies, that may be sent
     * ahead; bytes of a frame; units of work without use. */
    struct {
        unsigned streams;
        size_t window, connection_window;
        size_t frame_size;
        unsigned budget;
    } client;
    struct {
        unsigned connections; /* for each origin and worker, besides those that end */
        unsigned streams;     /* requests under way on a connection */
        size_t window;        /* bytes of a response that may wait for its client */
        unsigned budget;      /* work without use that a connection may cause */
    } origin;
};

extern const struct part_settings http2_part_settings;

static inline const struct http2_settings *http2_settings_of(const struct settings *settings) {
    return settings->parts[PART_HTTP2];
}

#endif
