# Configuration of the adaptation server and of the helpers' supervisor.
EXTRA_DIST += \
	conf/c-icap-build.conf.in \
	conf/c-icap-retort.conf.in \
	conf/helperd-build.conf.in \
	conf/helperd.conf.in

# Directories are known to make, not to configure.
conf/c-icap-retort.conf: conf/c-icap-retort.conf.in Makefile
	@$(MKDIR_P) conf
	$(AM_V_GEN)sed -e 's|@cicapmoduledir[@]|$(cicapmoduledir)|g' \
		-e 's|@retortconfdir[@]|$(retortconfdir)|g' $(srcdir)/conf/c-icap-retort.conf.in > $@
conf/helperd.conf: conf/helperd.conf.in Makefile
	@$(MKDIR_P) conf
	$(AM_V_GEN)sed -e 's|@helperdir[@]|$(helperdir)|g' \
		-e 's|@retortconfdir[@]|$(retortconfdir)|g' $(srcdir)/conf/helperd.conf.in > $@
nodist_retortconf_DATA = conf/c-icap-retort.conf conf/helperd.conf
CLEANFILES += $(nodist_retortconf_DATA)

# An installation never overwrites a retort.conf that an administrator may have changed: the example
# goes to retort.conf.default, and to retort.conf only where there is none.
EXTRA_DIST += conf/retort.conf
install-data-local:
	$(MKDIR_P) "$(DESTDIR)$(retortconfdir)"
	$(INSTALL_DATA) "$(srcdir)/conf/retort.conf" "$(DESTDIR)$(retortconfdir)/retort.conf.default"
	test -e "$(DESTDIR)$(retortconfdir)/retort.conf" || \
	    $(INSTALL_DATA) "$(srcdir)/conf/retort.conf" "$(DESTDIR)$(retortconfdir)/retort.conf"

uninstall-local:
	rm -f "$(DESTDIR)$(retortconfdir)/retort.conf.default"
