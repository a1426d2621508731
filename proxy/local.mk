# The proxy and its control program.
sbin_PROGRAMS += proxy/retort
bin_PROGRAMS += proxy/retortctl

proxy_cppflags = $(AM_CPPFLAGS) -I$(top_srcdir)/proxy
proxy_cflags = $(AM_CFLAGS) $(CARES_CFLAGS) $(CONFUSE_CFLAGS) $(JANSSON_CFLAGS) $(PCRE2_CFLAGS) \
	$(MICROHTTPD_CFLAGS) $(XXHASH_CFLAGS)

# Everything but main, so that tests can link it.
noinst_LIBRARIES += proxy/libproxy.a
proxy_libproxy_a_CPPFLAGS = $(proxy_cppflags)
proxy_libproxy_a_CFLAGS = $(proxy_cflags)
proxy_libproxy_a_SOURCES = \
	proxy/net/address.c proxy/net/address.h \
	proxy/net/counters.c proxy/net/counters.h proxy/net/counters.def \
	proxy/settings/document.c proxy/settings/document.h proxy/settings/scan.c \
	proxy/settings/json.c \
	proxy/settings/manual.c \
	proxy/settings/options.c proxy/settings/options.h \
	proxy/settings/regex.c proxy/settings/regex.h \
	proxy/settings/settings.c proxy/settings/settings.h \
	proxy/settings/value.c proxy/settings/value.h \
	proxy/settings/url_class.c proxy/settings/url_class.h \
	proxy/admin/admin.c proxy/admin/admin.h \
	proxy/admin/page.c proxy/admin/page.h

proxy_retort_CPPFLAGS = $(proxy_cppflags)
proxy_retort_CFLAGS = $(proxy_cflags)
proxy_retort_SOURCES = proxy/main.c
proxy_libs = proxy/libproxy.a common/libcommon.la $(CARES_LIBS) $(CONFUSE_LIBS) $(JANSSON_LIBS) \
	$(PCRE2_LIBS) $(MICROHTTPD_LIBS) $(XXHASH_LIBS) -lpthread
proxy_retort_LDADD = $(proxy_libs)

proxy_retortctl_CPPFLAGS = $(proxy_cppflags)
proxy_retortctl_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
proxy_retortctl_SOURCES = \
	proxy/ctl/main.c \
	proxy/ctl/http_call.c proxy/ctl/http_call.h \
	proxy/ctl/helperd_client.c proxy/ctl/helperd_client.h \
	proxy/ctl/show.c proxy/ctl/show.h
proxy_retortctl_LDADD = proxy/libproxy.a common/libcommon.la $(JANSSON_LIBS)

include tests/unit-proxy/local.mk
