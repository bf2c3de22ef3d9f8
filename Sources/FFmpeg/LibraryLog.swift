import CFFmpeg
import Synchronization

/// What the libraries last said. They log from their own threads, so a line may belong to a neighbour: good for an operator's detail,
/// never for a decision.
package enum LibraryLog {
    static let lineMax = 8
    private static let lines = Mutex<[String]>([])

    private static let installed: Void = rushes_log_install { _, line in
        let text = String(cString: line).split(separator: "\n").joined(separator: " ")
        guard !text.isEmpty else { return }
        lines.withLock { lines in
            lines.append(text)
            if lines.count > lineMax { lines.removeFirst(lines.count - lineMax) }
        }
    }

    /// Called by everything that opens a library object: from then on nothing is printed.
    static func install() { _ = installed }

    package static var last: String? { lines.withLock { $0.last } }
}
