#include "suites.h"

#include "gzip/accept_encoding.h"

START_TEST(qualities) {
    static const struct {
        const char *value;
        int quality;
    } cases[] = {
        {"gzip", 1000},
        {"GZip", 1000},
        {"x-gzip", 1000},
        {"gzip, deflate, br", 1000},
        {"br;q=1.0, gzip;q=0.8, *;q=0.1", 800},
        {"gzip;q=0", 0},
        {"gzip;q=0.000", 0},
        {"gzip;q=0.001", 1},
        {"gzip ; q=0.5", 500},
        {"gzip;Q=0.5", 500},
        {"*", 1000},
        {"*;q=0", 0},
        {"*, gzip;q=0", 0},
        {"gzip;q=0, *", 0},
        {"identity", -1},
        {"", -1},
        {"br", -1},
        {"gzip2", -1},
        {"agzip", -1},
        {",, ,gzip", 1000},
        {"gzip;q=1.001", 0},
        {"gzip;q=2", 0},
        {"gzip;q=", 0},
        {"gzip;q=0.1234", 0},
        {"gzip;q=-1", 0},
        {"gzip;level=9", 0},
        {"gzip;q=0, gzip;q=1", 0},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        int got = accept_encoding_quality(guard_put(slice_from(cases[i].value)), SLICE("gzip"));
        EXPECT(got == cases[i].quality, "\"%s\": %d instead of %d", cases[i].value, got,
               cases[i].quality);
    }
}
END_TEST

Suite *accept_encoding_suite(void) {
    const TTest *const tests[] = {qualities};
    return suite_of("accept_encoding", tests, COUNT_OF(tests));
}
