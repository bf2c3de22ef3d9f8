import Files
import Vocabulary

/// Taking a file into staging.
extension Staging {
    /// How often a file that changes while it is taken is begun again.
    static let changedMax = 3

    /// Brings the bytes of a file into staging, whole, durable and hashed. What already lies there is believed only after it has been hashed.
    /// - Parameters:
    ///   - isMoved: the source is to go once staging has it.
    ///   - progress: bytes read so far.
    /// - Returns: the row as it is now; `isSourceRemoved` tells whether the move is finished.
    func adopt(
        _ file: FileRow, isMoved: Bool, stop: StopFlag, progress: (Int) -> Void = { _ in }
    ) throws(Failure) -> FileRow {
        let target = path(of: file)
        try Files.makeFolder(file.item.rawValue, in: root)
        var last: Failure?
        for _ in 0..<Self.changedMax {
            try stop.check()
            do throws(Failure) {
                // A killed process had finished the file but not written it down.
                if try Files.facts(target) != nil {
                    return try sealed(file, at: target, stop: stop, progress: progress)
                }
                guard let source = file.source else {
                    throw Failure(.stagingMissing, "“\(file.name)” is no longer in staging.", detail: file.path)
                }
                return isMoved
                    ? try move(file, from: source, to: target, stop: stop, progress: progress)
                    : try clone(file, from: source, to: target, stop: stop, progress: progress)
            } catch {
                guard error.code == .sourceChanged else { throw error }
                last = error
            }
        }
        throw last ?? Self.changed(file.name, detail: nil)
    }

    /// Hashes what lies in staging and is not in the catalog yet. A moved file may still have its writer: the hash must be of what is there
    /// at the end.
    private func sealed(
        _ file: FileRow, at target: String, stop: StopFlag, progress: (Int) -> Void
    ) throws(Failure) -> FileRow {
        let staged = try OpenFile.reading(target)
        // Whoever wrote a moved file may not have synced it, and whoever brought it here may have been killed before its name was durable.
        try staged.synchronize()
        try Files.synchronizeFolder(Files.folder(of: target))
        var file = file
        let name = file.name
        let before = try staged.facts()
        let hashes = try Files.hashes(of: staged) { bytes throws(Failure) in
            guard bytes <= before.size else {
                throw Self.changed(name, detail: "\(target) grew over \(before.size) bytes")
            }
            progress(bytes)
            try stop.check()
        }
        guard try staged.facts() == before else {
            throw Self.changed(file.name, detail: "still written after it was moved to \(target)")
        }
        file.bytes = before.size
        file.sha256 = hashes.sha256
        file.xxh128 = hashes.xxh128
        file.ends = try FileEnds.sha256(of: staged, size: before.size)
        file.state = .staged
        if let source = file.source { file.isSourceRemoved = Self.isGone(source) }
        return file
    }

    /// What cannot be looked at may still be there: the next start tries to finish the move.
    private static func isGone(_ source: RawPath) -> Bool {
        do throws(Failure) { return try Files.facts(source) == nil } catch { return false }
    }

    /// The source stays. Its hash is taken in the pass that copies it.
    private func clone(
        _ file: FileRow, from source: RawPath, to target: String, stop: StopFlag, progress: (Int) -> Void
    ) throws(Failure) -> FileRow {
        let (opened, before) = try open(source)
        let draft = try Draft.begin(for: target)
        let copied = try Files.copy(opened, into: draft) { bytes throws(Failure) in
            // A file that grows as fast as it is read would never end.
            guard bytes <= before.size else {
                throw Self.changed(file.name, detail: "\(source) grew over \(before.size) bytes")
            }
            progress(bytes)
            try stop.check()
        }
        try requireUnchanged(source, opened, before, read: copied.bytes)
        var file = file
        file.ends = try FileEnds.sha256(of: draft.file, size: copied.bytes)
        try draft.commit()
        file.sourceSize = before.size
        file.sourceModified = before.modified
        file.bytes = copied.bytes
        file.sha256 = copied.sha256
        file.xxh128 = copied.hashes.xxh128
        file.state = .staged
        return file
    }

