if PART_PAGES
proxy_libproxy_a_SOURCES += \
	proxy/parts/pages/part.c proxy/parts/pages/settings.c proxy/parts/pages/options.def \
	proxy/parts/pages/error_page.c proxy/parts/pages/error_page.h \
	proxy/parts/pages/reply.c
endif
