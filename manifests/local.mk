# Manifests: in system form (library: the name of a file in $(plugindir)) to be installed, and in build/manifests with
# the path of the library just built, so that the tree runs uninstalled through the same discovery. The schema is
# installed for authors, the sample of the administrator's policy as documentation.
fill_manifest = $(SED) -e 's|@''VERSION@|$(PACKAGE_VERSION)|' -e 's|@''BUILD@|$(FNX_BUILD_WORDS)|'

manifests/%.json: manifests/%.json.in Makefile
	$(AM_V_GEN)$(MKDIR_P) $(@D) && \
	  $(fill_manifest) -e 's|@''LIBRARY@|$(abs_builddir)/plugins/$*/.libs/fornax-$*.so|' $< > $@

manifests/installed/%.json: manifests/%.json.in Makefile
	$(AM_V_GEN)$(MKDIR_P) $(@D) && $(fill_manifest) -e 's|@''LIBRARY@|fornax-$*.so|' $< > $@

schemadir = $(datadir)/fornax
dist_schema_DATA = manifests/schema.json
dist_doc_DATA = manifests/fornax.json
EXTRA_DIST += manifests/cpu.json.in manifests/ref.json.in
CLEANFILES += $(manifest_DATA) $(noinst_DATA)
