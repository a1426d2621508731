# The programmable origin of the end-to-end tests.
check_PROGRAMS += tests/e2e/origin/origin
tests_e2e_origin_origin_CFLAGS = $(AM_CFLAGS) $(MICROHTTPD_CFLAGS) $(JANSSON_CFLAGS)
tests_e2e_origin_origin_SOURCES = tests/e2e/origin/origin.c
tests_e2e_origin_origin_LDADD = $(MICROHTTPD_LIBS) $(JANSSON_LIBS) -lpthread
