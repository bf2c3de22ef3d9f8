// Preloaded into `rushes` by the power-cut test: writes down, in order, every change to files below RUSHES_RECORD_ROOT. Works below SQLite
// and our own code alike, so nothing that is durable can go past it.
//
// One line an operation in RUSHES_RECORD_JOURNAL, fields separated by tabs, paths relative to the root:
//
//     create INODE PATH | mkdir INODE PATH | rename FROM TO | link FROM TO | unlink PATH | rmdir PATH
//     fsync INODE N        the file's whole contents at this moment are in RUSHES_RECORD_CONTENTS/N
//     fsyncdir INODE
//
// Writes themselves are not written down: on a strict disk nothing is sure before the fsync, and what was written by then is in its copy.
// The real fsync is left out: it would only cost time.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static pthread_mutex_t order = PTHREAD_MUTEX_INITIALIZER;
static const char *root, *contents, *otherDisk;
static size_t rootLength;
static int journal = -1;
static int copies;
static int (*realOpen)(const char *, int, ...);

__attribute__((constructor)) static void begin(void) {
    root = getenv("RUSHES_RECORD_ROOT");
    contents = getenv("RUSHES_RECORD_CONTENTS");
    // Renames from below this folder to elsewhere fail with EXDEV, as if it were another disk.
    otherDisk = getenv("RUSHES_RECORD_OTHER_DISK");
    const char *path = getenv("RUSHES_RECORD_JOURNAL");
    realOpen = dlsym(RTLD_NEXT, "open");
    if (!root || !contents || !path) return;
    rootLength = strlen(root);
    journal = realOpen(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
}

#define REAL(name) ({ static typeof(&name) found; if (!found) found = (typeof(&name))dlsym(RTLD_NEXT, #name); found; })

static int isBelow(const char *path, const char *folder) {
    size_t n = strlen(folder);
    return strncmp(path, folder, n) == 0 && path[n] == '/';
}

/// The absolute path, and where the part below the root begins; null for what is elsewhere.
static const char *below(int folder, const char *path, char *room) {
    if (journal < 0 || !path) return NULL;
    if (path[0] == '/') {
        if (strlen(path) >= PATH_MAX) return NULL;
        strcpy(room, path);
    } else {
        char base[PATH_MAX], link[64];
        if (folder == AT_FDCWD) {
            if (!getcwd(base, sizeof base)) return NULL;
        } else {
            snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
            ssize_t n = readlink(link, base, sizeof base - 1);
            if (n < 0) return NULL;
            base[n] = 0;
        }
        if (snprintf(room, PATH_MAX, "%s/%s", base, path) >= PATH_MAX) return NULL;
    }
    return isBelow(room, root) ? room + rootLength + 1 : NULL;
}

static void say(const char *format, ...) {
    char line[3 * PATH_MAX];
    va_list arguments;
    va_start(arguments, format);
    int n = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    if (write(journal, line, n) != n) abort();
}

static unsigned long long inodeOf(const char *path) {
    struct stat status;
    return lstat(path, &status) == 0 ? (unsigned long long)status.st_ino : 0;
}

// MARK: Names

static int opened(int folder, const char *path, int flags, mode_t mode) {
    char room[PATH_MAX];
    const char *name = flags & O_CREAT ? below(folder, path, room) : NULL;
    if (!name) return REAL(openat)(folder, path, flags, mode);
    pthread_mutex_lock(&order);
    int isNew = inodeOf(room) == 0;
    int result = REAL(openat)(folder, path, flags, mode), error = errno;
    if (result >= 0 && isNew) say("create\t%llu\t%s\n", inodeOf(room), name);
    pthread_mutex_unlock(&order);
    errno = error;
    return result;
}
#define MODE(flags) ({ mode_t mode = 0; if ((flags) & (O_CREAT | __O_TMPFILE)) { va_list a; va_start(a, flags); mode = va_arg(a, mode_t); va_end(a); } mode; })
int open(const char *path, int flags, ...) { return opened(AT_FDCWD, path, flags, MODE(flags)); }
int open64(const char *path, int flags, ...) { return opened(AT_FDCWD, path, flags, MODE(flags)); }
int openat(int folder, const char *path, int flags, ...) { return opened(folder, path, flags, MODE(flags)); }
int openat64(int folder, const char *path, int flags, ...) { return opened(folder, path, flags, MODE(flags)); }

int mkdirat(int folder, const char *path, mode_t mode) {
    char room[PATH_MAX];
    const char *name = below(folder, path, room);
    pthread_mutex_lock(&order);
    int result = REAL(mkdirat)(folder, path, mode), error = errno;
    if (result == 0 && name) say("mkdir\t%llu\t%s\n", inodeOf(room), name);
    pthread_mutex_unlock(&order);
    errno = error;
    return result;
}
int mkdir(const char *path, mode_t mode) { return mkdirat(AT_FDCWD, path, mode); }

static int renamed(int fromFolder, const char *from, int toFolder, const char *to, unsigned flags) {
    char room[PATH_MAX], toRoom[PATH_MAX];
    const char *name = below(fromFolder, from, room), *toName = below(toFolder, to, toRoom);
    if (name && toName && otherDisk && isBelow(room, otherDisk) != isBelow(toRoom, otherDisk)) {
        errno = EXDEV;
        return -1;
    }
    pthread_mutex_lock(&order);
    int result = REAL(renameat2)(fromFolder, from, toFolder, to, flags), error = errno;
    if (result == 0 && (name || toName)) {
        // The test keeps everything below the root; what comes from or goes elsewhere would be a hole in the record.
        if (!name || !toName) abort();
        say("rename\t%s\t%s\n", name, toName);
    }
    pthread_mutex_unlock(&order);
    errno = error;
    return result;
}
int renameat2(int a, const char *from, int b, const char *to, unsigned flags) { return renamed(a, from, b, to, flags); }
int renameat(int a, const char *from, int b, const char *to) { return renamed(a, from, b, to, 0); }
int rename(const char *from, const char *to) { return renamed(AT_FDCWD, from, AT_FDCWD, to, 0); }

int linkat(int a, const char *from, int b, const char *to, int flags) {
    char room[PATH_MAX], toRoom[PATH_MAX];
    const char *name = below(a, from, room), *toName = below(b, to, toRoom);
    pthread_mutex_lock(&order);
    int result = REAL(linkat)(a, from, b, to, flags), error = errno;
    if (result == 0 && name && toName) say("link\t%s\t%s\n", name, toName);
    pthread_mutex_unlock(&order);
    errno = error;
    return result;
}
int link(const char *from, const char *to) { return linkat(AT_FDCWD, from, AT_FDCWD, to, 0); }

int unlinkat(int folder, const char *path, int flags) {
    char room[PATH_MAX];
    const char *name = below(folder, path, room);
    pthread_mutex_lock(&order);
    int result = REAL(unlinkat)(folder, path, flags), error = errno;
    if (result == 0 && name) say("%s\t%s\n", flags & AT_REMOVEDIR ? "rmdir" : "unlink", name);
    pthread_mutex_unlock(&order);
    errno = error;
    return result;
}
int unlink(const char *path) { return unlinkat(AT_FDCWD, path, 0); }
int rmdir(const char *path) { return unlinkat(AT_FDCWD, path, AT_REMOVEDIR); }
int remove(const char *path) {
    int result = unlink(path);
    return result != 0 && errno == EISDIR ? rmdir(path) : result;
}

// MARK: Contents

static void copyOf(const char *from, int number) {
    char path[PATH_MAX], buffer[1 << 16];
    snprintf(path, sizeof path, "%s/%d", contents, number);
    int input = realOpen(from, O_RDONLY | O_CLOEXEC), output = realOpen(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (input < 0 || output < 0) abort();
    ssize_t n;
    while ((n = read(input, buffer, sizeof buffer)) > 0)
        if (write(output, buffer, n) != n) abort();
    if (n < 0) abort();
    close(input);
    close(output);
}

static int synced(int file, int (*real)(int)) {
    char link[64], path[PATH_MAX];
    struct stat status;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t n = journal < 0 ? -1 : readlink(link, path, sizeof path - 1);
    if (n < 0 || fstat(file, &status) != 0) return real(file);
    path[n] = 0;
    // The root itself too: names stand in it.
    if (!isBelow(path, root) && strcmp(path, root) != 0) return real(file);
    pthread_mutex_lock(&order);
    if (S_ISDIR(status.st_mode)) {
        say("fsyncdir\t%llu\n", (unsigned long long)status.st_ino);
    } else if (status.st_nlink > 0) {
        copyOf(link, copies);
        say("fsync\t%llu\t%d\n", (unsigned long long)status.st_ino, copies++);
    }
    pthread_mutex_unlock(&order);
    return 0;
}
int fsync(int file) { return synced(file, REAL(fsync)); }
int fdatasync(int file) { return synced(file, REAL(fdatasync)); }

// MARK: What Swift's Glibc has no name for, and the code calls by its number

long syscall(long number, ...) {
    va_list list;
    va_start(list, number);
    long a = va_arg(list, long), b = va_arg(list, long), c = va_arg(list, long);
    long d = va_arg(list, long), e = va_arg(list, long), f = va_arg(list, long);
    va_end(list);
    if (number == SYS_renameat2) return renamed((int)a, (const char *)b, (int)c, (const char *)d, (unsigned)e);
    static long (*real)(long, ...);
    if (!real) real = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
    return real(number, a, b, c, d, e, f);
}
