import CFFmpeg
import Glibc
import Vocabulary

/// A regular file under a demuxer, read by `pread` at explicit offsets: the descriptor's own position is neither used nor moved, and no
/// path is ever opened.
final class DescriptorInput {
    static let bufferLength = 64 << 10

    let descriptor: Int32
    let size: Int64
    fileprivate(set) var position: Int64 = 0
    /// The first fault of the disk, which the libraries would report as bad media.
    private(set) var fault: Int32?
    /// Read instead of what the file says.
    var corrections: [Correction] = []

    struct Correction {
        var offset: Int64
        var bytes: [UInt8]
    }

    init(_ descriptor: Int32) throws(Failure) {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else {
            throw Failure(
                .sourceUnreadable, "The file could not be read; check the disk or card.", detail: "fstat: \(errno)")
        }
        self.descriptor = descriptor
        size = Int64(status.st_size)
    }

    /// Throws when the disk failed, whatever the libraries made of it.
    func throwFault() throws(Failure) {
        guard let fault else { return }
        throw Failure(
            .sourceUnreadable, "The file could not be read; check the disk or card.",
            detail: "pread at \(position): \(String(cString: strerror(fault)))")
    }

    /// - Returns: fewer at the end of the file, and none where the disk fails.
    func bytes(at offset: Int64, count: Int) -> [UInt8] {
        guard offset >= 0, offset < size, count > 0 else { return [] }
        return [UInt8](unsafeUninitializedCapacity: min(count, Int(size - offset))) { buffer, filled in
            filled = buffer.baseAddress.flatMap { read($0, buffer.count, at: offset) } ?? 0
        }
    }

    /// - Returns: bytes read, fewer than asked for only at the end of the file; nil where the disk failed, which is remembered.
    fileprivate func read(_ buffer: UnsafeMutablePointer<UInt8>, _ count: Int, at offset: Int64) -> Int? {
        var done = 0
        while done < count {
            let got = pread(descriptor, buffer + done, count - done, Int(offset) + done)
            if got < 0, errno == EINTR { continue }
            guard got >= 0 else {
                fault = fault ?? errno
                return nil
            }
            if got == 0 { break }
            done += got
        }
        return done
    }

    fileprivate func correct(_ buffer: UnsafeMutablePointer<UInt8>, _ count: Int) {
        for correction in corrections {
            for (number, byte) in correction.bytes.enumerated() {
                let place = correction.offset + Int64(number) - position
                if (0..<Int64(count)).contains(place) { buffer[Int(place)] = byte }
            }
        }
    }

    func makeContext() throws(Failure) -> UnsafeMutablePointer<AVIOContext> {
        try makeIOContext(
            writes: false, opaque: Unmanaged.passUnretained(self).toOpaque(), read: readBytes, write: nil,
            seek: seekInput)
    }
}

typealias ReadBytes = @convention(c) (UnsafeMutableRawPointer?, UnsafeMutablePointer<UInt8>?, Int32) -> Int32
typealias Seek = @convention(c) (UnsafeMutableRawPointer?, Int64, Int32) -> Int64

func makeIOContext(
    writes: Bool, opaque: UnsafeMutableRawPointer, read: ReadBytes?, write: ReadBytes?, seek: @escaping Seek
) throws(Failure) -> UnsafeMutablePointer<AVIOContext> {
    let length = DescriptorInput.bufferLength
    let buffer = try allocated("av_malloc", av_malloc(length)).assumingMemoryBound(to: UInt8.self)
    guard let context = avio_alloc_context(buffer, Int32(length), writes ? 1 : 0, opaque, read, write, seek) else {
        av_free(buffer)
        throw failure("avio_alloc_context", rushes_error(ENOMEM))
    }
    return context
}

/// The library may have replaced the buffer, so the current one is freed.
func freeIOContext(_ context: UnsafeMutablePointer<AVIOContext>) {
    av_freep(&context.pointee.buffer)
    var context: UnsafeMutablePointer<AVIOContext>? = context
    avio_context_free(&context)
}

private func readBytes(_ opaque: UnsafeMutableRawPointer?, _ buffer: UnsafeMutablePointer<UInt8>?, _ length: Int32)
    -> Int32
{
    guard let opaque, let buffer else { return rushes_error(EINVAL) }
    return Unmanaged<DescriptorInput>.fromOpaque(opaque)._withUnsafeGuaranteedRef { input in
        guard let count = input.read(buffer, Int(length), at: input.position) else { return rushes_error(EIO) }
        guard count > 0 else { return rushes_error_end }
        input.correct(buffer, count)
        input.position += Int64(count)
        return Int32(count)
    }
}

private func seekInput(_ opaque: UnsafeMutableRawPointer?, _ offset: Int64, _ whence: Int32) -> Int64 {
    guard let opaque else { return Int64(rushes_error(EINVAL)) }
    return Unmanaged<DescriptorInput>.fromOpaque(opaque)._withUnsafeGuaranteedRef { input in
        if whence & AVSEEK_SIZE != 0 { return input.size }
        let base: Int64
        switch whence & ~AVSEEK_FORCE {
        case SEEK_SET: base = 0
        case SEEK_CUR: base = input.position
        case SEEK_END: base = input.size
        default: return Int64(rushes_error(EINVAL))
        }
        let (target, overflow) = base.addingReportingOverflow(offset)
        guard !overflow, target >= 0 else { return Int64(rushes_error(EINVAL)) }
        input.position = target
        return target
    }
}
