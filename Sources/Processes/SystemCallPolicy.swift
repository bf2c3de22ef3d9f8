internal import CProcesses
import Glibc

/// Which system calls a process may make: a value. A call that no rule names is answered with `otherwise`.
///
/// An answer, not a signal: libraries try calls that they can do without (a processor's affinity, a huge page), and go on when they are
/// refused. Killing would make a crash of what is a question, and would gain nothing: a refused call does nothing either way.
struct SystemCallPolicy: Sendable {
    struct Rule: Sendable {
        enum Answer: Sendable, Equatable {
            case allowed
            case refused(Int32)
            /// Decided in the process, where the argument's memory can be read; see CSeccomp.
            case trapped
        }
        /// An argument, counted from 0: `(argument & mask) == value`.
        struct Bound: Sendable {
            var argument: Int32
            var mask: UInt64 = .max
            var value: UInt64
        }
        var call: String
        var answer: Answer = .allowed
        /// At most two; all of them hold.
        var bounds: [Bound] = []
    }

    var rules: [Rule]
    let otherwise = EPERM

    /// Work on bytes: memory, threads, and descriptors that were given.
    static func worker(pid: Int32) -> SystemCallPolicy {
        SystemCallPolicy(rules: bytes + memory + threads + time + messages + ending(pid: pid) + refused)
    }

    private static func allowed(_ calls: String...) -> [Rule] { calls.map { Rule(call: $0) } }

    // What the input and the outputs need, by their descriptors. Nothing here opens anything.
    private static let bytes =
        allowed(
            "read", "readv", "pread64", "preadv", "write", "writev", "pwrite64", "pwritev", "lseek", "close", "fstat",
            "ftruncate", "fadvise64") + [Rule(call: "newfstatat", answer: .trapped)]

    // Memory that was data stays data.
    private static let memory =
        allowed("munmap", "mremap", "madvise", "brk")
        + ["mmap", "mprotect"].map {
            Rule(call: $0, bounds: [.init(argument: 2, mask: UInt64(PROT_EXEC), value: 0)])
        }

    /// The flags with which glibc's pthread_create starts a thread (nptl/pthread_create.c): VM, FS, FILES, SIGHAND, THREAD, SYSVSEM, SETTLS,
    /// PARENT_SETTID, CHILD_CLEARTID. No process is started with these, and no name space.
    static let threadFlags: UInt64 = 0x3d_0f00

    private static let threads =
        allowed(
            "futex", "set_robust_list", "rseq", "set_tid_address", "rt_sigprocmask", "rt_sigaction", "rt_sigreturn",
            "sigaltstack", "sched_yield", "sched_getaffinity", "getcpu", "gettid", "getpid", "membarrier", "sysinfo",
            "uname", "getrandom", "getrusage", "exit", "restart_syscall")
        + [
            Rule(call: "clone", bounds: [.init(argument: 0, value: threadFlags)]),
            // Decoders name their threads.
            Rule(call: "prctl", bounds: [.init(argument: 0, value: UInt64(rushes_set_name_option()))]),
            // Reading one's own limits: no new ones are given.
            Rule(call: "prlimit64", bounds: [.init(argument: 0, value: 0), .init(argument: 2, value: 0)]),
        ]

    // Where the machine's clock cannot be read without a call, the libraries make these.
    private static let time = allowed(
        "clock_gettime", "clock_getres", "gettimeofday", "time", "nanosleep", "clock_nanosleep")

    // With the parent, and with nobody else.
    private static let messages = ["sendmsg", "recvmsg"].map {
        Rule(call: $0, bounds: [.init(argument: 0, value: UInt64(ChildProgram.channelDescriptor))])
    }

    // abort() signals its own thread.
    private static func ending(pid: Int32) -> [Rule] {
        allowed("exit_group") + [Rule(call: "tgkill", bounds: [.init(argument: 0, value: UInt64(pid))])]
    }

    // Its flags lie in memory, where a filter cannot see them; glibc goes on to clone only when there is no such call.
    private static let refused = [Rule(call: "clone3", answer: .refused(ENOSYS))]
}
