import Files
import Synchronization
import Vocabulary

/// One attempt at a job: verify what arrived → probe → make what is missing → manifest. The client is believed in nothing.
struct JobExecution: Sendable {
    let job: ClaimedJob
    let ledger: any Ledger
    let store: any BlobStore
    /// On this machine, for what is being made.
    let workFolder: String
    let media: MediaWork
    let progress: ProgressBoard
    let disk: DiskQueue
    let keepsLocation: Bool
    let thumbnailSizes: [Int]
    let clock: @Sendable () -> Timestamp

    enum Ending: Sendable {
        case publish(Manifest)
        case reject(Reason, Manifest)
        /// The bytes of this upload are not those that were declared, or not there (any more).
        case damaged(UploadRow)
        /// Another worker has the job, or the item is gone.
        case leaseLost
    }

    /// Hashing is quick beside decoding: its share of the progress shown.
    private static let verifyShare = 0.1

    /// What this attempt fetches and makes on this machine.
    private var folder: String { workFolder + "/" + folderName }
    private var folderName: String { "\(job.item.id).\(job.epoch)" }

    func run() async throws(Failure) -> Ending {
        let result: Result<Ending, Failure>
        do throws(Failure) { result = .success(try await attempt()) } catch { result = .failure(error) }
        // What cannot be removed now goes at the next start.
        _ = try? await disk.run { [folder] () throws(Failure) in try Files.removeTree(folder) }
        return try result.get()
    }

    private func attempt() async throws(Failure) -> Ending {
        guard let uploads = try await verified() else { return .leaseLost }
        if let damaged = uploads.damaged { return .damaged(damaged) }
        var item = job.item
        item.uploads = uploads.rows
        // Sidecars alone: kept, with nothing to show.
        guard let source = item.source, let key = source.blob else { return .publish(Manifest.empty) }
        let report = try await media.probe(try await store.path(key, in: folder), source.filename)
        var manifest = Manifest(report)
        if let reason = report.reason { return .reject(reason, manifest) }
        guard let facts = report.facts else {
            throw Failure(.mediaProtocol, "A probe accepted a file without saying what it is.", detail: "\(source.id)")
        }
        let derived = try await checked(item.derivedUploads, source: source, manifest: &manifest)
        let plan = ProcessingPlan(
            source: source, facts: facts, derived: derived, keepsLocation: keepsLocation, thumbnailSizes: thumbnailSizes
        )
        if plan.isAlias { manifest.renditions.append(.alias(of: source, blob: key, facts: facts)) }
        if let reason = try await make(plan, from: key, name: source.filename, manifest: &manifest) {
            return .reject(reason, manifest)
        }
        return .publish(manifest)
    }

    // MARK: What arrived

    private struct Verified {
        var rows: [UploadRow] = []
        var damaged: UploadRow?
    }

    /// Reads every attached upload from the store, unless that was done before: an object with a row never changes.
    private func verified() async throws(Failure) -> Verified? {
        var verified = Verified()
        let cancellation = CancellationFlag()
        for var upload in job.item.uploads {
            guard upload.state == .complete, let key = upload.blob else { continue }
            if upload.recomputed == nil {
                let size = max(1, upload.size ?? 1)
                let (board, item) = (progress, job.item.id)
                let sha256: SHA256Digest
                do throws(Failure) {
                    sha256 = try await cancellation.watch { () async throws(Failure) in
                        // A sidecar is only kept; the rest is looked at after this.
                        try await store.sha256(key, keptIn: upload.role == .sidecar ? nil : folder) {
                            done throws(Failure) in
                            try cancellation.check()
                            board.report(item, Self.verifyShare * Double(done) / Double(size))
                        }
                    }
                } catch {
                    // Bytes that the ledger names and the store has lost: only the client can bring them back.
                    guard error.code == .sourceMissing else { throw error }
                    verified.damaged = upload
                    return verified
                }
                guard sha256 == upload.sha256, try await store.size(key) == upload.size else {
                    verified.damaged = upload
                    return verified
                }
                let lost = try await ledger.lost(sha256, size: upload.size, owner: job.item.owner, from: store)
                guard
                    let kept = try await ledger.recordVerified(
                        upload.id, item: job.item.id, epoch: job.epoch, sha256: sha256, lost: lost, now: clock())
                else { return nil }
                upload.blob = kept
                upload.recomputed = sha256
            } else if try await store.size(key) != upload.size {
                verified.damaged = upload
                return verified
            }
            verified.rows.append(upload)
        }
        return verified
    }

    /// Derived files from the client are offered when they open as what they claim to be; otherwise they are made here.
    private func checked(_ uploads: [UploadRow], source: UploadRow, manifest: inout Manifest) async throws(Failure)
        -> [UploadRow]
    {
        var good: [UploadRow] = []
        for upload in uploads {
            guard let key = upload.blob, let sha256 = upload.recomputed else { continue }
            let report = try await media.probe(try await store.path(key, in: folder), upload.filename)
            guard report.reason == nil, let facts = report.facts, upload.role.fits(facts) else { continue }
            good.append(upload)
            manifest.renditions.append(
                RenditionRow(
                    rendition: Rendition(
                        role: upload.role, name: upload.name, contentType: facts.contentType,
                        sizeBytes: upload.size ?? 0,
                        sha256: sha256, width: facts.width, height: facts.height),
                    blob: key))
        }
        return good
    }

    // MARK: What is missing

