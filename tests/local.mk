# parts of tests/
check_PROGRAMS += tests/unit/unit
tests_unit_unit_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_unit_LDADD = common/libcommon.la $(CHECK_LIBS)
tests_unit_unit_SOURCES = \
	tests/unit/guard.c \
	tests/unit/suites.h \
	tests/unit/test_arena.c \
	tests/unit/test_chunked.c \
	tests/unit/test_date.c \
	tests/unit/test_framing.c \
	tests/unit/test_head.c \
	tests/unit/test_head_edit.c \
	tests/unit/test_list.c \
	tests/unit/test_names.c \
	tests/unit/test_slice.c \
	tests/unit/test_spool.c \
	tests/unit/test_url.c \
	tests/unit/unit.c

TESTS += tests/unit/unit tests/check-includes.sh
EXTRA_DIST += tests/check-includes.sh tests/fuzz/http.dict

# ./configure CC=clang --enable-fuzz && make, then for example
#   tests/fuzz/fuzz_request -dict=tests/fuzz/http.dict -max_total_time=60 CORPUS-DIRECTORY
if FUZZ
noinst_PROGRAMS += \
	tests/fuzz/fuzz_chunked \
	tests/fuzz/fuzz_request \
	tests/fuzz/fuzz_response \
	tests/fuzz/fuzz_url
endif
fuzz_ldflags = $(AM_LDFLAGS) -fsanitize=fuzzer
tests_fuzz_fuzz_chunked_SOURCES = tests/fuzz/fuzz_chunked.c
tests_fuzz_fuzz_chunked_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_chunked_LDADD = common/libcommon.la
tests_fuzz_fuzz_request_SOURCES = \
	tests/fuzz/fuzz_head.c tests/fuzz/fuzz_head.h tests/fuzz/fuzz_request.c
tests_fuzz_fuzz_request_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_request_LDADD = common/libcommon.la
tests_fuzz_fuzz_response_SOURCES = \
	tests/fuzz/fuzz_head.c tests/fuzz/fuzz_head.h tests/fuzz/fuzz_response.c
tests_fuzz_fuzz_response_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_response_LDADD = common/libcommon.la
tests_fuzz_fuzz_url_SOURCES = tests/fuzz/fuzz_url.c
tests_fuzz_fuzz_url_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_url_LDADD = common/libcommon.la

include tests/e2e/local.mk