    /// The source goes. On one file system it is renamed, and hashed in staging, where nobody else finds it; from another it is copied, and
    /// stays until `finishMove`.
    private func move(
        _ file: FileRow, from source: RawPath, to target: String, stop: StopFlag, progress: (Int) -> Void
    ) throws(Failure) -> FileRow {
        let before = try open(source).facts
        if try isRenamed(source, to: target) {
            var file = try sealed(file, at: target, stop: stop, progress: progress)
            file.sourceSize = before.size
            file.sourceModified = before.modified
            return file
        }
        return try cloneAndCompare(file, from: source, to: target, stop: stop, progress: progress)
    }

    /// False where only a copy can be made: from another file system, or out of a folder that we may not change.
    private func isRenamed(_ source: RawPath, to target: String) throws(Failure) -> Bool {
        do throws(Failure) { return try Files.move(source, to: target) } catch {
            guard error.code == .readOnly else { throw error }
            return false
        }
    }

    /// The copy is the only one soon: it is read back from the disk before that.
    private func cloneAndCompare(
        _ file: FileRow, from source: RawPath, to target: String, stop: StopFlag, progress: (Int) -> Void
    ) throws(Failure) -> FileRow {
        let file = try clone(file, from: source, to: target, stop: stop, progress: progress)
        let staged = try OpenFile.reading(target)
        staged.dropFromCache()
        guard try Files.sha256(of: staged, progress: { _ throws(Failure) in try stop.check() }) == file.sha256 else {
            // The source still has the bytes; this copy is not them.
            try Files.remove(target)
            throw Failure(
                .ioError, "“\(file.name)” came back from the disk different than it was written: check the disk.",
                detail: target)
        }
        return file
    }

    /// The last act of a move between file systems, after the catalog knows the staged copy: the source goes, if it still has the same bytes.
    /// - Parameter isStaged: false where the file has left staging: who asks knows of another place that has the bytes.
    /// - Returns: false when it has others by now; it stays then, and is nobody's any more.
    /// - Throws: `read-only` where it cannot be removed; it has not been read then.
    func finishMove(_ file: FileRow, isStaged: Bool = true, stop: StopFlag) throws(Failure) -> Bool {
        guard let source = file.source, try Files.facts(source) != nil else { return true }
        if isStaged { try check(file) }
        guard Files.mayChangeFolder(of: source) else {
            throw Failure(
                .readOnly, "“\(source)” could not be removed: its folder cannot be changed.", detail: source.description
            )
        }
        guard try hasSameBytes(source, as: file, stop: stop) else { return false }
        try Files.remove(source)
        return true
    }

    /// True when the file at `source` is there and has the hash of the row.
    func hasSameBytes(_ source: RawPath, as file: FileRow, stop: StopFlag) throws(Failure) -> Bool {
        guard let facts = try Files.facts(source), facts.kind == .regular, facts.size == file.bytes else {
            return false
        }
        let opened = try OpenFile.reading(source)
        return try Files.sha256(of: opened, progress: { _ throws(Failure) in try stop.check() }) == file.sha256
    }

    private func open(_ source: RawPath) throws(Failure) -> (file: OpenFile, facts: FileFacts) {
        let opened = try OpenFile.reading(source)
        let facts = try opened.facts()
        guard facts.kind == .regular else {
            throw Failure(
                .sourceUnreadable, "“\(String(decoding: source.name, as: UTF8.self))” is not a file.",
                detail: source.description)
        }
        return (opened, facts)
    }

    private func requireUnchanged(
        _ source: RawPath, _ opened: OpenFile, _ before: FileFacts, read: Int
    ) throws(Failure) {
        let after = try opened.facts()
        let named = try Files.facts(source)
        guard after == before, named == before, read == before.size else {
            throw Self.changed(
                String(decoding: source.name, as: UTF8.self),
                detail: "\(source): \(before.size) bytes before, \(after.size) after, \(read) read")
        }
    }

    private static func changed(_ name: String, detail: String?) -> Failure {
        Failure(
            .sourceChanged, "“\(name)” changed while it was being taken: try again when it is finished.", detail: detail
        )
    }
}
