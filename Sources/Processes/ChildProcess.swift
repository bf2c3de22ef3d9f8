internal import CProcesses
import Files
import Glibc
import Synchronization
public import Vocabulary

/// A running child with one end of a message channel; its standard error is kept up to a bound. It is killed and reaped when the last owner
/// lets go.
public final class ChildProcess: Sendable {
    /// Bytes that are kept of the end of the child's standard error.
    public static let errorTailBytesMax = 4096

    public let pid: Int32
    public let channel: MessageChannel
    private let process: OpenFile
    private let errors: OpenFile
    private let errorTail = Mutex<[UInt8]>([])
    private let exit = Mutex<ChildExit?>(nil)

    private init(pid: Int32, process: OpenFile, channel: MessageChannel, errors: OpenFile) {
        self.pid = pid
        self.process = process
        self.channel = channel
        self.errors = errors
    }

    deinit { stop() }

    /// Starts the program in a process group of its own, with standard input and output closed off and no descriptor but the channel's.
    /// To be called from a thread that may block.
    public static func start(_ program: ChildProgram) throws(Failure) -> ChildProcess {
        try SpawnerThread.shared.run { () -> Result<ChildProcess, Failure> in
            do throws(Failure) { return .success(try spawn(program)) } catch { return .failure(error) }
        }.get()
    }

