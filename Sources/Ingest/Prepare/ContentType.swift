import Vocabulary

/// Media types (IANA) of what is uploaded. For people and stores; the backend looks at the bytes.
enum ContentType {
    static let unknown = "application/octet-stream"

    static func of(_ facts: MediaFacts?) -> String {
        guard let facts, let format = facts.format else { return unknown }
        switch format {
        case .jpeg: return "image/jpeg"
        case .png: return "image/png"
        case .gif: return "image/gif"
        case .webp: return "image/webp"
        case .tiff: return "image/tiff"
        case .bmp: return "image/bmp"
        case .psd: return "image/vnd.adobe.photoshop"
        case .heif: return "image/heif"
        case .avif: return "image/avif"
        case .jxl: return "image/jxl"
        case .jp2: return "image/jp2"
        case .x3f: return "image/x-sigma-x3f"
        case .raf: return "image/x-fuji-raf"
        case .cr3: return "image/x-canon-cr3"
        case .isoMedia: return facts.kind == .audio ? "audio/mp4" : "video/mp4"
        case .matroska: return facts.kind == .audio ? "audio/x-matroska" : "video/x-matroska"
        case .avi: return "video/x-msvideo"
        case .wav: return "audio/wav"
        case .mpegTS: return "video/mp2t"
        case .mpegPS: return "video/mpeg"
        case .mxf: return "application/mxf"
        case .asf: return "video/x-ms-asf"
        case .ogg: return facts.kind == .audio ? "audio/ogg" : "video/ogg"
        case .flac: return "audio/flac"
        case .mp3: return "audio/mpeg"
        case .aac: return "audio/aac"
        case .flv: return "video/x-flv"
        case .dv: return "video/x-dv"
        case .aiff: return "audio/aiff"
        case .caf: return "audio/x-caf"
        }
    }

    static func ofSidecar(_ name: [UInt8]) -> String {
        switch FileNames.fileExtension(name) {
        case "xmp": "application/rdf+xml"
        case "xml", "aae": "application/xml"
        case "srt": "application/x-subrip"
        default: unknown
        }
    }
}
