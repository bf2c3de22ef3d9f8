internal import CSeccomp
import Glibc
import Vocabulary

/// Puts a policy into force with seccomp(2), for all threads of this process and for good.
enum SystemCallFilter {
    static func load(_ policy: SystemCallPolicy) throws(Failure) {
        guard let filter = rushes_filter_new(policy.otherwise) else {
            throw Confinement.unavailable("seccomp: no filter could be made")
        }
        defer { rushes_filter_release(filter) }
        for rule in policy.rules { try add(rule, to: filter) }
        let handled = rushes_answer_traps()
        guard handled == 0 else { throw Confinement.unavailable("sigaction: \(Confinement.words(handled))") }
        let loaded = rushes_filter_load(filter)
        guard loaded == 0 else { throw Confinement.unavailable("seccomp: \(Confinement.words(loaded))") }
    }

    private static func add(_ rule: SystemCallPolicy.Rule, to filter: scmp_filter_ctx) throws(Failure) {
        precondition(rule.bounds.count <= 2, "the shim takes two")
        let action: UInt32 =
            switch rule.answer {
            case .allowed: rushes_filter_allow()
            case .refused(let code): rushes_filter_answer(code)
            case .trapped: rushes_filter_trap()
            }
        let first = rule.bounds.first
        let second = rule.bounds.dropFirst().first
        let result = rushes_filter_add(
            filter, action, rule.call, first?.argument ?? -1, first?.mask ?? 0, first?.value ?? 0,
            second?.argument ?? -1, second?.mask ?? 0, second?.value ?? 0)
        guard result == 0 else {
            throw Confinement.unavailable("seccomp: \(rule.call): \(Confinement.words(result))")
        }
    }
}
