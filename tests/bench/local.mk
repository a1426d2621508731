# Does the cache keep its limit in resident memory, and are purges quick? Sanitizers have an allocator and a pace of their own.
if !SANITIZED
check_PROGRAMS += tests/bench/cache_memory tests/bench/cache_purge
TESTS += tests/bench/cache_memory tests/bench/cache_purge
endif
tests_bench_cache_purge_CPPFLAGS = $(AM_CPPFLAGS) $(proxy_includes)
tests_bench_cache_purge_SOURCES = tests/bench/cache_purge.c
tests_bench_cache_purge_LDADD = $(proxy_libs)
tests_bench_cache_memory_CPPFLAGS = $(AM_CPPFLAGS) $(proxy_includes)
tests_bench_cache_memory_SOURCES = tests/bench/cache_memory.c
tests_bench_cache_memory_LDADD = $(proxy_libs)

# What is measured against, what asks, and whether it does so rightly.
check_PROGRAMS += tests/bench/limit
tests_bench_limit_SOURCES = tests/bench/limit.c tests/bench/answerer.c tests/bench/answerer.h
check_PROGRAMS += tests/bench/tls_limit
tests_bench_tls_limit_CFLAGS = $(AM_CFLAGS) $(TLS_CFLAGS)
tests_bench_tls_limit_SOURCES = tests/bench/tls_limit.c tests/bench/answerer.c tests/bench/answerer.h
tests_bench_tls_limit_LDADD = $(TLS_LIBS)
check_PROGRAMS += tests/bench/tls_connect
tests_bench_tls_connect_CFLAGS = $(AM_CFLAGS) $(TLS_CFLAGS)
tests_bench_tls_connect_SOURCES = tests/bench/tls_connect.c tests/bench/asker.c tests/bench/asker.h
tests_bench_tls_connect_LDADD = $(TLS_LIBS)
if MICROHTTPD
check_PROGRAMS += tests/bench/canned
endif
tests_bench_canned_CFLAGS = $(AM_CFLAGS) $(MICROHTTPD_CFLAGS)
tests_bench_canned_SOURCES = tests/bench/canned.c
tests_bench_canned_LDADD = $(MICROHTTPD_LIBS)
check_PROGRAMS += tests/bench/reader
tests_bench_reader_SOURCES = tests/bench/reader.c tests/bench/asker.c tests/bench/asker.h
check_PROGRAMS += tests/bench/pace
tests_bench_pace_SOURCES = tests/bench/pace.c tests/bench/asker.c tests/bench/asker.h
tests_bench_pace_LDADD = -lm
TESTS += tests/bench/check.py
EXTRA_DIST += tests/bench/bench.py tests/bench/check.py tests/bench/icap tests/bench/run.sh tests/bench/suite tests/bench/table6

# What the compressor and the transcoder cost beside the bare libraries; by hand.
check_PROGRAMS += tests/bench/compress
tests_bench_compress_CPPFLAGS = $(services_cppflags)
tests_bench_compress_CFLAGS = $(AM_CFLAGS)
tests_bench_compress_SOURCES = tests/bench/compress.c tests/bench/turns.c tests/bench/turns.h
tests_bench_compress_LDADD = icap-services/libalgorithms.la $(encoder_libs)
check_PROGRAMS += tests/bench/transcode
tests_bench_transcode_CPPFLAGS = $(services_cppflags)
tests_bench_transcode_CFLAGS = $(AM_CFLAGS) $(picture_cflags)
tests_bench_transcode_SOURCES = tests/bench/transcode.c tests/bench/turns.c tests/bench/turns.h
tests_bench_transcode_LDADD = icap-services/libalgorithms.la $(picture_libs)

# A service that does one thing at a time, for the proxy itself and for c-icap.
check_LTLIBRARIES += tests/bench/bench.la tests/bench/srv_bench.la
bench_module_ldflags = $(AM_LDFLAGS) -module -avoid-version -shared -rpath /nowhere
tests_bench_bench_la_SOURCES = tests/bench/service.c
tests_bench_bench_la_CFLAGS = $(AM_CFLAGS) -fvisibility=hidden
tests_bench_bench_la_LDFLAGS = $(bench_module_ldflags)
tests_bench_bench_la_LIBADD = common/libservice.la common/libcommon.la
tests_bench_srv_bench_la_SOURCES = tests/bench/service.c
tests_bench_srv_bench_la_CFLAGS = $(AM_CFLAGS) -fvisibility=hidden
tests_bench_srv_bench_la_LDFLAGS = $(bench_module_ldflags)
tests_bench_srv_bench_la_LIBADD = icap-services/libhost.la $(CICAP_LIBS)

# What it takes to hand a job to a helper; by hand.
check_PROGRAMS += tests/bench/handover
tests_bench_handover_SOURCES = tests/bench/handover.c
tests_bench_handover_LDADD = common/libservice.la common/libcommon.la
