import Glibc
import Synchronization

/// Counts the durable steps of this process. A test sets `RUSHES_CRASH_AT_STEP=N`: the process then dies by SIGKILL right after its Nth step,
/// as if the power had gone, and the next start has to make good of it. With `RUSHES_STEP_TRACE=FILE` each step is a line of that file.
public enum DurableSteps {
    private static let count = Atomic<Int>(0)
    private static let crashAt: Int? = getenv("RUSHES_CRASH_AT_STEP").flatMap { Int(String(cString: $0)) }
    private static let traceFile: Int32? = getenv("RUSHES_STEP_TRACE").flatMap {
        let opened = open(String(cString: $0), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
        return opened < 0 ? nil : opened
    }

    public static var passedCount: Int { count.load(ordering: .relaxed) }

    /// To be called after something has become durable: a committed transaction, a rename whose folder is synced.
    public static func passed(_ name: @autoclosure () -> String) {
        let number = count.add(1, ordering: .relaxed).newValue
        if let traceFile {
            var line = "\(number) \(name())\n"
            line.withUTF8 { _ = write(traceFile, $0.baseAddress, $0.count) }
        }
        if number == crashAt { kill(getpid(), SIGKILL) }
    }
}
