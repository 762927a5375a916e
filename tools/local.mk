# The program `fornax`. `build/fornax` (tools/uninstalled.in) runs it from the build tree.
bin_PROGRAMS += tools/fornax
tools_fornax_SOURCES = \
	tools/cmd_devices.c \
	tools/cmd_eval.c \
	tools/cmd_ops.c \
	tools/cmd_plugins.c \
	tools/cmd_train.c \
	tools/columns.c \
	tools/columns.h \
	tools/history.c \
	tools/history.h \
	tools/main.c \
	tools/options.c \
	tools/progress.c \
	tools/progress.h \
	tools/run_info.c \
	tools/run_info.h \
	tools/task.c \
	tools/task.h \
	tools/task_stop.c \
	tools/task_test.c \
	tools/tool.h \
	tools/trainer.c \
	tools/trainer.h
tools_fornax_CPPFLAGS = $(public_cppflags) $(JANSSON_CFLAGS)
tools_fornax_LDFLAGS = $(all_ldflags)
tools_fornax_LDADD = libnn/libfornax-nn.la libcore/libfornax.la $(JANSSON_LIBS) -lm
