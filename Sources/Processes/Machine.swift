internal import CProcesses
import Files

/// What the kernel says of the machine as a whole.
public enum Machine {
    /// How many processes the kernel has ended for want of memory since the machine started; nil where it does not say.
    public static var memoryKillCount: Int? {
        // proc(5); the file has some hundred lines.
        guard let file = try? OpenFile.reading("/proc/vmstat"), let bytes = try? file.read(count: 64 << 10, at: 0)
        else {
            return nil
        }
        let lines = String(decoding: bytes, as: UTF8.self).split(separator: "\n")
        return lines.first { $0.hasPrefix("oom_kill ") }.flatMap { Int($0.dropFirst("oom_kill ".count)) }
    }

    /// Gives what this process has freed back to the system, where it is more than so many bytes.
    public static func giveBackFreeMemory(above bytes: Int) { rushes_trim_heap(bytes) }
}
