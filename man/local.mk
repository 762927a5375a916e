# Man pages. A release ships them made, so that building it needs no scdoc.
man_sources = \
	man/fornax.1.scd \
	man/fornax.7.scd \
	man/fornax-env.7.scd \
	man/fornax-plugins.7.scd
EXTRA_DIST += $(man_sources)

if HAVE_MAN
dist_man_MANS = $(man_sources:.scd=)
endif

SUFFIXES = .scd
.scd:
	$(AM_V_GEN)$(MKDIR_P) $(@D) && $(SCDOC) < $< > $@.tmp && mv $@.tmp $@

MAINTAINERCLEANFILES += $(man_sources:.scd=)