    private func make(_ plan: ProcessingPlan, from key: BlobKey, name: String, manifest: inout Manifest)
        async throws(Failure) -> Reason?
    {
        guard !plan.transcode.isEmpty || !plan.thumbSizes.isEmpty else { return nil }
        _ = try await disk.run { [folderName, workFolder] () throws(Failure) in
            try Files.makeFolder(folderName, in: workFolder)
        }
        let path = try await store.path(key, in: folder)
        var files: [MadeFile] = []
        if !plan.transcode.isEmpty {
            let (board, item) = (progress, job.item.id)
            let made = try await media.transcode(path, name, plan.transcode, folder) { fraction in
                board.report(item, Self.verifyShare + (1 - Self.verifyShare) * fraction)
            }
            if let reason = made.reason { return reason }
            files = made.files
            manifest.previewColor = made.previewColor.flatMap(Self.color)
        }
        if !plan.thumbSizes.isEmpty {
            let (report, thumbnails) = try await media.thumb(path, name, plan.thumbSizes, folder)
            if let reason = report.reason { return reason }
            files += thumbnails
            manifest.previewColor = manifest.previewColor ?? report.previewColor.flatMap(Self.color)
        }
        let wanted = Set(plan.transcode + plan.thumbSizes.map(ThumbSettings.name(of:)))
        guard files.count == wanted.count, Set(files.map(\.output.name)) == wanted else {
            throw Failure(
                .outputInvalid, "The media worker did not make what was asked for.",
                detail: "\(files.map(\.output.name)) of \(wanted)")
        }
        for file in files { try await adopt(file, into: &manifest) }
        return nil
    }

    /// The worker's word is shown to browsers, so it is a colour or nothing.
    private static func color(_ word: String) -> String? {
        let digits = word.dropFirst()
        let isColor = word.hasPrefix("#") && digits.count == 6 && digits.allSatisfy { $0.isASCII && $0.isHexDigit }
        return isColor ? word : nil
    }

    private func adopt(_ file: MadeFile, into manifest: inout Manifest) async throws(Failure) {
        let output = file.output
        let key = BlobKey.made(for: job.item.id, epoch: job.epoch, name: output.name)
        // The worker's word is not taken: a hijacked decoder could say anything.
        let stored = try await store.adopt(file.path, as: key)
        guard stored == (output.bytes, output.sha256), try await store.size(key) == output.bytes else {
            throw Failure(
                .outputInvalid, "A file that was made does not have the hash that was reported.", detail: "\(key)")
        }
        manifest.blobs.append(BlobRow(key: key, owner: job.item.owner, size: stored.bytes, sha256: stored.sha256))
        manifest.renditions.append(
            RenditionRow(
                rendition: Rendition(
                    role: output.name.role, name: output.name.rawValue, contentType: output.name.contentType,
                    sizeBytes: stored.bytes,
                    sha256: stored.sha256, width: output.width, height: output.height),
                blob: key))
    }
}

/// Carries the cancellation of a task to blocking work on another thread.
final class CancellationFlag: Sendable {
    private let isCancelled = Atomic<Bool>(false)

    func check() throws(Failure) {
        if isCancelled.load(ordering: .relaxed) { throw Failure(.cancelled, "Stopped.") }
    }

    func watch<Value: Sendable>(_ body: () async throws(Failure) -> Value) async throws(Failure) -> Value {
        let result: Result<Value, Failure> = await withTaskCancellationHandler {
            do throws(Failure) { return .success(try await body()) } catch { return .failure(error) }
        } onCancel: {
            isCancelled.store(true, ordering: .relaxed)
        }
        return try result.get()
    }
}

extension Manifest {
    static let empty = Manifest(
        kind: nil, facts: nil, durationMS: nil, aspect: nil, previewColor: nil, renditions: [], blobs: [])

    init(_ report: ProbeReport) {
        self = .empty
        guard let facts = report.facts else { return }
        kind = facts.kind
        self.facts = try? JSON.text(report)
        durationMS = facts.duration.map { Int(($0 * 1000).rounded()) }
        if let width = facts.width, let height = facts.height, height > 0 { aspect = Double(width) / Double(height) }
    }
}

extension RenditionRow {
    /// The original's own bytes under the rendition's name.
    static func alias(of source: UploadRow, blob: BlobKey, facts: MediaFacts) -> RenditionRow {
        guard let sha256 = source.recomputed else {
            preconditionFailure("an original is verified before it is offered")
        }
        return RenditionRow(
            rendition: Rendition(
                role: .rendition, name: OutputName.rendition1080.rawValue, contentType: facts.contentType,
                sizeBytes: source.size ?? 0, sha256: sha256, width: facts.width, height: facts.height),
            blob: blob)
    }
}

extension OutputName {
    /// What it is and how it is served follow from what was asked for, not from what the worker says.
    fileprivate var role: FileRole {
        Int(rawValue) == nil ? videoRole : .thumbnail
    }
    fileprivate var contentType: String { role == .thumbnail ? "image/jpeg" : videoContentType }
}

extension FileRole {
    /// Whether a file that was found to be this can be what the client says it is.
    func fits(_ facts: MediaFacts) -> Bool {
        switch self {
        case .rendition: facts.kind == .video
        case .poster, .thumbnail, .storyboard: facts.kind == .photo
        case .original, .sidecar: true
        }
    }
}

extension MediaFacts {
    /// The type under which the bytes are served.
    var contentType: String {
        switch format {
        case .jpeg: "image/jpeg"
        case .png: "image/png"
        case .webp: "image/webp"
        case .gif: "image/gif"
        case .avif: "image/avif"
        // A conforming QuickTime file plays as MP4; browsers refuse it under its own name.
        case .isoMedia: "video/mp4"
        default: "application/octet-stream"
        }
    }
}
