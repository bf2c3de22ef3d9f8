#define _GNU_SOURCE
#include "attempts.h"
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define PASSWD "/etc/passwd"
#define ELSEWHERE "/var/tmp/rushes-hijacked"

// A process that was started after all ends at once.
static long started(long pid) {
    if (pid == 0) _exit(0);
    return pid;
}
static long try_stack_of_code(int protection) {
    long page = syscall(SYS_mmap, NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page < 0) return page;
    long answer = syscall(SYS_mprotect, page, 4096, protection);
    int code = errno;
    syscall(SYS_munmap, page, 4096);
    errno = code;
    return answer;
}

#define ATTEMPTS(TRY) \
    TRY("openat", syscall(SYS_openat, AT_FDCWD, PASSWD, O_RDONLY)) \
    TRY("openat relative to the input", syscall(SYS_openat, 4, "..", O_RDONLY)) \
    TRY("openat of its own memory", syscall(SYS_openat, AT_FDCWD, "/proc/self/mem", O_RDWR)) \
    TRY("openat to write elsewhere", syscall(SYS_openat, AT_FDCWD, ELSEWHERE, O_WRONLY | O_CREAT, 0600)) \
    TRY("openat2", syscall(437, AT_FDCWD, PASSWD, (uint64_t[3]){O_RDONLY}, 24)) \
    TRY("open_by_handle_at", syscall(SYS_open_by_handle_at, AT_FDCWD, (int[4]){8}, O_RDONLY)) \
    TRY("newfstatat of a path", syscall(SYS_newfstatat, AT_FDCWD, PASSWD, (char[256]){0}, 0)) \
    TRY("newfstatat of a path behind a flag", syscall(SYS_newfstatat, 4, PASSWD, (char[256]){0}, AT_EMPTY_PATH)) \
    TRY("statx", syscall(SYS_statx, AT_FDCWD, PASSWD, 0, 0x7ff, (char[512]){0})) \
    TRY("readlinkat", syscall(SYS_readlinkat, AT_FDCWD, "/proc/self/exe", (char[256]){0}, 256)) \
    TRY("faccessat", syscall(SYS_faccessat, AT_FDCWD, PASSWD, R_OK)) \
    TRY("getcwd", syscall(SYS_getcwd, (char[256]){0}, 256)) \
    TRY("unlinkat", syscall(SYS_unlinkat, AT_FDCWD, ELSEWHERE, 0)) \
    TRY("mkdirat", syscall(SYS_mkdirat, AT_FDCWD, ELSEWHERE, 0700)) \
    TRY("linkat of the input", syscall(SYS_linkat, 4, "", AT_FDCWD, ELSEWHERE, AT_EMPTY_PATH)) \
    TRY("symlinkat", syscall(SYS_symlinkat, PASSWD, AT_FDCWD, ELSEWHERE)) \
    TRY("fchmod", syscall(SYS_fchmod, 4, 0777)) \
    TRY("fchown", syscall(SYS_fchown, 4, 0, 0)) \
    TRY("utimensat", syscall(SYS_utimensat, 4, NULL, NULL, 0)) \
    TRY("chdir", syscall(SYS_chdir, "/")) \
    TRY("mknodat", syscall(SYS_mknodat, AT_FDCWD, ELSEWHERE, S_IFIFO | 0600, 0)) \
    TRY("mount", syscall(SYS_mount, "none", "/tmp", "tmpfs", 0, NULL)) \
    TRY("chroot", syscall(SYS_chroot, "/tmp")) \
    TRY("memfd_create", syscall(SYS_memfd_create, "x", 0)) \
    TRY("socket to the network", syscall(SYS_socket, AF_INET, SOCK_STREAM, 0)) \
    TRY("socket to this machine", syscall(SYS_socket, AF_UNIX, SOCK_STREAM, 0)) \
    TRY("socketpair", syscall(SYS_socketpair, AF_UNIX, SOCK_STREAM, 0, (int[2]){0})) \
    TRY("connect", syscall(SYS_connect, 3, &(struct sockaddr_in){.sin_family = AF_INET, .sin_port = 20480}, 16)) \
    TRY("bind", syscall(SYS_bind, 3, &(struct sockaddr_in){.sin_family = AF_INET}, 16)) \
    TRY("accept", syscall(SYS_accept4, 3, NULL, NULL, 0)) \
    TRY("sendto", syscall(SYS_sendto, 3, "x", 1, 0, NULL, 0)) \
    TRY("sendmsg on another descriptor", syscall(SYS_sendmsg, 2, &(struct msghdr){0}, 0)) \
    TRY("recvmsg on another descriptor", syscall(SYS_recvmsg, 2, &(struct msghdr){0}, 0)) \
    TRY("getsockopt", syscall(SYS_getsockopt, 3, SOL_SOCKET, SO_PEERCRED, (int[4]){0}, (int[1]){12})) \
    TRY("fork", started(syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, 0))) \
    TRY("clone3", started(syscall(SYS_clone3, (uint64_t[8]){0, 0, 0, 0, SIGCHLD}, 64))) \
    TRY("clone into a name space", started(syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, NULL, NULL, NULL, 0))) \
    TRY("unshare", syscall(SYS_unshare, CLONE_NEWUSER)) \
    TRY("setns", syscall(SYS_setns, 4, 0)) \
    TRY("execve", syscall(SYS_execve, "/bin/true", (char *[]){"true", NULL}, NULL)) \
    TRY("execveat", syscall(SYS_execveat, 4, "", (char *[]){"true", NULL}, NULL, AT_EMPTY_PATH)) \
    TRY("kill of the parent", syscall(SYS_kill, parent, 0)) \
    TRY("kill of everybody", syscall(SYS_kill, -1, 0)) \
    TRY("tgkill of the parent", syscall(SYS_tgkill, parent, parent, 0)) \
    TRY("tkill of the parent", syscall(SYS_tkill, parent, 0)) \
    TRY("rt_sigqueueinfo", syscall(SYS_rt_sigqueueinfo, parent, SIGUSR1, (char[128]){0})) \
    TRY("pidfd_open", syscall(434, parent, 0)) \
    TRY("ptrace", syscall(SYS_ptrace, 16, parent, NULL, NULL)) \
    TRY("process_vm_readv", syscall(SYS_process_vm_readv, parent, &(struct iovec){0}, 1, &(struct iovec){0}, 1, 0)) \
    TRY("setsid", syscall(SYS_setsid)) \
    TRY("setpgid", syscall(SYS_setpgid, 0, 0)) \
    TRY("setuid", syscall(SYS_setuid, 65534)) \
    TRY("capset", syscall(SYS_capset, (int[2]){0x20080522}, (int[6]){0})) \
    TRY("prctl to outlive the parent", syscall(SYS_prctl, PR_SET_PDEATHSIG, 0)) \
    TRY("prctl to be dumped", syscall(SYS_prctl, PR_SET_DUMPABLE, 1)) \
    TRY("seccomp", syscall(SYS_seccomp, 0, 0, NULL)) \
    TRY("landlock_create_ruleset", syscall(444, NULL, 0, 1)) \
    TRY("prlimit64 that raises", syscall(SYS_prlimit64, 0, RLIMIT_DATA, (uint64_t[2]){~0ULL, ~0ULL}, NULL)) \
    TRY("prlimit64 of the parent", syscall(SYS_prlimit64, parent, RLIMIT_NOFILE, NULL, (uint64_t[2]){0})) \
    TRY("sched_setaffinity", syscall(SYS_sched_setaffinity, 0, 8, (uint64_t[1]){1})) \
    TRY("setpriority", syscall(SYS_setpriority, 0, 0, 0)) \
    TRY("mmap of code", syscall(SYS_mmap, NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) \
    TRY("mmap of the input as code", syscall(SYS_mmap, NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, 4, 0)) \
    TRY("mprotect to code", try_stack_of_code(PROT_READ | PROT_EXEC)) \
    TRY("pkey_mprotect", syscall(SYS_pkey_mprotect, NULL, 0, PROT_EXEC, -1)) \
    TRY("personality", syscall(SYS_personality, 0x0400000)) \
    TRY("dup", syscall(SYS_dup, 4)) \
    TRY("fcntl to own signals", syscall(SYS_fcntl, 3, F_SETOWN, parent)) \
    TRY("ioctl", syscall(SYS_ioctl, 2, 0x5401, (char[256]){0})) \
    TRY("fallocate", syscall(SYS_fallocate, 4, 0, 0, 1)) \
    TRY("shmget", syscall(SYS_shmget, 0, 4096, 01600)) \
    TRY("msgget", syscall(SYS_msgget, 0, 01600)) \
    TRY("mq_open", syscall(SYS_mq_open, "/x", O_RDWR | O_CREAT, 0600, NULL)) \
    TRY("add_key", syscall(SYS_add_key, "user", "x", "x", 1, -3)) \
    TRY("bpf", syscall(SYS_bpf, 0, (char[128]){0}, 128)) \
    TRY("perf_event_open", syscall(SYS_perf_event_open, (char[128]){0}, 0, -1, -1, 0)) \
    TRY("userfaultfd", syscall(SYS_userfaultfd, 0)) \
    TRY("io_uring_setup", syscall(425, 1, (char[256]){0})) \
    TRY("inotify_init1", syscall(SYS_inotify_init1, 0)) \
    TRY("timer_create", syscall(SYS_timer_create, 0, NULL, (int[1]){0}))

int attempt(int index, int parent, const char **name) {
    int position = 0;
    (void)parent;
#define TRY(WORDS, CALL) \
    if (index == position++) { \
        *name = WORDS; \
        return (CALL) < 0 ? errno : 0; \
    }
    ATTEMPTS(TRY)
#if defined(__x86_64__)
    // Calls that only older architectures have.
    TRY("open", syscall(SYS_open, PASSWD, O_RDONLY))
    TRY("creat", syscall(SYS_creat, ELSEWHERE, 0600))
    TRY("stat", syscall(SYS_stat, PASSWD, (char[256]){0}))
    TRY("link", syscall(SYS_link, PASSWD, ELSEWHERE))
    TRY("fork of old", started(syscall(SYS_fork)))
    TRY("arch_prctl", syscall(SYS_arch_prctl, 0x1003, (uint64_t[1]){0}))
#endif
    return -1;
}
