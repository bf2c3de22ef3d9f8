internal import CProcesses
public import Vocabulary

/// What a worker gives up at its very start, before it has read anything.
public enum Confinement {
    /// The one place where the process is confined; everything that is to be taken from it is taken here.
    /// - Throws: when something could not be given up: the worker must not go on then.
    public static func confine() throws(Failure) {
        try checked("prctl(PR_SET_PDEATHSIG)", rushes_die_with_parent())
        try checked("prctl(PR_SET_NO_NEW_PRIVS)", rushes_no_new_privileges())
        // Footage is private: no core file, and no debugger of another process of this user.
        try checked("prctl(PR_SET_DUMPABLE)", rushes_not_dumpable())
        try checked("setrlimit(RLIMIT_CORE)", rushes_limit_self(rushes_limit_core(), 0))
    }
}
