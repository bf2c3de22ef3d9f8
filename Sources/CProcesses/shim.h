#pragma once
#include <malloc.h>
// What Swift's Glibc module leaves out (it is built without _GNU_SOURCE), and macros over control messages.
// Every function answers a result of its own or the negated errno.
#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

// MARK: Channels

static inline int rushes_socketpair(int *ends) {
    return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) ? -errno : 0;
}
static inline int rushes_pipe(int *ends) { return syscall(SYS_pipe2, ends, O_CLOEXEC) ? -errno : 0; }
static inline int rushes_set_nonblocking(int fd) {
    int flags = fcntl(fd, F_GETFL);
    return flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) ? -errno : 0;
}
/// A copy of the descriptor with a number of at least `lowest`, closed on exec.
static inline int rushes_duplicate(int fd, int lowest) {
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, lowest);
    return copy < 0 ? -errno : copy;
}

/// One packet, with `descriptor` in it unless that is negative. Never raises SIGPIPE.
static inline ssize_t rushes_send(int fd, const void *bytes, size_t n, int descriptor, int wait) {
    struct iovec part = {(void *)bytes, n};
    union { struct cmsghdr head; char room[CMSG_SPACE(sizeof(int))]; } control;
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (descriptor >= 0) {
        memset(&control, 0, sizeof control);
        control.head.cmsg_level = SOL_SOCKET;
        control.head.cmsg_type = SCM_RIGHTS;
        control.head.cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(&control.head), &descriptor, sizeof(int));
        message.msg_control = &control;
        message.msg_controllen = CMSG_LEN(sizeof(int));
    }
    ssize_t sent;
    do sent = sendmsg(fd, &message, MSG_NOSIGNAL | (wait ? 0 : MSG_DONTWAIT));
    while (sent < 0 && errno == EINTR);
    return sent < 0 ? -errno : sent;
}

/// One packet. `*flags` tells what did not fit (MSG_TRUNC, MSG_CTRUNC). Where `descriptor` is null no room is given for
/// descriptors, and the kernel closes those that came. The room is for one exactly: CMSG_SPACE would round up to two.
static inline ssize_t rushes_receive(int fd, void *bytes, size_t n, int *descriptor, int *flags, int wait) {
    struct iovec part = {bytes, n};
    union { struct cmsghdr head; char room[CMSG_SPACE(sizeof(int))]; } control;
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (descriptor) {
        *descriptor = -1;
        memset(&control, 0, sizeof control);
        message.msg_control = &control;
        message.msg_controllen = CMSG_LEN(sizeof(int));
    }
    ssize_t got;
    do got = recvmsg(fd, &message, (wait ? 0 : MSG_DONTWAIT) | 0x40000000 /* MSG_CMSG_CLOEXEC */);
    while (got < 0 && errno == EINTR);
    if (got < 0) return -errno;
    *flags = message.msg_flags;
    if (descriptor && message.msg_controllen >= CMSG_LEN(sizeof(int)) && control.head.cmsg_level == SOL_SOCKET
        && control.head.cmsg_type == SCM_RIGHTS)
        memcpy(descriptor, CMSG_DATA(&control.head), sizeof(int));
    return got;
}

/// True when nobody but this open file description has the file open or mapped; where leases are not supported, the
/// negated errno. A lease is only granted then (fcntl(2), "Leases"). Should somebody open the file in the moment in which we
/// hold it, the kernel's signal is SIGURG, which does nothing, and not SIGIO, which would end us.
static inline int rushes_is_only_opener(int fd) {
    enum { setsig = 10, setlease = 1024 };
    if (fcntl(fd, setsig, SIGURG)) return -errno;
    if (fcntl(fd, setlease, F_WRLCK)) return errno == EAGAIN ? 0 : -errno;
    fcntl(fd, setlease, F_UNLCK);
    return 1;
}

// MARK: Children

int posix_spawn_file_actions_addclosefrom_np(posix_spawn_file_actions_t *, int);

