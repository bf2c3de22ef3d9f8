/// The items of a HEIF or AVIF file (ISO/IEC 23008-12) and its image sequence, read without decoding. Pure.
struct HEIFStructure {
    struct Item {
        var type: String
        /// Where the bytes are: in the file, or in the `idat` box.
        var extents: [(isInFile: Bool, offset: Int, length: Int)] = []
        var properties: [ISOBox] = []
    }

    /// An image sequence's track.
    struct Sequence: Equatable {
        var codec: String
        var size: PixelSize
        var frames: Int
        /// Seconds.
        var duration: Double
        /// Seconds since 1904.
        var created: UInt64
    }

    static let itemCountMax = 20_000
    static let extentCountMax = 100_000

    private(set) var majorBrand = ""
    private(set) var items: [Int: Item] = [:]
    private(set) var primary: Int?
    /// From a derived item to those it is put together from.
    private(set) var sources: [Int: [Int]] = [:]
    private(set) var sequence: Sequence?
    /// Of the table of items.
    private(set) var tableBytes = 0
    /// An auxiliary picture or metadata belongs to several items.
    private var hasSharedReferences = false
    /// A box at the top goes beyond the end of the file.
    private(set) var isCut = false
    private let fileLength: Int

    init(_ bytes: ByteView) {
        fileLength = bytes.count
        let top = ISOBox.boxes(in: bytes)
        isCut = top.contains { !$0.isWhole }
        majorBrand = top.first("ftyp")?.body.fourCC(at: 0) ?? ""
        if let meta = top.first("meta") {
            tableBytes = meta.body.count
            readMeta(meta.children(after: 4))
        }
        if let movie = top.first("moov") { sequence = Self.readSequence(movie) }
    }

    /// libheif does not read the items as they are listed.
    var needsOtherTable: Bool { hasSharedReferences || items.values.contains { $0.type == "iden" } }

    /// The brands of files whose main content is a sequence.
    var isSequence: Bool { ["avis", "msf1", "hevc", "hevx", "hevm", "hevs"].contains(majorBrand) }

    /// The primary item, or the first of what it is put together from, with its coded type.
    var codedItem: Item? {
        guard let primary, let item = items[primary] else { return nil }
        return sources[primary]?.first.flatMap { items[$0] } ?? item
    }

    /// Put together from pictures that lie on each other, which is done in RGB.
    var isOverlay: Bool {
        guard let primary else { return false }
        return ([primary] + (sources[primary] ?? [])).contains { items[$0]?.type == "iovl" }
    }

    /// Coded or put together in a way that libheif can be asked for.
    var isOfKnownType: Bool {
        codedItem.map { ["hvc1", "av01", "grid", "iovl", "iden"].contains($0.type) } ?? true
    }

    /// H.273's matrix coefficients, where a box of the picture's tells them.
    var matrix: Int? {
        let boxes = (primary.flatMap { items[$0] }?.properties ?? []) + (codedItem?.properties ?? [])
        return boxes.first { $0.type == "colr" && $0.body.starts(with: "nclx") }?.body.number(at: 8, width: 2)
    }

    /// As H.265 counts them (chroma_format_idc).
    enum Chroma: Int { case none, c420, c422, c444 }

    /// As the picture is coded, from the decoder's configuration: chroma_format_idc of `hvcC`, the flags of `av1C`.
    var chroma: Chroma? {
        let properties = codedItem?.properties ?? []
        if let value = properties.first("hvcC")?.body.byte(at: 16) { return Chroma(rawValue: Int(value & 3)) }
        guard let flags = properties.first("av1C")?.body.byte(at: 2) else { return nil }
        if flags & 0x10 != 0 { return Chroma.none }
        return flags & 0x08 == 0 ? .c444 : flags & 0x04 == 0 ? .c422 : .c420
    }

    /// As the primary item is stored.
    var size: PixelSize? { primary.flatMap(storedSize) }

    private func storedSize(_ item: Int) -> PixelSize? {
        guard let body = items[item]?.properties.first("ispe")?.body, let width = body.u32(at: 4),
            let height = body.u32(at: 8)
        else { return nil }
        return PixelSize(width: Int(width), height: Int(height))
    }

    /// Of the primary item as it is stored and, beside it, of as many of its largest piece as are decoded at a time; nil when it does not fit.
    func decodedArea(atATime: Int) -> Int? {
        let pieces = primary.flatMap { sources[$0] } ?? []
        var largest = 0
        for piece in pieces.lazy.compactMap(storedSize) {
            guard let area = piece.area else { return nil }
            largest = max(largest, area)
        }
        return sum(size?.area ?? 0, product(largest, min(pieces.count, atATime)))
    }

