import Vocabulary

/// Opens a picture file by what its first bytes say it is.
enum PictureFiles {
    static func open(_ input: PictureInput, format: MediaFormat, limits: MediaLimits) throws(Failure) -> any PictureFile
    {
        switch format {
        case .jpeg: return try JPEGFile(input.bytes, limits: limits)
        case .png: return try PNGFile(input.bytes, limits: limits)
        case .gif: return try GIFFile(input.bytes, limits: limits)
        case .webp: return try WebPFile(input.bytes, limits: limits)
        case .jxl: return try JXLFile(input.bytes, limits: limits)
        case .psd: return try PSDFile(input.bytes, limits: limits)
        case .tiff:
            // The same first bytes begin plain TIFFs and most camera raws.
            guard let structure = RAWStructure(input.bytes) else { throw .corrupt("no TIFF header") }
            return structure.isRAW
                ? try RAWFile(input.bytes, format: format, limits: limits)
                : try TIFFFile(input.bytes, structure: structure, limits: limits)
        case .cr3, .raf: return try RAWFile(input.bytes, format: format, limits: limits)
        case .heif, .avif: return try HEIFFile(input, format: format, limits: limits)
        case .bmp: return try BMPFile(input.bytes, limits: limits)
        case .jp2: return try JP2File(input, limits: limits)
        case .x3f: throw .unsupported("Sigma X3F")
        default:
            throw Failure(.notMedia, "This is not a picture.", detail: format.rawValue)
        }
    }
}
