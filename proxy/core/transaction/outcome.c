#include "transaction/outcome.h"

static const struct {
    struct slice ours, squids;
} names[] = {
    [RESULT_NONE] = {SLICE("NONE"), SLICE("NONE")},
    [RESULT_HIT] = {SLICE("HIT"), SLICE("TCP_MEM_HIT")},
    [RESULT_STALE] = {SLICE("STALE"), SLICE("TCP_OFFLINE_HIT")},
    [RESULT_MISS] = {SLICE("MISS"), SLICE("TCP_MISS")},
    [RESULT_REVALIDATED] = {SLICE("REVALIDATED"), SLICE("TCP_REFRESH_UNMODIFIED")},
    [RESULT_REFRESHED] = {SLICE("REFRESHED"), SLICE("TCP_REFRESH_MODIFIED")},
    [RESULT_PASS] = {SLICE("PASS"), SLICE("TCP_MISS")},
    [RESULT_TUNNEL] = {SLICE("TUNNEL"), SLICE("TCP_TUNNEL")},
    [RESULT_BUMP] = {SLICE("BUMP"), SLICE("NONE")},
    [RESULT_SERVICE] = {SLICE("SERVICE"), SLICE("TCP_ADAPTED")},
    [RESULT_DENIED] = {SLICE("DENIED"), SLICE("TCP_DENIED")},
    [RESULT_ERROR] = {SLICE("ERROR"), SLICE("NONE")},
};

struct slice cache_result_name(enum cache_result result) {
    return names[result].ours;
}

struct slice cache_result_squid_name(enum cache_result result) {
    return names[result].squids;
}