static inline int rushes_close_from(posix_spawn_file_actions_t *actions, int first) {
    return -posix_spawn_file_actions_addclosefrom_np(actions, first);
}
/// A descriptor that becomes readable when the process ends, and that no other process can take over.
static inline int rushes_pidfd_open(pid_t pid) {
    int fd = syscall(SYS_pidfd_open, pid, 0);
    return fd < 0 ? -errno : fd;
}
static inline int rushes_pidfd_signal(int fd, int signal) {
    return syscall(SYS_pidfd_send_signal, fd, signal, NULL, 0) ? -errno : 0;
}
/// 1 and how it ended, 0 while it runs, or the negated errno. Reaps.
static inline int rushes_wait(int pidfd, int wait, int *code, int *status, int64_t *cpu_ms, int64_t *peak_bytes) {
    siginfo_t info;
    struct rusage usage;
    memset(&info, 0, sizeof info);
    memset(&usage, 0, sizeof usage);
    int result;
    do result = syscall(SYS_waitid, 3 /* P_PIDFD */, pidfd, &info, WEXITED | (wait ? 0 : WNOHANG), &usage);
    while (result < 0 && errno == EINTR);
    if (result < 0) return -errno;
    if (info.si_signo != SIGCHLD) return 0;
    *code = info.si_code;
    *status = info.si_status;
    *cpu_ms = (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000LL
        + (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1000;
    *peak_bytes = usage.ru_maxrss * 1024LL;
    return 1;
}
/// Sets the soft limit of a process; the hard one stays. `resource` is one of RLIMIT_….
static inline int rushes_limit(pid_t pid, int resource, uint64_t soft) {
    uint64_t limit[2];
    if (syscall(SYS_prlimit64, pid, resource, NULL, limit)) return -errno;
    limit[0] = soft < limit[1] ? soft : limit[1];
    return syscall(SYS_prlimit64, pid, resource, limit, NULL) ? -errno : 0;
}
/// Sets both limits of this process.
static inline int rushes_limit_self(int resource, uint64_t bound) {
    uint64_t limit[2] = {bound, bound};
    return syscall(SYS_prlimit64, 0, resource, limit, NULL) ? -errno : 0;
}
static inline int rushes_limit_data(void) { return RLIMIT_DATA; }
static inline int rushes_limit_cpu(void) { return RLIMIT_CPU; }
static inline int rushes_limit_file_size(void) { return RLIMIT_FSIZE; }
static inline int rushes_limit_core(void) { return RLIMIT_CORE; }
/// Nanoseconds of processor time that a process has used, over all of its threads, or the negated errno.
static inline int64_t rushes_cpu_nanoseconds(pid_t pid) {
    clockid_t clock;
    struct timespec used;
    int fault = clock_getcpuclockid(pid, &clock);
    if (fault) return -fault;
    if (clock_gettime(clock, &used)) return -errno;
    return used.tv_sec * 1000000000LL + used.tv_nsec;
}

// MARK: Of this process

static inline int rushes_die_with_parent(void) { return prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) ? -errno : 0; }
// The heap's free memory goes back to the system where it is more than `keep` bytes.
static inline void rushes_trim_heap(size_t keep) {
    if (mallinfo2().fordblks > keep) malloc_trim(0);
}
static inline int rushes_no_new_privileges(void) { return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ? -errno : 0; }
static inline int rushes_not_dumpable(void) { return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) ? -errno : 0; }
static inline int rushes_set_name_option(void) { return PR_SET_NAME; }

// MARK: Landlock

/// The version of Landlock's interface that this kernel has, or the negated errno where it has none or has it switched off.
static inline int rushes_landlock_version(void) {
    long version = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
    return version < 0 ? -errno : (int)version;
}
/// Takes every right that this kernel's Landlock knows from the calling thread and those it will start: a set of rules that handles
/// all rights and grants none. The rights, and the structure that carries them, grew with the version (landlock(7)); the headers of
/// Debian 12 know only the first ones.
static inline int rushes_landlock_deny_all(int version) {
    struct { uint64_t files, network, scope; } rights;
    // Execute to make_sym; 2: refer; 3: truncate; 5: device ioctl.
    rights.files = (1ULL << 13) - 1;
    if (version >= 2) rights.files |= 1ULL << 13;
    if (version >= 3) rights.files |= 1ULL << 14;
    if (version >= 5) rights.files |= 1ULL << 15;
    // 4: TCP bind and connect. 6: abstract Unix sockets and signals to processes outside.
    rights.network = version >= 4 ? 3 : 0;
    rights.scope = version >= 6 ? 3 : 0;
    size_t size = version >= 6 ? 24 : version >= 4 ? 16 : 8;
    int rules = syscall(SYS_landlock_create_ruleset, &rights, size, 0);
    if (rules < 0) return -errno;
    int answer = syscall(SYS_landlock_restrict_self, rules, 0) ? -errno : 0;
    close(rules);
    return answer;
}
/// 0 when the kernel refuses to open the root folder.
static inline int rushes_is_walled_in(void) {
    int fd = openat(AT_FDCWD, "/", O_RDONLY | O_CLOEXEC);
    if (fd < 0) return errno == EPERM ? 0 : -errno;
    close(fd);
    return -EISDIR;
}