    /// As it is shown: cropped and turned in the order in which the properties are listed, wherever `ispe` stands among them.
    var uprightSize: PixelSize? {
        guard var size else { return nil }
        for box in primary.flatMap({ items[$0]?.properties }) ?? [] {
            if box.type == "irot", (box.body.byte(at: 0) ?? 0) & 1 == 1 {
                size = PixelSize(width: size.height, height: size.width)
            } else if box.type == "clap" {
                size = Self.cropped(size, by: box.body) ?? size
            }
        }
        return size
    }

    /// The clean aperture (ISO/IEC 14496-12, 12.1.4), in whole pixels as libheif takes it; nil for one outside the picture.
    private static func cropped(_ size: PixelSize, by clap: ByteView) -> PixelSize? {
        func fraction(at offset: Int) -> Double? {
            guard let above = clap.u32(at: offset), let below = clap.u32(at: offset + 4), below != 0 else { return nil }
            return Double(Int32(bitPattern: above)) / Double(Int32(bitPattern: below))
        }
        func side(_ side: Int, aperture: Double, offset: Double) -> Int? {
            let first = offset + (Double(side) - aperture) / 2
            let last = (first + aperture - 1).rounded()
            let kept = Int(min(last, Double(side - 1))) - Int(max(first.rounded(.down), 0)) + 1
            return kept > 0 ? kept : nil
        }
        guard let width = fraction(at: 0), let height = fraction(at: 8), let right = fraction(at: 16),
            let down = fraction(at: 24), let columns = side(size.width, aperture: width, offset: right),
            let rows = side(size.height, aperture: height, offset: down)
        else { return nil }
        return PixelSize(width: columns, height: rows)
    }

    /// `irot` counts quarter turns against the clock, `imir` axis 0 mirrors top to bottom; both apply in the order they are listed.
    var turn: Orientation {
        var (quarters, isMirrored) = (0, false)
        for box in primary.flatMap({ items[$0]?.properties }) ?? [] {
            if box.type == "irot" {
                // Mirrored left to right already, a turn goes the other way round.
                let clockwise = 4 - Int((box.body.byte(at: 0) ?? 0) & 3)
                quarters += isMirrored ? -clockwise : clockwise
            } else if box.type == "imir" {
                // Top to bottom is left to right after half a turn.
                if (box.body.byte(at: 0) ?? 0) & 1 == 0 { quarters += 2 }
                isMirrored.toggle()
            }
        }
        return Orientation(quarterTurnsClockwise: quarters, isMirrored: isMirrored)
    }

    /// ISO's derived item, or an auxiliary picture of Apple's kind.
    var hasGainMap: Bool {
        items.values.contains { item in
            item.type == "tmap"
                || item.properties.first("auxC").map {
                    $0.body.starts(with: "urn:com:apple:photo:2020:aux:hdrgainmap", at: 4)
                }
                    ?? false
        }
    }

    /// True where a box or bytes of the picture lie behind the end of the file.
    var lacksBytes: Bool {
        guard !isCut, let primary else { return isCut }
        let needed = [primary] + (sources[primary] ?? [])
        return needed.contains { id in
            (items[id]?.extents ?? []).contains {
                $0.isInFile && sum($0.offset, $0.length).map { $0 > fileLength } ?? true
            }
        }
    }

    // MARK: -

    private mutating func readMeta(_ boxes: [ISOBox]) {
        if let box = boxes.first("pitm") {
            primary = box.body.number(at: 4, width: box.version == 0 ? 2 : 4)
        }
        if let box = boxes.first("iinf") {
            for entry in box.children(after: box.version == 0 ? 6 : 8)
            where entry.type == "infe" && items.count < Self.itemCountMax {
                let wide = entry.version >= 3
                guard entry.version >= 2,
                    let id = entry.body.number(at: 4, width: wide ? 4 : 2),
                    let type = entry.body.fourCC(at: wide ? 10 : 8)
                else { continue }
                items[id] = Item(type: type)
            }
        }
        if let box = boxes.first("iloc") { readLocations(box) }
        if let box = boxes.first("iref") {
            let width = box.version == 0 ? 2 : 4
            for reference in box.children(after: 4) {
                let targets = Self.targets(of: reference, width: width)
                if reference.type == "dimg", let from = reference.body.number(at: 0, width: width) {
                    sources[from] = targets
                } else if HEIFItemTable.singleTargets.contains(reference.type), targets.count > 1 {
                    hasSharedReferences = true
                }
            }
        }
        if let box = boxes.first("iprp") { readProperties(box.children()) }
    }

