# libcommon: what the proxy and the services share. Built as a libtool convenience library because
# the service modules, which are shared objects, link it too.
noinst_LTLIBRARIES += common/libcommon.la
common_libcommon_la_CFLAGS = $(AM_CFLAGS) -fvisibility=hidden
common_libcommon_la_SOURCES = \
	common/base/arena.c common/base/arena.h \
	common/base/assert.c common/base/assert.h \
	common/base/backoff.h \
	common/base/base64.c common/base/base64.h \
	common/base/clocks.h \
	common/base/failure.c common/base/failure.h \
	common/base/fetch.h \
	common/base/findings.c common/base/findings.h \
	common/base/plural.h \
	common/base/list.h \
	common/base/log.c common/base/log.h \
	common/base/random.c common/base/random.h \
	common/base/reserve.c common/base/reserve.h \
	common/base/ring.c common/base/ring.h \
	common/base/scheduling.c common/base/scheduling.h \
	common/base/signals.c common/base/signals.h \
	common/base/slice.c common/base/slice.h \
	common/base/spill_file.c common/base/spill_file.h \
	common/base/spool.c common/base/spool.h \
	common/base/text.c common/base/text.h \
	common/base/threads.c common/base/threads.h \
	common/base/times.c common/base/times.h \
	common/base/units.c common/base/units.h \
	common/base/version.c common/base/version.h \
	common/event/source.c \
	common/event/loop.c common/event/loop.h \
	common/event/mailbox.c common/event/mailbox.h \
	common/event/source.h \
	common/event/timer.c common/event/timer.h \
	common/event/waiter.c common/event/waiter.h \
	common/http/bytes.c common/http/bytes.h \
	common/http/chunked.c common/http/chunked.h \
	common/http/credentials.c common/http/credentials.h \
	common/http/date.c common/http/date.h \
	common/http/dot_segments.c common/http/dot_segments.h \
	common/http/framing.c common/http/framing.h \
	common/http/head.c common/http/head.h common/http/methods.def common/http/names.def \
	common/http/head_difference.c common/http/head_difference.h \
	common/http/head_parser.c common/http/head_parser.h \
	common/http/names.c common/http/names.h \
	common/http/preference.c common/http/preference.h \
	common/http/secret_field.c common/http/secret_field.h \
	common/http/neutral.c common/http/neutral.h \
	common/http/trailer.c common/http/trailer.h \
	common/http/structured.c common/http/structured.h \
	common/http/trace_context.c common/http/trace_context.h \
	common/http/url.c common/http/url.h

# Tables, apart since they need a library for their hash.
noinst_LTLIBRARIES += common/libtable.la
common_libtable_la_CFLAGS = $(AM_CFLAGS) $(XXHASH_CFLAGS)
common_libtable_la_SOURCES = \
	common/base/eviction.c common/base/eviction.h \
	common/base/secret_hash.c common/base/secret_hash.h \
	common/base/shared_table.c common/base/shared_table.h \
	common/base/table.c common/base/table.h
common_libtable_la_LIBADD = $(XXHASH_LIBS)

# Configuration files by tables of options, apart since modules of services have none.
noinst_LTLIBRARIES += common/libconfig.la
common_libconfig_la_SOURCES = \
	common/config/config_file.c common/config/config_file.h \
	common/config/document.c common/config/document.h \
	common/config/manual.c common/config/manual.h \
	common/config/option.c common/config/option.h \
	common/config/parse.c \
	common/config/shown.c common/config/shown.h \
	common/config/tokens.c common/config/tokens.h \
	common/config/value.c common/config/value.h

# The files of recorded exchanges, apart since they need a library for their sums.
noinst_LTLIBRARIES += common/librecord.la
common_librecord_la_CFLAGS = $(AM_CFLAGS) $(XXHASH_CFLAGS)
common_librecord_la_SOURCES = \
	common/record/file.c common/record/file.h \
	common/record/mask.c common/record/mask.h \
	common/record/recorded_exchange.c common/record/recorded_exchange.h common/record/recorded_exchange.def
common_librecord_la_LIBADD = $(XXHASH_LIBS)

# What runs services in threads and processes of their own, and the process.
noinst_LTLIBRARIES += common/librunner.la
common_librunner_la_CFLAGS = $(AM_CFLAGS)
common_librunner_la_SOURCES = \
	common/runner/exchange.c common/runner/exchange.h \
	common/runner/frame.c common/runner/frame.h \
	common/runner/link.c common/runner/link.h \
	common/runner/process.h \
	common/runner/runner.c common/runner/runner.h \
	common/runner/process.c
helper_PROGRAMS += common/retort-service
common_retort_service_SOURCES = common/runner/main.c
common_retort_service_LDADD = common/librunner.la common/libservice.la common/libcommon.la -lpthread
