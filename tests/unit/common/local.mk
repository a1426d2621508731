# Unit tests of common/.
check_PROGRAMS += tests/unit/common/unit-common
tests_unit_common_unit_common_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests/unit
tests_unit_common_unit_common_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_common_unit_common_LDADD = common/libtable.la common/libcommon.la $(CHECK_LIBS)
tests_unit_common_unit_common_SOURCES = \
	tests/unit/guard.c tests/unit/guard.h \
	tests/unit/common/suites.h \
	tests/unit/common/test_arena.c \
	tests/unit/common/test_backoff.c \
	tests/unit/common/test_base64.c \
	tests/unit/common/test_bytes.c \
	tests/unit/common/test_chunked.c \
	tests/unit/common/test_date.c \
	tests/unit/common/test_failure.c \
	tests/unit/common/test_framing.c \
	tests/unit/common/test_head.c \
	tests/unit/common/test_head_edit.c \
	tests/unit/common/test_list.c \
	tests/unit/common/test_names.c \
	tests/unit/common/test_preference.c \
	tests/unit/common/test_shared_table.c \
	tests/unit/common/test_ring.c \
	tests/unit/common/test_slice.c \
	tests/unit/common/test_spool.c \
	tests/unit/common/test_table.c \
	tests/unit/common/test_text.c \
	tests/unit/common/test_structured.c \
	tests/unit/common/test_threads.c \
	tests/unit/common/test_times.c \
	tests/unit/common/test_units.c \
	tests/unit/common/test_url.c \
	tests/unit/common/unit.c
TESTS += tests/unit/common/unit-common
