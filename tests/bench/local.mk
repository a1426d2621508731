# Does the cache keep its limit in resident memory? Sanitizers have an allocator of their own.
if !SANITIZED
check_PROGRAMS += tests/bench/cache_memory
TESTS += tests/bench/cache_memory
endif
check_PROGRAMS += tests/bench/cache_purge
tests_bench_cache_purge_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/proxy
tests_bench_cache_purge_SOURCES = tests/bench/cache_purge.c
tests_bench_cache_purge_LDADD = $(proxy_libs)
tests_bench_cache_memory_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/proxy
tests_bench_cache_memory_SOURCES = tests/bench/cache_memory.c
tests_bench_cache_memory_LDADD = $(proxy_libs)
