public import Files
import Vocabulary

/// A file that a walk came across.
public struct WalkedFile: Sendable, Hashable {
    public var path: RawPath
    /// Bytes.
    public var size: Int
    /// Nanoseconds since 1970.
    public var modified: Int64
    /// The folder that was named, absolute; of a file that was named itself, the one that holds it.
    public var card: RawPath
    /// Where it was come across, below that.
    public var below: RawPath

    /// - Parameter card: nil: the folder that holds it.
    public init(path: RawPath, size: Int, modified: Int64, card: RawPath? = nil, below: RawPath? = nil) {
        self.path = path
        self.size = size
        self.modified = modified
        self.card = card ?? path.folder
        self.below = below ?? RawPath(path.name)
    }
}

/// A path that was not taken, and why.
public struct IgnoredFile: Sendable, Hashable {
    public enum Reason: Sendable, Hashable {
        case systemFile
        case sidecarWithoutItem
        /// Its item was moved, and this is to be copied.
        case sidecarOfMoved
        case notAFile
        case brokenLink
        /// A link out of the folder that was named, which a move does not follow.
        case linkOut
        case tooDeep
        /// The home of Rushes, or the folder of a backend.
        case ownFolder
        case unreadable(String)

        /// A few words for the person.
        public var words: String {
            switch self {
            case .systemFile: "system file"
            case .sidecarWithoutItem: "sidecar without its photo or video"
            case .sidecarOfMoved: "a sidecar of what was taken with --move: give that again"
            case .notAFile: "neither a file nor a folder"
            case .brokenLink: "link to nothing"
            case .linkOut: "a link out of the folder, which --move does not follow"
            case .tooDeep: "too many folders inside each other"
            case .ownFolder: "a folder in which Rushes itself works"
            case .unreadable(let message): message
            }
        }
        /// True where something that a person may have wanted was left behind.
        public var isLoss: Bool { self != .systemFile && self != .ownFolder }
    }
    public var path: RawPath
    public var reason: Reason
}

/// Which files become items, which go with them, which are left: from names alone.
struct PickPlan: Sendable, Equatable {
    struct Item: Sendable, Equatable {
        var original: WalkedFile
        var sidecars: [WalkedFile] = []
    }
    private(set) var items: [Item] = []
    private(set) var ignored: [IgnoredFile] = []

    init(_ files: [WalkedFile]) {
        var sidecars: [WalkedFile] = []
        var seen: Set<RawPath> = []
        for file in files where seen.insert(file.path).inserted {
            let name = file.path.name
            if SystemFiles.isFile(name) {
                ignored.append(IgnoredFile(path: file.path, reason: .systemFile))
            } else if SidecarNames.isSidecar(name) {
                sidecars.append(file)
            } else {
                items.append(Item(original: file))
            }
        }
        attach(sidecars)
    }

    private mutating func attach(_ sidecars: [WalkedFile]) {
        let byFolder = Dictionary(grouping: items.indices) { items[$0].original.path.folder }
        for sidecar in sidecars {
            let names = (byFolder[sidecar.path.folder] ?? []).map { ($0, items[$0].original.path.name) }
            if let index = SidecarNames.owner(of: sidecar.path.name, among: names) {
                items[index].sidecars.append(sidecar)
            } else {
                ignored.append(IgnoredFile(path: sidecar.path, reason: .sidecarWithoutItem))
            }
        }
    }
}

/// How sidecars are named after their item.
enum SidecarNames {
    private static let extensions: Set<String> = ["xmp", "srt", "xml", "aae"]
    private static let raw: Set<String> = [
        "cr2", "cr3", "nef", "arw", "dng", "raf", "orf", "rw2", "pef", "srw", "3fr", "iiq", "gpr",
    ]
    private static let stills: Set<String> = [
        "jpg", "jpeg", "heic", "heif", "hif", "png", "tif", "tiff", "avif", "webp", "jxl",
    ]
    private static let videos: Set<String> = ["mp4", "mov", "mxf", "mts", "m2ts", "avi", "mkv", "m4v", "3gp", "webm"]

    static func isSidecar(_ name: [UInt8]) -> Bool { extensions.contains(FileNames.fileExtension(name)) }

    /// - Parameter names: of the items in the same folder.
    /// - Returns: the item whose whole name the sidecar carries (`CLIP.MP4.xmp`), else the likeliest of those with its stem (`CLIP.XMP`,
    ///   Sony's `CLIPM01.XML`).
    static func owner<Key>(of sidecar: [UInt8], among names: [(Key, [UInt8])]) -> Key? {
        let kind = FileNames.fileExtension(sidecar)
        let stem = FileNames.folded(FileNames.stem(sidecar))
        if let whole = names.first(where: { FileNames.folded($0.1) == stem }) { return whole.0 }
        var stems = [stem]
        // Sony names the metadata of clip C0001 C0001M01.XML.
        if kind == "xml", stem.count > 3, stem[stem.count - 3] == UInt8(ascii: "m"),
            stem.suffix(2).allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) })
        {
            stems.append(Array(stem.dropLast(3)))
        }
        for stem in stems {
            let matches = names.filter { FileNames.folded(FileNames.stem($0.1)) == stem }
            let best = matches.min { rank($0.1, for: kind) < rank($1.1, for: kind) }
            if let best { return best.0 }
        }
        return nil
    }

    /// Lower is likelier: editors write XMP and AAE for the RAW or the still of a pair, drones and cameras SRT and XML for the clip.
    private static func rank(_ name: [UInt8], for kind: String) -> Int {
        let type = FileNames.fileExtension(name)
        let order = kind == "xmp" || kind == "aae" ? [raw, stills, videos] : [videos, raw, stills]
        return order.firstIndex { $0.contains(type) } ?? order.count
    }
}
