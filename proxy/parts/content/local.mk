if PART_CONTENT
proxy_libproxy_a_SOURCES += \
	proxy/parts/content/part.c \
	proxy/parts/content/account.c proxy/parts/content/account.h \
	proxy/parts/content/fetch.c proxy/parts/content/fetch.h \
	proxy/parts/content/injection.c proxy/parts/content/injection.h \
	proxy/parts/content/operation.c proxy/parts/content/operation.h \
	proxy/parts/content/executor.c proxy/parts/content/executor.h
tests_unit_proxy_unit_proxy_SOURCES += tests/unit/proxy/test_content.c
if PART_ADMIN
proxy_libproxy_a_SOURCES += proxy/parts/content/pages.c
endif
endif
