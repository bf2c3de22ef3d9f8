/// The table of items as libheif reads it. It refuses the whole file for what the standard allows (ISO/IEC 23008-12):
/// - items of type `iden` (6.6.2.1), another item's picture, cropped or turned once more. Each becomes an item like its source, with the same bytes
///   and, behind the source's properties, its own;
/// - auxiliary pictures and metadata of several items, as phones have them that write a gain map for the picture and for its tone-mapped twin. They
///   belong to the primary item alone then.
///
/// Pure.
enum HEIFItemTable {
    /// From one to the next.
    private static let depthMax = 8
    /// A table of items is some kilobytes.
    static let metaBytesMax = 64 << 20

    /// - Returns: the file with a new table of items at its end; nil where there is nothing to resolve, or it cannot be done.
    static func resolved(_ bytes: ByteView, _ structure: HEIFStructure) -> [UInt8]? {
        guard structure.needsOtherTable, let meta = ISOBox.boxes(in: bytes).first("meta"), meta.isWhole,
            meta.body.count <= metaBytesMax, let start = bytes.bytes.baseAddress,
            let body = meta.body.bytes.baseAddress
        else { return nil }
        var roots: [Int: Int] = [:]
        for id in structure.items.keys.sorted() where structure.items[id]?.type == "iden" {
            var root = id
            for _ in 0..<depthMax where structure.items[root]?.type == "iden" {
                root = structure.sources[root]?.first ?? root
            }
            guard let type = structure.items[root]?.type, type != "iden" else { return nil }
            roots[id] = root
        }
        var table: [UInt8] = meta.body.clamped(at: 0, count: 4).array
        for child in meta.children(after: 4) {
            switch child.type {
            case "iinf" where !roots.isEmpty: table += items(child, roots, structure)
            case "iloc" where !roots.isEmpty:
                guard let box = locations(child, roots) else { return nil }
                table += box
            case "iref": table += references(child, roots, structure)
            case "iprp" where !roots.isEmpty:
                guard let box = properties(child, roots, structure) else { return nil }
                table += box
            default: table += box(child.type, child.body.array)
            }
        }
        var file = bytes.array
        // The old table stays where it is, as free space: places of other boxes do not change.
        let place = body - start
        let name = meta.body.bytes.count > 0 && bytes.fourCC(at: place - 4) == "meta" ? place - 4 : place - 12
        file.replaceSubrange(name..<(name + 4), with: Array("free".utf8))
        return file + box("meta", table)
    }

    private static func items(_ list: ISOBox, _ roots: [Int: Int], _ structure: HEIFStructure) -> [UInt8] {
        let header = list.version == 0 ? 6 : 8
        var body = list.body.clamped(at: 0, count: header).array
        for entry in list.children(after: header) {
            var bytes = entry.body.array
            let isWide = entry.version >= 3
            let id = entry.body.number(at: 4, width: isWide ? 4 : 2)
            let place = isWide ? 10 : 8
            if let root = id.flatMap({ roots[$0] }), let type = structure.items[root]?.type, bytes.count >= place + 4 {
                bytes.replaceSubrange(place..<(place + 4), with: Array(type.utf8).prefix(4))
            }
            body += box(entry.type, bytes)
        }
        return box("iinf", body)
    }

    private static func locations(_ list: ISOBox, _ roots: [Int: Int]) -> [UInt8]? {
        let body = list.body
        guard let sizes = body.u16(at: 4).map(Int.init) else { return nil }
        let idBytes = list.version < 2 ? 2 : 4
        let extentBytes = (sizes >> 12) + (sizes >> 8 & 15) + (list.version == 0 ? 0 : sizes & 15)
        guard let count = body.number(at: 6, width: idBytes), count <= HEIFStructure.itemCountMax else { return nil }
        var position = 6 + idBytes
        var entries: [Int: [UInt8]] = [:]
        var order: [Int] = []
        for _ in 0..<count {
            guard let id = body.number(at: position, width: idBytes) else { return nil }
            let fixed = (list.version == 0 ? 0 : 2) + 2 + (sizes >> 4 & 15)
            guard let extents = body.u16(at: position + idBytes + fixed).map(Int.init),
                let entry = body.slice(at: position + idBytes, count: fixed + 2 + extents * extentBytes)
            else { return nil }
            if roots[id] == nil { order.append(id) }
            entries[id] = entry.array
            position += idBytes + entry.count
        }
        for (id, root) in roots.sorted(by: { $0.key < $1.key }) {
            guard let entry = entries[root] else { return nil }
            entries[id] = entry
            order.append(id)
        }
        var result = body.clamped(at: 0, count: 6).array + bytes(order.count, width: idBytes)
        for id in order { result += bytes(id, width: idBytes) + (entries[id] ?? []) }
        return box("iloc", result)
    }

