import CTIFF
import Vocabulary

/// TIFF by libtiff: rows as they are where their kind allows it, so that profiles and 16 bits are kept; all else through libtiff's own RGBA.
final class TIFFFile: PictureFile {
    let header: PictureHeader
    private let bytes: ByteView
    private let page: Int
    private let budgetForPage: Int?
    /// A tag's value lies behind the end of the file.
    private let lacksValues: Bool

    init(_ bytes: ByteView, structure: RAWStructure, limits: MediaLimits) throws(Failure) {
        self.bytes = bytes
        guard let first = structure.structure.directory(at: structure.structure.firstDirectory) else {
            throw .truncated("no directory")
        }
        // A file may start with a thumbnail of itself.
        let main = structure.structure.directories()
        let tags = structure.structure
        page =
            main.firstIndex { directory in
                // The second is the older tag: 2 stands for a reduced picture.
                (tags.integer(directory.entry(254)) ?? 0) & 1 == 0 && tags.integer(directory.entry(255)) != 2
            } ?? 0
        let directory = page < main.count ? main[page] : first
        guard let width = tags.integer(directory.entry(256)), let height = tags.integer(directory.entry(257)) else {
            throw structure.lacksBytes ? .truncated("no size") : .corrupt("no size")
        }
        var metadata = EXIF.read(tags, directory)
        if page > 0 {
            let orientation = metadata.orientation
            metadata = metadata.completed(by: EXIF.read(tags, first))
            metadata.orientation = orientation
        }
        metadata = metadata.completed(by: directory.entry(700)?.value, directory.entry(33723)?.value)
        let profile = directory.entry(34675)?.value
        header = PictureHeader(
            size: PixelSize(width: width, height: height), orientation: metadata.orientation ?? .upright, codec: "tiff",
            pixelFormat: Self.pixelFormat(tags, directory),
            encoding: profile.flatMap { $0.isEmpty ? nil : .profile($0) } ?? .plain, metadata: metadata)
        try header.admit(limits)
        if structure.lacksBytes { throw .truncated("strips or tiles beyond the end of the file") }
        budgetForPage = product(width, height, 4)
        lacksValues = directory.entries.contains { $0.count > 0 && $0.value.isEmpty }
    }

    func decode(longSide: Int, budget: MemoryBudget) throws(Failure) -> DecodedPicture {
        try budget.admit(sum(budgetForPage, budgetForPage))
        return try reader().decodeRGBA(encoding: header.encoding, budget: budget)
    }

    func decodeRows(_ target: PixelSize, budget: MemoryBudget) throws(Failure) -> DecodedPicture? {
        let reader = try reader()
        guard let rows = reader.plainRows else { return nil }
        return try reader.decode(rows, target, encoding: header.encoding, budget: budget)
    }

    private func reader() throws(Failure) -> TIFFReader {
        let reader: TIFFReader
        do throws(Failure) {
            reader = try TIFFReader(bytes, page: page)
        } catch {
            // libtiff does without most tags; where it cannot, the end is what is missing.
            throw lacksValues && error.code == .corrupt ? .truncated("a tag's value beyond the end of the file") : error
        }
        guard reader.size == header.size else { throw .corrupt("two sizes") }
        return reader
    }

    private static func pixelFormat(_ tags: TIFFStructure, _ directory: TIFFStructure.Directory) -> String? {
        let bits = tags.integer(directory.entry(258)) ?? 1
        let samples = tags.integer(directory.entry(277)) ?? 1
        switch (tags.integer(directory.entry(262)) ?? 0, samples, bits) {
        case (0...1, _, 1): return "monob"
        case (0...1, 1, 8): return "gray"
        case (0...1, 1, 16): return tags.isBigEndian ? "gray16be" : "gray16le"
        case (2, 3, 8): return "rgb24"
        case (2, 4, 8): return "rgba"
        case (2, 3, 16): return tags.isBigEndian ? "rgb48be" : "rgb48le"
        case (2, 4, 16): return tags.isBigEndian ? "rgba64be" : "rgba64le"
        case (3, _, _): return "pal8"
        default: return nil
        }
    }
}
