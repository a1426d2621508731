# The example that is compiled: a module for the proxy. Others build it with its own Makefile, against an installed Retort.
noinst_LTLIBRARIES += examples/content-manager/manager.la
examples_content_manager_manager_la_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/examples/content-manager
examples_content_manager_manager_la_CFLAGS = $(AM_CFLAGS) -fvisibility=hidden
examples_content_manager_manager_la_SOURCES = \
	examples/content-manager/console.c examples/content-manager/console.h \
	examples/content-manager/images.c examples/content-manager/images.h \
	examples/content-manager/lifetimes.c examples/content-manager/lifetimes.h \
	examples/content-manager/manager.c
examples_content_manager_manager_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared -rpath /nowhere
examples_content_manager_manager_la_LIBADD = common/libservice.la common/libcommon.la
EXTRA_DIST += examples/content-manager/Makefile examples/content-manager/README.md \
	examples/content-manager/retort.conf.in examples/content-manager/run.sh