    /// From an item to others, of which libheif takes one.
    static let singleTargets: Set<String> = ["auxl", "cdsc"]

    /// What the source was put together from, the new item is too.
    private static func references(_ list: ISOBox, _ roots: [Int: Int], _ structure: HEIFStructure) -> [UInt8] {
        let width = list.version == 0 ? 2 : 4
        var body = list.body.clamped(at: 0, count: 4).array
        for reference in list.children(after: 4) {
            let from = reference.body.number(at: 0, width: width)
            if reference.type == "dimg", from.map({ roots[$0] != nil }) ?? true { continue }
            guard singleTargets.contains(reference.type), let from else {
                body += box(reference.type, reference.body.array)
                continue
            }
            let targets = HEIFStructure.targets(of: reference, width: width)
            let target = targets.first { $0 == structure.primary } ?? targets.first
            if let target {
                body += box(reference.type, bytes(from, width: width) + [0, 1] + bytes(target, width: width))
            }
        }
        for (id, root) in roots.sorted(by: { $0.key < $1.key }) {
            guard let sources = structure.sources[root], !sources.isEmpty else { continue }
            body += box(
                "dimg",
                bytes(id, width: width) + bytes(sources.count, width: 2) + sources.flatMap { bytes($0, width: width) })
        }
        return box("iref", body)
    }

    private static func properties(_ list: ISOBox, _ roots: [Int: Int], _ structure: HEIFStructure) -> [UInt8]? {
        let boxes = list.children()
        guard let store = boxes.first("ipco"), let links = boxes.first("ipma"),
            boxes.filter({ $0.type == "ipma" }).count == 1, let count = links.body.u32(at: 4).map(Int.init),
            count <= HEIFStructure.itemCountMax
        else { return nil }
        let idBytes = links.version == 0 ? 2 : 4
        let width = (links.body.byte(at: 3) ?? 0) & 1 == 1 ? 2 : 1
        var entries: [Int: [Int]] = [:]
        var position = 8
        for _ in 0..<count {
            guard let id = links.body.number(at: position, width: idBytes),
                let number = links.body.byte(at: position + idBytes).map(Int.init)
            else { return nil }
            position += idBytes + 1
            entries[id] = (0..<number).compactMap { links.body.number(at: position + $0 * width, width: width) }
            position += number * width
        }
        let types = store.children().map(\.type)
        func type(_ link: Int) -> String {
            let index = link & (width == 2 ? 0x7FFF : 0x7F)
            return index > 0 && index <= types.count ? types[index - 1] : ""
        }
        let original = entries
        for id in roots.keys {
            var own: [Int] = []
            var current = id
            // The outermost is applied last.
            for _ in 0..<depthMax where current != roots[id] {
                own = (original[current] ?? []).filter { type($0) != "ispe" } + own
                current = structure.sources[current]?.first ?? current
            }
            let said = Set(own.map(type)).subtracting(["clap", "irot", "imir"])
            entries[id] = (original[current] ?? []).filter { !said.contains(type($0)) } + own
            guard (entries[id]?.count ?? 0) < 256 else { return nil }
        }
        var body = links.body.clamped(at: 0, count: 4).array + bytes(entries.count, width: 4)
        for (id, associations) in entries.sorted(by: { $0.key < $1.key }) {
            body += bytes(id, width: idBytes) + bytes(associations.count, width: 1)
            for link in associations { body += bytes(link, width: width) }
        }
        return box("iprp", box("ipco", store.body.array) + box("ipma", body))
    }

    private static func bytes(_ value: Int, width: Int) -> [UInt8] {
        (0..<width).reversed().map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
    }
    private static func box(_ type: String, _ body: [UInt8]) -> [UInt8] {
        bytes(body.count + 8, width: 4) + Array(type.utf8).prefix(4) + body
    }
}
