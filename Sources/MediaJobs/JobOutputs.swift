import Files
import Processes
public import Vocabulary

/// An output that is durable under its name.
public struct SealedFile: Sendable, Equatable {
    public var output: SealedOutput
    public var path: String
    public init(output: SealedOutput, path: String) {
        self.output = output
        self.path = path
    }
}

/// The parent's side of a job's outputs: opened here as drafts, checked when sealed, and made durable under their names all together when the
/// job comes to its result. So an older file under such a name stays until there is something to replace it, and a job that fails leaves
/// nothing. Confined to the thread that runs the job.
final class JobOutputs {
    /// Where the outputs go, by name.
    private let paths: [OutputName: String]
    private var drafts: [OutputName: Draft] = [:]
    private var sealed: [SealedOutput] = []

    init(paths: [OutputName: String]) { self.paths = paths }

    /// - Returns: an open of its own for the worker: with that one closed, the draft's is the only one.
    func open(_ name: OutputName) throws(Failure) -> OpenFile {
        guard let path = paths[name] else {
            throw Failure(.internalError, "No place was given for an output.", detail: "\(name)")
        }
        let draft = try begin(path)
        let opened = try draft.openAgain()
        drafts[name] = draft
        return opened
    }

    private func begin(_ path: String) throws(Failure) -> Draft {
        do throws(Failure) { return try Draft.begin(for: path) } catch {
            guard error.code == .sourceMissing || error.code == .readOnly else { throw error }
            // The draft's name means nothing to anybody.
            throw Failure(
                .readOnly,
                "Nothing can be written in “\(Files.folder(of: path))”: choose another folder or change its permissions.",
                detail: error.detail)
        }
    }

    enum Seal { case stored, broken(String) }

    /// Checks what the worker says. The hash is computed here again: the worker parses bytes from outside and
    /// may have been taken over by them, and it costs little (0.6 s a GiB, from the page cache).
    /// - Returns: `broken` where the worker's word does not hold.
    func store(_ output: SealedOutput) throws(Failure) -> Seal {
        guard let draft = drafts[output.name] else { return .broken("\(output.name) is not open") }
        // A descriptor or mapping that the worker kept could change the file after it was hashed.
        if draft.file.isOnlyOpener() == false { return .broken("\(output.name) is still open in the worker") }
        let size = try draft.file.facts().size
        guard size == output.bytes else { return .broken("\(output.name) has \(size) bytes, not \(output.bytes)") }
        guard try Files.sha256(of: draft.file) == output.sha256 else {
            return .broken("\(output.name) has another SHA-256")
        }
        sealed.append(output)
        return .stored
    }

    /// Gives the sealed outputs their names, durable all together.
    func commit() throws(Failure) -> [SealedFile] {
        var files: [SealedFile] = []
        var named: [Draft] = []
        for output in sealed {
            guard let draft = drafts.removeValue(forKey: output.name) else { continue }
            named.append(draft)
            files.append(SealedFile(output: output, path: draft.path))
        }
        var added: [Draft] = []
        for draft in named where try Files.facts(draft.path) == nil { added.append(draft) }
        do throws(Failure) { try Draft.commit(named, replacing: true) } catch {
            // What has taken an older file's place stays: there would be nothing under that name.
            for draft in added where !draft.isPending { try? Files.remove(draft.path) }
            throw error
        }
        discard()
        return files
    }

    /// Removes what has no name yet.
    func discard() {
        for draft in drafts.values { draft.discard() }
        drafts = [:]
        sealed = []
    }
}
