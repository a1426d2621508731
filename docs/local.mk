# Manuals. CONFIGURATION.md and retort.conf.5 are printed from the option table and kept in the tree,
# so that they can be read and installed without building; tests/unit-proxy checks that they are
# current.
dist_man_MANS += docs/retort.8 docs/retort.conf.5 docs/retortctl.1
EXTRA_DIST += docs/CONFIGURATION.md

EXTRA_PROGRAMS = docs/print-manual
CLEANFILES += docs/print-manual
docs_print_manual_CPPFLAGS = $(proxy_cppflags)
docs_print_manual_CFLAGS = $(proxy_cflags)
docs_print_manual_SOURCES = docs/print-manual.c
docs_print_manual_LDADD = $(proxy_libs)

docs: docs/print-manual$(EXEEXT)
	docs/print-manual$(EXEEXT) markdown > $(srcdir)/docs/CONFIGURATION.md.new
	mv $(srcdir)/docs/CONFIGURATION.md.new $(srcdir)/docs/CONFIGURATION.md
	docs/print-manual$(EXEEXT) man > $(srcdir)/docs/retort.conf.5.new
	mv $(srcdir)/docs/retort.conf.5.new $(srcdir)/docs/retort.conf.5
.PHONY: docs
