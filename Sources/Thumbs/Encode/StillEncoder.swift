import CTurboJPEG
import CWebP
import Foundation
import Vocabulary

/// Writes a thumbnail: baseline JPEG in 4:2:0, or WebP; without metadata and without a profile, which means sRGB.
enum StillEncoder {
    /// - Parameter planes: in 4:2:0, or grey.
    static func write(
        _ planes: Planes, _ settings: ThumbSettings, to descriptor: Int32, limits: MediaLimits, budget: MemoryBudget
    ) throws(Failure) {
        let quality = min(max(settings.quality, 1), 100)
        switch settings.format {
        case .jpeg: try writeJPEG(planes, quality: quality, to: descriptor, limits: limits)
        case .webp: try writeWebP(planes, quality: quality, to: descriptor, limits: limits, budget: budget)
        }
    }

    /// - Parameters:
    ///   - sampling: TurboJPEG's number for how the planes are sampled.
    ///   - flags: TurboJPEG's.
    static func writeJPEG(
        _ planes: Planes, quality: Int, sampling: UInt32 = TJSAMP_420.rawValue, flags: Int32 = 0, to descriptor: Int32,
        limits: MediaLimits
    ) throws(Failure) {
        for plane in planes.components { plane.repeatEdges() }
        let encoder = try TurboJPEG.compressor()
        var samples = planes.components.map { Optional(UnsafePointer($0.samples)) }
        var strides = planes.components.map { Int32($0.rowBytes) }
        var output: UnsafeMutablePointer<UInt8>?
        var count: UInt = 0
        defer { tjFree(output) }
        let status = tjCompressFromYUVPlanes(
            encoder.pointer, &samples, Int32(planes.size.width), &strides, Int32(planes.size.height),
            Int32(planes.isGrey ? TJSAMP_GRAY.rawValue : sampling), &output, &count, Int32(quality), flags)
        guard status == 0, let output else { throw encoder.failure() }
        try store(UnsafeRawBufferPointer(start: output, count: Int(count)), in: descriptor, limits: limits)
    }

    private static func writeWebP(
        _ planes: Planes, quality: Int, to descriptor: Int32, limits: MediaLimits, budget: MemoryBudget
    ) throws(Failure) {
        // libwebp keeps its own planes and the coefficients of all blocks.
        try budget.admit(planes.size.area.map { $0 * 8 })
        let raster = try planes.raster(budget: budget).inRGB(budget: budget)
        var output: UnsafeMutablePointer<UInt8>?
        let count = WebPEncodeRGB(
            raster.pixels.bindMemory(to: UInt8.self).baseAddress, Int32(raster.size.width), Int32(raster.size.height),
            Int32(raster.rowBytes), Float(quality), &output)
        defer { WebPFree(output) }
        guard count > 0, let output else {
            // Its sides have 14 bits.
            throw Failure(
                .usage, "WebP holds at most 16383 pixels a side: ask for a smaller size, or for JPEG.",
                detail: "libwebp: \(planes.size)")
        }
        try store(UnsafeRawBufferPointer(start: output, count: count), in: descriptor, limits: limits)
    }

    private static func store(_ bytes: UnsafeRawBufferPointer, in descriptor: Int32, limits: MediaLimits)
        throws(Failure)
    {
        guard bytes.count <= limits.outputBytesMax else {
            throw Failure(.overBudget, "The thumbnail would be larger than is allowed.", detail: "\(bytes.count) bytes")
        }
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

extension Raster {
    /// 8-bit grey as RGB; RGB as it is.
    func inRGB(budget: MemoryBudget) throws(Failure) -> Raster {
        guard layout == .grey else { return self }
        let result = try Raster(size: size, layout: .rgb, depth: 8, budget: budget)
        for index in 0..<(size.width * size.height) {
            for channel in 0..<3 { result.pixels[index * 3 + channel] = pixels[index] }
        }
        return result
    }
}
