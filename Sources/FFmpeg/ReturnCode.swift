import CFFmpeg
import Vocabulary

/// The gate for every return code of the libraries: it remembers the call and adds the libraries' last words.
/// - Throws: a `Failure` whose code says what the number means in general; callers that know better say so instead.
@discardableResult
func check(_ call: StaticString, _ code: Int32) throws(Failure) -> Int32 {
    guard code < 0 else { return code }
    throw failure(call, code)
}

/// The gate for pointers that are nil only when memory is short.
func allocated<Pointee>(_ call: StaticString, _ pointer: Pointee?) throws(Failure) -> Pointee {
    guard let pointer else { throw failure(call, rushes_error(ENOMEM)) }
    return pointer
}

func failure(_ call: StaticString, _ code: Int32) -> Failure {
    var text = [CChar](repeating: 0, count: 96)
    av_strerror(code, &text, text.count)
    let words = String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    let log = LibraryLog.last.map { "; \($0)" } ?? ""
    let detail = "\(call): \(words) (\(code))\(log)"
    switch code {
    case rushes_error_exit: return Failure(.cancelled, "Stopped on request.", detail: detail)
    case rushes_error(ENOMEM):
        return Failure(
            .overBudget, "There is not enough memory for this file; allow more with --memory.", detail: detail)
    case rushes_error_invalid_data, rushes_error_end:
        return Failure(.corrupt, "The file's structure is damaged.", detail: detail)
    case rushes_error_no_decoder, rushes_error_no_demuxer, rushes_error_patch_welcome, rushes_error(ENOSYS):
        return Failure(.unsupportedCodec, "There is no decoder for this format here.", detail: detail)
    case rushes_error(ENOSPC):
        return Failure(.diskFull, "There is no space left for the output; free some.", detail: detail)
    case rushes_error(EIO): return Failure(.ioError, "Reading or writing failed; check the disk.", detail: detail)
    default: return Failure(.internalError, "A media library refused a call.", detail: detail)
    }
}
