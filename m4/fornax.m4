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

dnl AX_FNX_SANITIZERS: --enable-sanitizers=address,undefined|thread. Flags go into FNX_CFLAGS and FNX_LDFLAGS, the bits
dnl that plugin and host compare (fnx_plugin.build) into FNX_BUILD_BITS and the manifest's words into FNX_BUILD_WORDS.
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

dnl AX_FNX_VULKAN: --enable-vulkan=auto|yes|no. The vulkan plugin needs the headers of Vulkan 1.2 and glslang, which
dnl some distributions have as one shared library and Debian 12 as a handful of static ones. libvulkan itself is opened
dnl at run time.
AC_DEFUN([AX_FNX_VULKAN], [
    AC_ARG_ENABLE([vulkan],
        [AS_HELP_STRING([--enable-vulkan=auto|yes|no], [the vulkan plugin (needs the headers of Vulkan, and glslang)])],
        [], [enable_vulkan=auto])
    with_vulkan_plugin=yes
    AS_IF([test "$enable_vulkan" = no], [with_vulkan_plugin='no, as asked'], [
        AC_MSG_CHECKING([for the headers of Vulkan 1.2])
        AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[
#include <vulkan/vulkan.h>
#ifndef VK_VERSION_1_2
#error "too old"
#endif
]], [])],
            [AC_MSG_RESULT([yes])],
            [AC_MSG_RESULT([no]); with_vulkan_plugin='no, vulkan/vulkan.h not found (Debian: libvulkan-dev)'])
        AC_MSG_CHECKING([for glslang])
        fnx_saved_libs=$LIBS
        GLSLANG_LIBS=
        fnx_glslang_limits=-lglslang-default-resource-limits
        for fnx_libs in \
            "-lglslang $fnx_glslang_limits" \
            "-lglslang $fnx_glslang_limits -lSPIRV -lSPIRV-Tools-opt -lSPIRV-Tools -lstdc++ -lm" \
            "-lglslang -lMachineIndependent -lGenericCodeGen -lOSDependent -lOGLCompiler -lSPIRV $fnx_glslang_limits \
             -lSPIRV-Tools-opt -lSPIRV-Tools -lstdc++ -lm"; do
            LIBS="$fnx_libs $fnx_saved_libs"
            AS_IF([test -z "$GLSLANG_LIBS"], [AC_LINK_IFELSE([AC_LANG_PROGRAM([[
#include <glslang/Include/glslang_c_interface.h>
#include <glslang/Public/resource_limits_c.h>
]], [[
    glslang_input_t input = {.resource = glslang_default_resource()};
    glslang_program_SPIRV_generate(glslang_program_create(), GLSLANG_STAGE_COMPUTE);
    return glslang_initialize_process() && glslang_shader_create(&input);
]])], [GLSLANG_LIBS=$fnx_libs])])
        done
        LIBS=$fnx_saved_libs
        AS_IF([test -n "$GLSLANG_LIBS"], [AC_MSG_RESULT([yes])],
            [AC_MSG_RESULT([no])
             AS_IF([test "$with_vulkan_plugin" = yes],
                [with_vulkan_plugin='no, glslang not found (Debian: glslang-dev spirv-tools)'])])
        AS_IF([test "$enable_vulkan" = yes && test "$with_vulkan_plugin" != yes],
            [AC_MSG_ERROR([plugin vulkan: $with_vulkan_plugin])])
    ])
    AC_SUBST([GLSLANG_LIBS])
    AM_CONDITIONAL([PLUGIN_VULKAN], [test "$with_vulkan_plugin" = yes])
])