    /// The items to which a reference leads.
    /// - Parameter width: of an item's number, in bytes.
    static func targets(of reference: ISOBox, width: Int) -> [Int] {
        let count = reference.body.u16(at: width).map(Int.init) ?? 0
        return (0..<min(count, reference.body.count / width)).compactMap {
            reference.body.number(at: width + 2 + $0 * width, width: width)
        }
    }

    private mutating func readLocations(_ box: ISOBox) {
        let body = box.body
        guard let sizes = body.u16(at: 4) else { return }
        let (offsetSize, lengthSize) = (Int(sizes >> 12), Int(sizes >> 8 & 15))
        let (baseSize, indexSize) = (Int(sizes >> 4 & 15), box.version == 0 ? 0 : Int(sizes & 15))
        var position = 6
        var isBroken = false
        func take(_ size: Int) -> Int {
            defer { position += size }
            switch size {
            case 0: return 0
            case 2: if let value = body.u16(at: position) { return Int(value) }
            case 4: if let value = body.u32(at: position) { return Int(value) }
            case 8: if let value = body.u64(at: position), let fits = Int(exactly: value) { return fits }
            default: break
            }
            isBroken = true
            return 0
        }
        let count = take(box.version < 2 ? 2 : 4)
        var extentsLeft = Self.extentCountMax
        for _ in 0..<min(count, Self.itemCountMax) {
            let id = take(box.version < 2 ? 2 : 4)
            let method = box.version == 0 ? 0 : take(2) & 15
            let fileIndex = take(2)
            let base = take(baseSize)
            let number = take(2)
            for _ in 0..<number {
                _ = take(indexSize)
                let offset = take(offsetSize)
                let length = take(lengthSize)
                extentsLeft -= 1
                if isBroken || extentsLeft < 0 { return }
                // Another file, or another item: nothing to check here.
                guard fileIndex == 0, method < 2 else { continue }
                items[id]?.extents.append((method == 0, sum(base, offset) ?? .max, length))
            }
        }
    }

    private mutating func readProperties(_ boxes: [ISOBox]) {
        let properties = boxes.first("ipco")?.children() ?? []
        for box in boxes where box.type == "ipma" {
            let isWide = box.version >= 1
            let hasLongIndex = (box.body.byte(at: 3) ?? 0) & 1 == 1
            guard let count = box.body.u32(at: 4) else { continue }
            var position = 8
            for _ in 0..<min(Int(count), Self.itemCountMax) {
                guard
                    let id = box.body.number(at: position, width: isWide ? 4 : 2),
                    let number = box.body.byte(at: position + (isWide ? 4 : 2))
                else { return }
                position += isWide ? 5 : 3
                for _ in 0..<number {
                    let index: Int
                    if hasLongIndex {
                        index = Int((box.body.u16(at: position) ?? 0) & 0x7FFF)
                    } else {
                        index = Int((box.body.byte(at: position) ?? 0) & 0x7F)
                    }
                    position += hasLongIndex ? 2 : 1
                    if index > 0, index <= properties.count { items[id]?.properties.append(properties[index - 1]) }
                }
            }
        }
    }

    private static func readSequence(_ movie: ISOBox) -> Sequence? {
        let header = movie.children().first("mvhd")
        let created = header.flatMap { $0.version == 1 ? $0.body.u64(at: 4) : $0.body.u32(at: 4).map(UInt64.init) } ?? 0
        for track in movie.children() where track.type == "trak" {
            guard let media = track.children().first("mdia")?.children(),
                let handler = media.first("hdlr")?.body.fourCC(at: 8), handler == "pict" || handler == "vide",
                let clock = media.first("mdhd"),
                let table = media.first("minf")?.children().first("stbl")?.children(),
                let description = table.first("stsd")?.children(after: 8).first,
                let width = description.body.u16(at: 24), let height = description.body.u16(at: 26),
                let frames = table.first("stsz")?.body.u32(at: 8)
            else { continue }
            let isWide = clock.version == 1
            guard let scale = clock.body.u32(at: isWide ? 20 : 12), scale > 0,
                let ticks = isWide ? clock.body.u64(at: 24) : clock.body.u32(at: 16).map(UInt64.init)
            else { continue }
            return Sequence(
                codec: description.type, size: PixelSize(width: Int(width), height: Int(height)), frames: Int(frames),
                duration: Double(ticks) / Double(scale), created: created)
        }
        return nil
    }
}
