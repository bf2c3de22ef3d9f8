import Digests
import Foundation
import Glibc
import Vocabulary

/// What libraries read from files or ask of the system when they are first used: it happens here, since nothing can be opened later.
///
/// What is left out was watched (strace over every kind of file): FFmpeg, libheif, libjxl, LibRaw and the others open nothing after they are
/// loaded. glibc's malloc asks /proc/sys/vm/overcommit_memory, and takes no answer for the careful one.
enum WarmUp {
    static func run() throws(Failure) {
        // LibRaw and FFmpeg turn a camera's clock into seconds: /etc/localtime.
        tzset()
        // OpenSSL reads its configuration with the first digest.
        _ = Digest.sha256("")
        // Foundation's coder, with the locale and calendar that it makes.
        let trial = WorkerAnswer.failure(
            job: MediaProtocol.startNumber, Failure(.internalError, "é", detail: "\(0.5)"))
        _ = try JSON.decode(WorkerAnswer.self, from: try JSON.encode(trial))
        // The processor count, by which decoders choose their threads.
        _ = sysconf(Int32(_SC_NPROCESSORS_ONLN))
    }
}
