#pragma once
// What Swift's Glibc module leaves out: it is built without _GNU_SOURCE.
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/// 0, or the negated errno. The target must not exist.
static inline int rushes_rename_noreplace(const char *from, const char *to) {
    return syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 1 /* RENAME_NOREPLACE */) ? -errno : 0;
}
/// Shares the extents of `from` with `to` (btrfs, XFS): 0, or the negated errno.
static inline int rushes_reflink(int to, int from) { return ioctl(to, FICLONE, from) ? -errno : 0; }
/// Keeps a folder out of dump(8) backups. Best effort: not every file system has the flag.
static inline int rushes_set_nodump(int fd) {
    int flags = 0;
    if (ioctl(fd, FS_IOC_GETFLAGS, &flags)) return -errno;
    flags |= FS_NODUMP_FL;
    return ioctl(fd, FS_IOC_SETFLAGS, &flags) ? -errno : 0;
}
static inline int rushes_fallocate(int fd, off_t size) { int r = posix_fallocate(fd, 0, size); return r ? -r : 0; }
