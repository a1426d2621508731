if PART_CHECKS
proxy_libproxy_a_SOURCES += proxy/parts/checks/part.c
endif
