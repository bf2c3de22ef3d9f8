import Foundation
import Testing

/// A disk that keeps what it was told to keep and nothing else, as POSIX allows: a file has the contents of its last fsync, a folder the names
/// of its last fsync. A value, so that each cut has its own.
struct StrictDisk: Sendable {
    /// A file's bytes, by what they are made of.
    enum Contents: Hashable, Sendable {
        case folder
        case empty
        /// Was there before the recording.
        case given(path: String)
        case copy(Int)
        /// The power went while this was being written over that: some blocks of each.
        indirect case torn(old: Contents, new: Int, seed: UInt64)
    }
    typealias Node = Int
    /// One name in one folder: a new owner, or none.
    private struct Edit: Sendable {
        var folder: Node
        var name: String
        var node: Node?
    }

    private var contents: [Node: Contents] = [:]
    private var durable: [Node: [String: Node]] = [:]
    private var live: [Node: [String: Node]] = [:]
    private var nodeOfInode: [UInt64: Node] = [:]
    /// Changes that no fsync has covered yet, each whole or not at all.
    private var pending: [[Edit]] = []
    private var nodeCount = 0
    private let root: Node = 0

    /// - Parameter path: a folder; all in it counts as durable.
    init(asFound path: String) throws {
        nodeOfInode[try Self.inode(path)] = makeNode(isFolder: true)
        for name in try FileManager.default.subpathsOfDirectory(atPath: path).sorted() {
            var isFolder: ObjCBool = false
            _ = FileManager.default.fileExists(atPath: path + "/" + name, isDirectory: &isFolder)
            let node = makeNode(isFolder: isFolder.boolValue)
            nodeOfInode[try Self.inode(path + "/" + name)] = node
            if !isFolder.boolValue { contents[node] = .given(path: name) }
            guard let (folder, last) = place(name) else { continue }
            live[folder, default: [:]][last] = node
            durable[folder, default: [:]][last] = node
        }
    }

    private static func inode(_ path: String) throws -> UInt64 {
        try #require(
            (try FileManager.default.attributesOfItem(atPath: path)[.systemFileNumber] as? NSNumber)?.uint64Value)
    }

    /// Of a file that was there before the recording.
    func inode(of path: String) -> UInt64? {
        guard let node = contents.first(where: { $0.value == .given(path: path) })?.key else { return nil }
        return nodeOfInode.first { $0.value == node }?.key
    }

    /// With nothing on it.
    init() { _ = makeNode(isFolder: true) }

    // MARK: Playing the journal

    mutating func apply(_ entry: Journal.Entry) throws {
        switch entry {
        case .create(let inode, let path): try add(path, inode, isFolder: false)
        case .makeFolder(let inode, let path): try add(path, inode, isFolder: true)
        case .rename(let from, let to):
            guard let (fromFolder, fromName) = place(from), let (toFolder, toName) = place(to),
                let node = live[fromFolder]?[fromName]
            else { throw Unknown(path: from) }
            change([Edit(folder: fromFolder, name: fromName), Edit(folder: toFolder, name: toName, node: node)])
        case .link(let from, let to):
            guard let (fromFolder, fromName) = place(from), let (toFolder, toName) = place(to),
                let node = live[fromFolder]?[fromName]
            else { throw Unknown(path: from) }
            change([Edit(folder: toFolder, name: toName, node: node)])
        case .remove(let path):
            // A socket is made by bind, which is not recorded and need not be: the next server makes its own.
            guard let (folder, name) = place(path), live[folder]?[name] != nil else {
                if path.hasSuffix(".sock") { return }
                throw Unknown(path: path)
            }
            change([Edit(folder: folder, name: name)])
        case .syncFile(let inode, let copy):
            guard let node = nodeOfInode[inode] else { throw Unknown(path: "inode \(inode)") }
            contents[node] = .copy(copy)
        case .syncFolder(let inode):
            guard let node = nodeOfInode[inode] else { throw Unknown(path: "inode \(inode)") }
            syncNames(of: node)
        case .step: break
        }
    }
    struct Unknown: Error { var path: String }

    private mutating func makeNode(isFolder: Bool) -> Node {
        defer { nodeCount += 1 }
        if isFolder { (live[nodeCount], durable[nodeCount]) = ([:], [:]) }
        return nodeCount
    }

    private mutating func add(_ path: String, _ inode: UInt64, isFolder: Bool) throws {
        guard let (folder, name) = place(path) else { throw Unknown(path: path) }
        let node = makeNode(isFolder: isFolder)
        nodeOfInode[inode] = node
        if !isFolder { contents[node] = .empty }
        change([Edit(folder: folder, name: name, node: node)])
    }

    private mutating func change(_ edits: [Edit]) {
        for edit in edits { live[edit.folder]?[edit.name] = edit.node }
        pending.append(edits)
    }

    /// Only the names of this folder: of a rename between two, the other half stays open.
    private mutating func syncNames(of folder: Node) {
        for index in pending.indices {
            for edit in pending[index] where edit.folder == folder { durable[folder]?[edit.name] = edit.node }
            pending[index].removeAll { $0.folder == folder }
        }
        pending.removeAll(where: \.isEmpty)
    }

    private func place(_ path: String) -> (folder: Node, name: String)? {
        var folder = root
        let names = path.split(separator: "/").map(String.init)
        for name in names.dropLast() {
            guard let next = live[folder]?[name], live[next] != nil else { return nil }
            folder = next
        }
        return names.last.map { (folder, $0) }
    }

    // MARK: The power goes

    /// What of the changes that nobody asked to be durable is so anyway.
    enum Luck: Hashable {
        case none, all
        /// Each or not.
        case some(seed: UInt64)
    }

    /// - Parameter torn: the file that was being synced and the copy of what it was to be.
    func cut(_ luck: Luck, torn: (inode: UInt64, copy: Int, seed: UInt64)? = nil) -> [String: Contents] {
        var disk = self
        var random = SeededGenerator(seed: 0)
        if case .some(let seed) = luck { random = SeededGenerator(seed: seed) }
        for edits in pending {
            switch luck {
            case .none: continue
            case .all: break
            case .some: if Bool.random(using: &random) { continue }
            }
            for edit in edits { disk.durable[edit.folder]?[edit.name] = edit.node }
        }
        if let torn, let node = nodeOfInode[torn.inode] {
            disk.contents[node] = .torn(old: disk.contents[node] ?? .empty, new: torn.copy, seed: torn.seed)
        }
        var found: [String: Contents] = [:]
        disk.collect(root, "", into: &found)
        return found
    }

    private func collect(_ folder: Node, _ prefix: String, into found: inout [String: Contents]) {
        for (name, node) in durable[folder] ?? [:] {
            if durable[node] != nil {
                found[prefix + name] = .folder
                collect(node, prefix + name + "/", into: &found)
            } else {
                found[prefix + name] = contents[node] ?? .empty
            }
        }
    }
}

/// SplitMix64 (Steele, Lea, Flood 2014): the same numbers for the same seed everywhere.
struct SeededGenerator: RandomNumberGenerator {
    private var state: UInt64
    init(seed: UInt64) { state = seed }
    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var z = state
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return z ^ (z >> 31)
    }
}
