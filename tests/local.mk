# parts of tests/
check_PROGRAMS += tests/unit/unit
tests_unit_unit_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_unit_LDADD = common/libcommon.la $(CHECK_LIBS)
tests_unit_unit_SOURCES = \
	tests/unit/guard.c tests/unit/guard.h \
	tests/unit/suites.h \
	tests/unit/test_arena.c \
	tests/unit/test_bytes.c \
	tests/unit/test_chunked.c \
	tests/unit/test_date.c \
	tests/unit/test_framing.c \
	tests/unit/test_head.c \
	tests/unit/test_head_edit.c \
	tests/unit/test_list.c \
	tests/unit/test_names.c \
	tests/unit/test_slice.c \
	tests/unit/test_spool.c tests/unit/test_text.c \
	tests/unit/test_structured.c \
	tests/unit/test_url.c \
	tests/unit/unit.c

# Of the Check library's limits, which are for programs as they are shipped.
if SANITIZED
AM_TESTS_ENVIRONMENT = CK_TIMEOUT_MULTIPLIER=$${CK_TIMEOUT_MULTIPLIER:-5}; export CK_TIMEOUT_MULTIPLIER;
endif

TESTS += tests/unit/unit tests/check-includes.sh tests/check-format.sh tests/check-icap-table.sh
EXTRA_DIST += tests/check-includes.sh tests/check-format.sh tests/check-icap-table.sh

include tests/fuzz/local.mk
include tests/e2e/local.mk
