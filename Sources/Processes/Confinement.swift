internal import CProcesses
import Glibc
public import Vocabulary

/// What a worker gives up before it has read anything. The one place: everything that is to be taken from it is taken here.
public enum Confinement {
    /// The argument with which the parent starts a worker that is to work without walls, because a setting says so.
    public static let absentArgument = "--without-walls"

    /// Ends with the parent, gains no privileges and leaves no core: always, and first of all.
    public static func tieToParent() throws(Failure) {
        try checked("prctl(PR_SET_PDEATHSIG)", rushes_die_with_parent())
        try checked("prctl(PR_SET_NO_NEW_PRIVS)", rushes_no_new_privileges())
        // Footage is private: no core file, and no debugger of another process of this user.
        try checked("prctl(PR_SET_DUMPABLE)", rushes_not_dumpable())
        try checked("setrlimit(RLIMIT_CORE)", rushes_limit_self(rushes_limit_core(), 0))
    }

    /// Takes the file system, the network, other processes and new code from this process, for good. What it holds open stays usable, and so
    /// does the channel to its parent. What libraries read from files, they must have read before.
    ///
    /// Two walls, since each has its gaps: Landlock (landlock(7)) knows files and sockets but not, say, signals to oneself or new processes;
    /// the filter of system calls knows the calls but not what a path names.
    /// - Throws: `sandbox-unavailable` when this kernel cannot; the worker must not go on then.
    public static func wallIn() throws(Failure) {
        // Landlock confines the calling thread and those that it starts: there must be no other one.
        let threads = try threadCount()
        guard threads == 1 else { throw unavailable("\(threads) threads run already") }
        try denyFiles()
        try SystemCallFilter.load(SystemCallPolicy.worker(pid: getpid()))
        // Believed when it has been seen.
        let seen = rushes_is_walled_in()
        guard seen == 0 else { throw unavailable("the root folder can still be opened: \(words(seen))") }
    }

    /// The first wall; of the calling thread.
    static func denyFiles() throws(Failure) {
        let version = rushes_landlock_version()
        guard version >= 1 else { throw unavailable("no Landlock: \(words(version))") }
        let result = rushes_landlock_deny_all(version)
        guard result == 0 else { throw unavailable("landlock_restrict_self: \(words(result))") }
    }

    private static func threadCount() throws(Failure) -> Int {
        var facts = stat()
        // A folder's link count is its subfolders and two more (proc(5): one folder a thread).
        guard stat("/proc/self/task", &facts) == 0 else { throw unavailable("/proc is not mounted") }
        return Int(facts.st_nlink) - 2
    }

    static func unavailable(_ detail: String) -> Failure {
        Failure(
            .sandboxUnavailable,
            "This system cannot wall in the program that reads media: use Linux 5.13 or newer with Landlock and seccomp, "
                + "or set RUSHES_SANDBOX=off to go on without.",
            detail: detail)
    }

    static func words(_ result: Int32) -> String { String(cString: strerror(-result)) }
}
