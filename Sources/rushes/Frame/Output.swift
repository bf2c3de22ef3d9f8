import Foundation
import Glibc
import Vocabulary

/// Data goes to standard output, everything that is said to a person beside it to standard error.
enum Output {
    /// One line of data.
    /// - Throws: `io-error` when nobody reads it any more or the disk behind it is full.
    static func line(_ text: String) throws(Failure) {
        guard write(text + "\n", to: STDOUT_FILENO) else {
            // Whoever read has seen enough (`| head`): nothing is left to say to anybody.
            if errno == EPIPE { _exit(ExitCode.failed.rawValue) }
            throw Failure(.ioError, "The output could not be written.", detail: String(cString: strerror(errno)))
        }
    }

    static func json(_ value: some Encodable) throws(Failure) { try line(try JSON.text(value)) }

    /// One line for a person.
    static func say(_ text: String) {
        _ = write(ProgressLine.cleared() + "rushes: " + printable(text) + "\n", to: STDERR_FILENO)
    }

    /// Text as it is, without a line end; for the progress line.
    static func draw(_ text: String) { _ = write(text, to: STDERR_FILENO) }

    static var isTerminal: Bool { isatty(STDERR_FILENO) == 1 }

    /// File names may hold line ends and terminal commands: control characters are shown, not sent.
    static func printable(_ text: String) -> String {
        var shown = ""
        for scalar in text.unicodeScalars {
            switch scalar.properties.generalCategory {
            case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate:
                // A joiner inside an emoji is a format character, and harmless.
                if scalar == "\u{200D}" {
                    shown.unicodeScalars.append(scalar)
                } else {
                    shown += scalar.escaped(asASCII: true)
                }
            default: shown.unicodeScalars.append(scalar)
            }
        }
        return shown
    }

    private static func write(_ text: String, to descriptor: Int32) -> Bool {
        var text = text
        return text.withUTF8 { bytes in
            var done = 0
            while done < bytes.count {
                let put = Glibc.write(descriptor, bytes.baseAddress?.advanced(by: done), bytes.count - done)
                if put < 0, errno == EINTR { continue }
                guard put > 0 else { return false }
                done += put
            }
            return true
        }
    }
}
