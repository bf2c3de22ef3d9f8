import CHEIF

/// The range in which alpha is coded, which libheif does not look at. Only AV1 says it of every picture.
enum HEIFAlpha {
    private static let auxiliaryCountMax = 16

    /// - Parameter handle: of the picture that has the alpha.
    static func range(of handle: OpaquePointer) -> SampleRange {
        var ids = [heif_item_id](repeating: 0, count: auxiliaryCountMax)
        let count = heif_image_handle_get_list_of_auxiliary_image_IDs(handle, 0, &ids, Int32(ids.count))
        for id in ids.prefix(max(0, Int(count))) {
            var found: OpaquePointer?
            guard heif_image_handle_get_auxiliary_image_handle(handle, id, &found).code == heif_error_Ok, let found
            else { continue }
            defer { heif_image_handle_release(found) }
            if let range = range(ofAuxiliary: found) { return range }
        }
        return .full
    }

    /// - Returns: nil for an auxiliary picture that is no alpha.
    private static func range(ofAuxiliary handle: OpaquePointer) -> SampleRange? {
        var type: UnsafePointer<CChar>?
        guard heif_image_handle_get_auxiliary_type(handle, &type).code == heif_error_Ok, let type else { return nil }
        defer {
            var released: UnsafePointer<CChar>? = type
            heif_image_handle_free_auxiliary_types(handle, &released)
        }
        guard String(cString: type).hasSuffix("auxiliary:alpha") else { return nil }
        var image: OpaquePointer?
        guard
            heif_decode_image(handle, &image, heif_colorspace_monochrome, heif_chroma_monochrome, nil).code
                == heif_error_Ok, let image
        else { return nil }
        defer { heif_image_release(image) }
        var profile: UnsafeMutablePointer<heif_color_profile_nclx>?
        guard heif_image_get_nclx_color_profile(image, &profile).code == heif_error_Ok, let profile else { return nil }
        defer { heif_nclx_color_profile_free(profile) }
        let bits = Int(heif_image_get_bits_per_pixel_range(image, heif_channel_Y))
        return profile.pointee.full_range_flag == 0 ? .limited(bits) : .full
    }
}

/// Which of a sample's values stand for nothing and for all.
enum SampleRange {
    case full
    /// From 16 to 235 of 8 bits, and as many times more of others (ITU-T H.273, 8.3). So many bits.
    case limited(Int)
}

extension Raster {
    /// Stretches some channels, which were spread from so many bits over all of the raster's, to the full range.
    func expand(channels: Range<Int>, from range: SampleRange) {
        guard case .limited(let bits) = range, bits >= 8 else { return }
        let scale = Double(1 << (bits - 8)), all = Double(1 << bits - 1)
        let (first, step) = (16 * scale / all, all / (219 * scale))
        func run<Sample: FixedWidthInteger & UnsignedInteger>(_: Sample.Type) {
            let samples = pixels.bindMemory(to: Sample.self), most = Double(Sample.max)
            let table = (0...Int(Sample.max)).map { value in
                Sample(min(max((Double(value) / most - first) * step, 0), 1) * most + 0.5)
            }
            for pixel in 0..<(size.width * size.height) {
                for channel in channels {
                    let index = pixel * layout.channelCount + channel
                    samples[index] = table[Int(samples[index])]
                }
            }
        }
        if depth == 8 { run(UInt8.self) } else { run(UInt16.self) }
    }
}
