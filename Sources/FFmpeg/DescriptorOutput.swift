import CFFmpeg
import Glibc
import Vocabulary

/// A regular file under a muxer, open for reading and writing. The muxer's second pass, which moves the index to the front, reads it
/// again through the same descriptor.
final class DescriptorOutput {
    let descriptor: Int32
    let bytesMax: Int64
    fileprivate(set) var position: Int64 = 0
    fileprivate(set) var size: Int64 = 0
    /// The first fault of the disk.
    fileprivate(set) var fault: Int32?

    init(_ descriptor: Int32, bytesMax: Int) {
        self.descriptor = descriptor
        self.bytesMax = Int64(bytesMax)
    }

    func throwFault() throws(Failure) {
        guard let fault else { return }
        let detail = "pwrite at \(position): \(String(cString: strerror(fault)))"
        switch fault {
        case ENOSPC, EDQUOT:
            throw Failure(.diskFull, "There is no space left for the output; free some.", detail: detail)
        case EFBIG: throw Failure(.overBudget, "The output became larger than its bound.", detail: detail)
        default: throw Failure(.ioError, "The output could not be written; check the disk.", detail: detail)
        }
    }

    func makeContext() throws(Failure) -> UnsafeMutablePointer<AVIOContext> {
        try makeIOContext(
            writes: true, opaque: Unmanaged.passUnretained(self).toOpaque(), read: nil, write: writeBytes,
            seek: seekOutput)
    }
}

private func writeBytes(_ opaque: UnsafeMutableRawPointer?, _ buffer: UnsafeMutablePointer<UInt8>?, _ length: Int32)
    -> Int32
{
    guard let opaque, let buffer else { return rushes_error(EINVAL) }
    return Unmanaged<DescriptorOutput>.fromOpaque(opaque)._withUnsafeGuaranteedRef { output in
        guard output.position + Int64(length) <= output.bytesMax else {
            if output.fault == nil { output.fault = EFBIG }
            return rushes_error(EFBIG)
        }
        var done = 0
        while done < Int(length) {
            let count = pwrite(output.descriptor, buffer + done, Int(length) - done, Int(output.position))
            if count < 0 {
                if errno == EINTR { continue }
                if output.fault == nil { output.fault = errno }
                return rushes_error(output.fault ?? EIO)
            }
            done += count
            output.position += Int64(count)
        }
        output.size = max(output.size, output.position)
        return length
    }
}

private func seekOutput(_ opaque: UnsafeMutableRawPointer?, _ offset: Int64, _ whence: Int32) -> Int64 {
    guard let opaque else { return Int64(rushes_error(EINVAL)) }
    return Unmanaged<DescriptorOutput>.fromOpaque(opaque)._withUnsafeGuaranteedRef { output in
        if whence & AVSEEK_SIZE != 0 { return output.size }
        let base: Int64
        switch whence & ~AVSEEK_FORCE {
        case SEEK_SET: base = 0
        case SEEK_CUR: base = output.position
        case SEEK_END: base = output.size
        default: return Int64(rushes_error(EINVAL))
        }
        let (target, overflow) = base.addingReportingOverflow(offset)
        guard !overflow, target >= 0 else { return Int64(rushes_error(EINVAL)) }
        output.position = target
        return target
    }
}

/// `io_open` of a muxer: the only thing it may open is its own output, for reading.
func reopenOutput(
    _ format: UnsafeMutablePointer<AVFormatContext>?,
    _ context: UnsafeMutablePointer<UnsafeMutablePointer<AVIOContext>?>?,
    _ url: UnsafePointer<CChar>?, _ flags: Int32, _ options: UnsafeMutablePointer<OpaquePointer?>?
) -> Int32 {
    guard let opaque = format?.pointee.opaque, let context, flags & AVIO_FLAG_WRITE == 0 else {
        return rushes_error(EACCES)
    }
    let output = Unmanaged<DescriptorOutput>.fromOpaque(opaque).takeUnretainedValue()
    do {
        let input = try DescriptorInput(output.descriptor)
        context.pointee = try input.makeContext()
        // Balanced in `closeReopened`.
        _ = Unmanaged.passRetained(input)
        return 0
    } catch {
        return rushes_error(EIO)
    }
}

func closeReopened(_ format: UnsafeMutablePointer<AVFormatContext>?, _ context: UnsafeMutablePointer<AVIOContext>?)
    -> Int32
{
    guard let context, let opaque = context.pointee.opaque else { return 0 }
    freeIOContext(context)
    Unmanaged<DescriptorInput>.fromOpaque(opaque).release()
    return 0
}
