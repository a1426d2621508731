if PART_INSIDE
proxy_libproxy_a_SOURCES += \
	proxy/parts/inside/part.c \
	proxy/parts/inside/adapter.c proxy/parts/inside/adapter.h \
	proxy/parts/inside/body.c \
	proxy/parts/inside/call.c proxy/parts/inside/call.h \
	proxy/parts/inside/child.c proxy/parts/inside/child.h \
	proxy/parts/inside/child_word.c \
	proxy/parts/inside/code.c proxy/parts/inside/code.h \
	proxy/parts/inside/content.c proxy/parts/inside/content.h \
	proxy/parts/inside/runner_links.c proxy/parts/inside/runner_links.h \
	proxy/parts/inside/instance.c proxy/parts/inside/instance.h \
	proxy/parts/inside/concurrency.c proxy/parts/inside/concurrency.h \
	proxy/parts/inside/remote.c proxy/parts/inside/remote.h \
	proxy/parts/inside/run.c proxy/parts/inside/run.h \
	proxy/parts/inside/runners.c proxy/parts/inside/runners.h \
	proxy/parts/inside/settings.c proxy/parts/inside/settings.h \
	proxy/parts/inside/service.h \
	proxy/parts/inside/watches.c proxy/parts/inside/watches.h
tests_unit_proxy_unit_proxy_SOURCES += \
	tests/unit/proxy/test_inside_head.c \
	tests/unit/proxy/test_inside_concurrency.c \
	tests/unit/proxy/test_inside_remote.c \
	tests/unit/proxy/test_inside_slow.c \
	tests/unit/proxy/test_runner_drive.c
endif
