dnl The few configure tests that fornax needs beyond those of autoconf, automake, libtool and pkg-config.

dnl AX_FNX_CFLAGS(VARIABLE, FLAG, [IF-REFUSED]): appends FLAG to VARIABLE if the compiler takes it.
AC_DEFUN([AX_FNX_CFLAGS], [
    AC_MSG_CHECKING([whether $CC takes $2])
    fnx_saved_cflags=$CFLAGS
    CFLAGS="$CFLAGS $2 -Werror"
    AC_COMPILE_IFELSE([AC_LANG_SOURCE([int fnx_probe; ])],
        [AC_MSG_RESULT([yes])
         $1="$$1 $2"],
        [AC_MSG_RESULT([no])
         $3])
    CFLAGS=$fnx_saved_cflags
])

dnl AX_FNX_SANITIZERS: --enable-sanitizers=address,undefined|thread. Flags go into FNX_CFLAGS and FNX_LDFLAGS, the bits that
dnl plugin and host compare (fnx_plugin.build) into FNX_BUILD_BITS and the manifest's words into FNX_BUILD_WORDS.
AC_DEFUN([AX_FNX_SANITIZERS], [
    AC_ARG_ENABLE([sanitizers],
        [AS_HELP_STRING([--enable-sanitizers=LIST], [address,undefined or thread, for everything that is built])],
        [], [enable_sanitizers=])
    AS_CASE([$enable_sanitizers], [no], [enable_sanitizers=], [yes], [enable_sanitizers=address,undefined])
    FNX_BUILD_BITS=0
    FNX_BUILD_WORDS=
    sanitize_thread=no
    for fnx_word in $(echo "$enable_sanitizers" | tr ',' ' '); do
        AS_CASE([$fnx_word],
            [address], [FNX_BUILD_BITS=$((FNX_BUILD_BITS | 1))],
            [thread], [FNX_BUILD_BITS=$((FNX_BUILD_BITS | 2)); sanitize_thread=yes],
            [undefined], [FNX_BUILD_BITS=$((FNX_BUILD_BITS | 4))],
            [AC_MSG_ERROR([--enable-sanitizers: unknown word $fnx_word; known: address undefined thread])])
        FNX_BUILD_WORDS="$FNX_BUILD_WORDS${FNX_BUILD_WORDS:+, }\"$fnx_word\""
    done
    AS_IF([test -n "$enable_sanitizers"], [
        AX_FNX_CFLAGS([fnx_sanitize], [-fsanitize=$enable_sanitizers],
                      [AC_MSG_ERROR([the compiler does not take -fsanitize=$enable_sanitizers])])
        FNX_CFLAGS="$FNX_CFLAGS$fnx_sanitize -fno-sanitize-recover=all -fno-omit-frame-pointer"
        FNX_LDFLAGS="$FNX_LDFLAGS$fnx_sanitize"
    ])
    dnl clang leaves the sanitizer's runtime to the program, so a library with it has undefined symbols.
    FNX_DEFS_LDFLAGS=-Wl,-z,defs
    AS_IF([test -n "$enable_sanitizers" && $CC --version 2>/dev/null | grep -q clang], [FNX_DEFS_LDFLAGS=])
    AC_SUBST([FNX_DEFS_LDFLAGS])
    AC_SUBST([FNX_BUILD_BITS])
    AC_SUBST([FNX_BUILD_WORDS])
    AM_CONDITIONAL([SANITIZE], [test -n "$enable_sanitizers"])
    AM_CONDITIONAL([SANITIZE_THREAD], [test "$sanitize_thread" = yes])
])

dnl AX_FNX_CPU: --enable-cpu=auto|yes|no. The cpu plugin needs oneDNN 2.x and OpenMP; without them it is left out.
AC_DEFUN([AX_FNX_CPU], [
    AC_ARG_ENABLE([cpu], [AS_HELP_STRING([--enable-cpu=auto|yes|no], [the cpu plugin (needs oneDNN and OpenMP)])],
        [], [enable_cpu=auto])
    with_cpu_plugin=yes
    AS_IF([test "$enable_cpu" = no], [with_cpu_plugin='no, as asked'], [
        AC_OPENMP
        AS_IF([test "x$ac_cv_prog_c_openmp" = xunsupported], [with_cpu_plugin='no, the compiler has no OpenMP'])
        fnx_saved_libs=$LIBS
        LIBS="$LIBS -ldnnl"
        AC_MSG_CHECKING([for oneDNN 2.x])
        AC_LINK_IFELSE([AC_LANG_PROGRAM([[
#include <dnnl.h>
#if DNNL_VERSION_MAJOR != 2
#error "another version"
#endif
]], [[return dnnl_version() == 0;]])],
            [AC_MSG_RESULT([yes]); DNNL_LIBS=-ldnnl],
            [AC_MSG_RESULT([no]); with_cpu_plugin='no, oneDNN 2.x not found (Debian: libdnnl-dev)'])
        LIBS=$fnx_saved_libs
        AS_IF([test "$enable_cpu" = yes && test "$with_cpu_plugin" != yes],
            [AC_MSG_ERROR([plugin cpu: $with_cpu_plugin])])
    ])
    AC_SUBST([DNNL_LIBS])
    dnl oneDNN declares its parameters as arrays longer than what it reads.
    CPU_CFLAGS=$OPENMP_CFLAGS
    AX_FNX_CFLAGS([CPU_CFLAGS], [-Wno-stringop-overread])
    AC_SUBST([CPU_CFLAGS])
    AM_CONDITIONAL([PLUGIN_CPU], [test "$with_cpu_plugin" = yes])

    dnl Code for several levels of x86-64 in one plugin, chosen at run time; elsewhere only the base level.
    fnx_isa_flags=
    AS_CASE([$host_cpu], [x86_64|amd64], [AX_FNX_CFLAGS([fnx_isa_flags], [-march=x86-64-v4])])
    AM_CONDITIONAL([X86_64], [test -n "$fnx_isa_flags"])
])