    private static func spawn(_ program: ChildProgram) throws(Failure) -> ChildProcess {
        let (ours, theirs) = try MessageChannel.pair()
        let (errors, errorsOfChild) = try errorPipe()
        // Copies with numbers above the targets 0 to 3, so that no dup2 of the child overwrites what the next one needs.
        let lowest = ChildProgram.channelDescriptor + 1
        let channel = OpenFile(
            owning: try checked("fcntl", rushes_duplicate(theirs.descriptor, lowest)), path: "the child's channel")
        let output = OpenFile(
            owning: try checked("fcntl", rushes_duplicate(errorsOfChild.descriptor, lowest)), path: "the child's errors"
        )

        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0)
        posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0)
        posix_spawn_file_actions_adddup2(&actions, output.descriptor, STDERR_FILENO)
        posix_spawn_file_actions_adddup2(&actions, channel.descriptor, ChildProgram.channelDescriptor)
        try checked("posix_spawn_file_actions_addclosefrom_np", rushes_close_from(&actions, lowest))

        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        // Ignored and blocked signals would be inherited.
        var none = sigset_t()
        var all = sigset_t()
        sigemptyset(&none)
        sigfillset(&all)
        posix_spawnattr_setsigmask(&attributes, &none)
        posix_spawnattr_setsigdefault(&attributes, &all)
        // A group of its own: an interrupt from the terminal reaches the parent, which ends its children in order.
        posix_spawnattr_setpgroup(&attributes, 0)
        posix_spawnattr_setflags(
            &attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP))

        let environment = program.environment.map { "\($0.key)=\($0.value)" }.sorted()
        var pid: pid_t = 0
        let result = withStrings([program.path] + program.arguments) { arguments in
            withStrings(environment) { posix_spawn(&pid, program.path, &actions, &attributes, arguments, $0) }
        }
        try checked("posix_spawn \(program.path)", -result)
        let opened = rushes_pidfd_open(pid)
        guard opened >= 0 else {
            Glibc.kill(pid, SIGKILL)
            waitpid(pid, nil, 0)
            throw fault("pidfd_open", -opened)
        }
        return ChildProcess(
            pid: pid, process: OpenFile(owning: opened, path: "a child process"), channel: ours, errors: errors)
    }

    private static func errorPipe() throws(Failure) -> (read: OpenFile, write: OpenFile) {
        var ends: (Int32, Int32) = (-1, -1)
        let result = withUnsafeMutableBytes(of: &ends) {
            rushes_pipe($0.baseAddress?.assumingMemoryBound(to: Int32.self))
        }
        try checked("pipe2", result)
        let pipe = (
            OpenFile(owning: ends.0, path: "a child's errors"), OpenFile(owning: ends.1, path: "a child's errors")
        )
        try checked("fcntl", rushes_set_nonblocking(ends.0))
        return pipe
    }

    // MARK: Watching

    public enum Event: Sendable { case message, timeout }

    /// Waits for a message, or the end, on the channel, and keeps the child's standard error flowing meanwhile.
    public func wait(until deadline: ContinuousClock.Instant) -> Event {
        var watchesErrors = true
        while true {
            let left = Self.millisecondsLeft(until: deadline)
            var watched = [
                pollfd(fd: channel.descriptor, events: Int16(POLLIN), revents: 0),
                pollfd(fd: watchesErrors ? errors.descriptor : -1, events: Int16(POLLIN), revents: 0),
            ]
            let count = poll(&watched, nfds_t(watched.count), Int32(clamping: left))
            if count < 0, errno == EINTR { continue }
            if watched[1].revents != 0 { watchesErrors = readErrors() }
            if watched[0].revents != 0 { return .message }
            if left == 0 { return .timeout }
        }
    }

    /// Rounded up: waiting for nothing, again and again, would use the last millisecond up.
    private static func millisecondsLeft(until deadline: ContinuousClock.Instant) -> Int {
        max(0, Int(((deadline - .now) / .milliseconds(1)).rounded(.up)))
    }

    /// - Returns: false when no more will come.
    @discardableResult
    private func readErrors() -> Bool {
        var buffer = [UInt8](repeating: 0, count: 8192)
        // The pipe holds 64 KiB; a child that writes faster than we read must not keep us here.
        for _ in 0..<16 {
            let got = read(errors.descriptor, &buffer, buffer.count)
            if got == 0 { return false }
            if got < 0 { return errno == EAGAIN || errno == EINTR }
            errorTail.withLock {
                $0.append(contentsOf: buffer[..<got])
                $0.removeFirst(max(0, $0.count - Self.errorTailBytesMax))
            }
        }
        return true
    }

    /// The last words on standard error, in one line's length of printable text; nil when there were none.
    public var lastWords: String? {
        readErrors()
        let text = String(decoding: errorTail.withLock { $0 }, as: UTF8.self)
        let lines = text.split(whereSeparator: \.isNewline).map { $0.filter { !$0.isNewline && $0 >= " " } }
        let words = lines.filter { !$0.isEmpty }.suffix(8).joined(separator: " | ")
        return words.isEmpty ? nil : words
    }

    /// Bytes of memory in use; nil when the process is gone.
    public var residentBytes: Int? {
        guard let file = try? OpenFile.reading("/proc/\(pid)/statm"), let bytes = try? file.read(count: 128, at: 0)
        else {
            return nil
        }
        let fields = String(decoding: bytes, as: UTF8.self).split(separator: " ")
        guard fields.count > 1, let pages = Int(fields[1]) else { return nil }
        return pages * sysconf(Int32(_SC_PAGESIZE))
    }

    /// Processor time so far, over all threads; nil when the process is gone.
    public var cpuTime: Duration? {
        let used = rushes_cpu_nanoseconds(pid)
        return used < 0 ? nil : .nanoseconds(used)
    }

    // MARK: Bounding and ending

    /// Bounds what the child may allocate (RLIMIT_DATA: private writable memory), how much more processor time it may use (RLIMIT_CPU) and how
    /// long a file it may write (RLIMIT_FSIZE).
    /// Only sound while the child waits for work: it has not read anything that could talk it into using more.
    public func limit(dataBytes: Int, moreCPUSeconds: Int, fileBytes: Int) throws(Failure) {
        try checked("prlimit", rushes_limit(pid, rushes_limit_data(), UInt64(dataBytes)))
        try checked("prlimit", rushes_limit(pid, rushes_limit_file_size(), UInt64(fileBytes)))
        let used = try checked("clock_gettime", rushes_cpu_nanoseconds(pid))
        try checked(
            "prlimit", rushes_limit(pid, rushes_limit_cpu(), UInt64(used) / 1_000_000_000 + 1 + UInt64(moreCPUSeconds)))
    }

    /// May be called from anywhere, also after the end.
    public func kill() { _ = rushes_pidfd_signal(process.descriptor, SIGKILL) }

    /// Kills the child if it still runs, and reaps it.
    @discardableResult
    public func stop() -> ChildExit {
        kill()
        return reap(waiting: true) ?? ChildExit(how: .signalled(SIGKILL))
    }

    /// Gives a child that is about to end a moment, so that its way of ending can be told from our kill.
    /// - Returns: nil when it does not end; it still runs then.
    public func end(withinMilliseconds milliseconds: Int) -> ChildExit? {
        var watched = pollfd(fd: process.descriptor, events: Int16(POLLIN), revents: 0)
        let deadline = ContinuousClock.now + .milliseconds(milliseconds)
        while true {
            let left = Self.millisecondsLeft(until: deadline)
            let count = poll(&watched, 1, Int32(clamping: left))
            if count > 0 { return reap(waiting: true) }
            if left == 0 || (count < 0 && errno != EINTR) { return nil }
        }
    }

    private func reap(waiting: Bool) -> ChildExit? {
        exit.withLock { known in
            if let known { return known }
            var code: Int32 = 0
            var status: Int32 = 0
            var cpu: Int64 = 0
            var peak: Int64 = 0
            guard rushes_wait(process.descriptor, waiting ? 1 : 0, &code, &status, &cpu, &peak) == 1 else { return nil }
            let how: ChildExit.How = code == Int32(CLD_EXITED) ? .exited(status) : .signalled(status)
            known = ChildExit(how: how, cpuMilliseconds: Int(cpu), peakBytes: Int(peak))
            return known
        }
    }
}

/// Runs the body with a null-terminated vector of C strings.
private func withStrings<Answer>(
    _ strings: [String], _ body: (UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>) -> Answer
) -> Answer {
    var vector: [UnsafeMutablePointer<CChar>?] = strings.map { strdup($0) }
    vector.append(nil)
    defer { for string in vector { free(string) } }
    return vector.withUnsafeMutableBufferPointer { buffer in
        guard let base = buffer.baseAddress else { preconditionFailure("the vector holds at least its end") }
        return body(base)
    }
}
