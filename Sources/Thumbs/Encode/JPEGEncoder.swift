import CTurboJPEG
import Foundation
import Vocabulary

/// Writes a thumbnail: baseline JPEG, 4:2:0, without metadata and without a profile, which means sRGB.
enum JPEGEncoder {
    /// - Parameter raster: 8 bits, grey or RGB.
    /// - Returns: bytes written.
    static func write(_ raster: Raster, quality: Int, to descriptor: Int32, limits: MediaLimits) throws(Failure) -> Int
    {
        guard raster.depth == 8, raster.layout == .rgb || raster.layout == .grey else {
            throw Failure(.internalError, "The thumbnail could not be written.", detail: "layout \(raster.layout)")
        }
        guard let encoder = tjInitCompress() else {
            throw Failure(.internalError, "The thumbnail could not be written.", detail: "tjInitCompress")
        }
        defer { tjDestroy(encoder) }
        var output: UnsafeMutablePointer<UInt8>?
        var count: UInt = 0
        defer { tjFree(output) }
        let isGrey = raster.layout == .grey
        let status = tjCompress2(
            encoder, raster.pixels.bindMemory(to: UInt8.self).baseAddress, Int32(raster.size.width), 0,
            Int32(raster.size.height), Int32(isGrey ? TJPF_GRAY.rawValue : TJPF_RGB.rawValue), &output, &count,
            Int32(isGrey ? TJSAMP_GRAY.rawValue : TJSAMP_420.rawValue), Int32(min(max(quality, 1), 100)), 0)
        guard status == 0, let output else {
            throw Failure(
                .internalError, "The thumbnail could not be written.", detail: String(cString: tjGetErrorStr2(encoder)))
        }
        guard Int(count) <= limits.outputBytesMax else {
            throw Failure(.overBudget, "The thumbnail would be larger than is allowed.", detail: "\(count) bytes")
        }
        try store(UnsafeRawBufferPointer(start: output, count: Int(count)), in: descriptor)
        return Int(count)
    }

    private static func store(_ bytes: UnsafeRawBufferPointer, in descriptor: Int32) throws(Failure) {
        var done = 0
        while done < bytes.count {
            let written = pwrite(descriptor, bytes.baseAddress.map { $0 + done }, bytes.count - done, off_t(done))
            if written > 0 {
                done += written
            } else if errno != EINTR {
                let code: FailureCode = errno == ENOSPC || errno == EDQUOT ? .diskFull : .ioError
                throw Failure(
                    code,
                    code == .diskFull
                        ? "The disk is full. Free some space and try again." : "The thumbnail could not be written.",
                    detail: "pwrite: \(String(cString: strerror(errno)))")
            }
        }
    }
}
