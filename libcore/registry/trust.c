/* See trust.h. */
#include "registry/trust.h"

#include "base/alloc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool trusted(int fd, const char *path, struct stat *s, fnx_reason *why) {
    if (fstat(fd, s)) return fnx_refuse(why, "%s: %s", path, strerror(errno));
    if (s->st_uid != 0 && s->st_uid != geteuid())
        return fnx_refuse(why, "%s belongs to user %u, not to root or to the user %u who runs this", path,
                          (unsigned)s->st_uid, (unsigned)geteuid());
    if (s->st_mode & S_IWOTH)
        return fnx_refuse(why, "%s can be written by everybody; chmod o-w if that was not meant", path);
    return true;
}

/* The folder that `path` names a file in, opened and checked; -1 with the reason. */
static int open_folder(const char *path, fnx_reason *why) {
    const char *slash = strrchr(path, '/');
    struct stat s;
    char *folder = slash == path ? fnx_alloc_string("/")
                   : slash       ? fnx_alloc_format("%.*s", (int)(slash - path), path)
                                 : fnx_alloc_string(".");
    int fd = folder ? open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
    if (fd < 0) (void)fnx_refuse(why, "%s: %s", folder ? folder : path, strerror(folder ? errno : ENOMEM));
    else if (!trusted(fd, folder, &s, why)) close(fd), fd = -1;
    free(folder);
    return fd;
}

/* A regular file of an opened folder. O_NONBLOCK: a FIFO must not hold us up before it is refused. */
static int open_file(int folder, const char *path, struct stat *s, fnx_reason *why) {
    const char *base = strrchr(path, '/') + 1;
    int fd = openat(folder, base, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) {
        (void)fnx_refuse(why, "%s: %s", path, strerror(errno));
        return -1;
    }
    if (trusted(fd, path, s, why) && (S_ISREG(s->st_mode) || fnx_refuse(why, "%s is no regular file", path))) return fd;
    close(fd);
    return -1;
}

int fnx_trust_open(const char *path, char **out_path, struct stat *out_stat, fnx_reason *why) {
    struct stat s;
    int fd = -1, folder, asked;
    if (out_path) *out_path = NULL;
    char *canonical = realpath(path, NULL);
    if (!canonical) {
        (void)fnx_refuse(why, "%s: %s", path, strerror(errno));
        return -1;
    }
    asked = open_folder(path, why);
    folder = asked < 0 ? -1 : open_folder(canonical, why);
    if (folder >= 0) fd = open_file(folder, canonical, &s, why);
    if (asked >= 0) close(asked);
    if (folder >= 0) close(folder);
    if (fd >= 0 && out_stat) *out_stat = s;
    if (fd >= 0 && out_path) *out_path = canonical;
    else free(canonical);
    return fd;
}
