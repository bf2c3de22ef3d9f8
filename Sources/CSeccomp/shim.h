#pragma once
// libseccomp behind functions that Swift can call: its own are variadic, and its actions are macros with arguments.
// Every function answers 0, or the negated errno.
#include <errno.h>
#include <seccomp.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

/// A filter that answers `code` to whatever no rule names; on all threads of the process once loaded.
static inline scmp_filter_ctx rushes_filter_new(int code) {
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO((uint32_t)code));
    if (!filter) return NULL;
    // Without no_new_privs, which the process has set itself; a tree of comparisons, since a decoder calls often.
    int fault = seccomp_attr_set(filter, SCMP_FLTATR_CTL_NNP, 0);
    if (!fault) fault = seccomp_attr_set(filter, SCMP_FLTATR_CTL_TSYNC, 1);
    if (!fault) fault = seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2);
    // Calls of another architecture (32-bit ones) end the process.
    if (!fault) fault = seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
    if (!fault) return filter;
    seccomp_release(filter);
    return NULL;
}
static inline uint32_t rushes_filter_allow(void) { return SCMP_ACT_ALLOW; }
static inline uint32_t rushes_filter_trap(void) { return SCMP_ACT_TRAP; }
static inline uint32_t rushes_filter_answer(int code) { return SCMP_ACT_ERRNO((uint32_t)code); }

/// A rule for a call by name; one that this architecture does not have needs none. `mask` and `value` bind argument `argument`
/// where that is not negative: (argument & mask) == value.
static inline int rushes_filter_add(
    scmp_filter_ctx filter, uint32_t action, const char *name, int first, uint64_t first_mask, uint64_t first_value,
    int second, uint64_t second_mask, uint64_t second_value) {
    int number = seccomp_syscall_resolve_name(name);
    if (number < 0) return 0;
    struct scmp_arg_cmp bounds[2];
    unsigned count = 0;
    if (first >= 0) bounds[count++] = SCMP_CMP64((unsigned)first, SCMP_CMP_MASKED_EQ, first_mask, first_value);
    if (second >= 0) bounds[count++] = SCMP_CMP64((unsigned)second, SCMP_CMP_MASKED_EQ, second_mask, second_value);
    return seccomp_rule_add_array(filter, action, number, count, bounds);
}
static inline int rushes_filter_load(scmp_filter_ctx filter) { return seccomp_load(filter); }
static inline void rushes_filter_release(scmp_filter_ctx filter) { seccomp_release(filter); }

/// Answers the trapped calls. glibc's fstat is newfstatat with an empty path, which a filter cannot tell from one with a path;
/// here the path is read, and the call that takes none is made instead.
static inline void rushes_trapped(int signal, siginfo_t *info, void *context) {
    (void)signal;
    long answer = -EPERM;
#if defined(__x86_64__)
    // <sys/ucontext.h> names these only with _GNU_SOURCE.
    enum { at_rdi = 8, at_rsi = 9, at_rdx = 12, at_rax = 13 };
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    const char *path = (const char *)registers[at_rsi];
    if (info->si_syscall == SYS_newfstatat && path && *path == 0) {
        answer = syscall(SYS_fstat, (int)registers[at_rdi], (void *)registers[at_rdx]);
        if (answer < 0) answer = -errno;
    }
    registers[at_rax] = answer;
#elif defined(__aarch64__)
    mcontext_t *machine = &((ucontext_t *)context)->uc_mcontext;
    const char *path = (const char *)machine->regs[1];
    if (info->si_syscall == SYS_newfstatat && path && *path == 0) {
        answer = syscall(SYS_fstat, (int)machine->regs[0], (void *)machine->regs[2]);
        if (answer < 0) answer = -errno;
    }
    machine->regs[0] = (unsigned long)answer;
#else
#error "the registers of this architecture are not known here"
#endif
}
static inline int rushes_answer_traps(void) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = rushes_trapped;
    action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
    return sigaction(SIGSYS, &action, NULL) ? -errno : 0;
}
