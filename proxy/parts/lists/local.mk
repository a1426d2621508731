if PART_LISTS
proxy_libproxy_a_SOURCES += \
	proxy/parts/lists/part.c proxy/parts/lists/list_file.h \
	proxy/parts/lists/name_set.c proxy/parts/lists/name_set.h \
	proxy/parts/lists/url_set.c proxy/parts/lists/url_set.h
tests_unit_proxy_unit_proxy_SOURCES += tests/unit/proxy/test_lists.c
endif
