import Files
import Glibc
import Vocabulary

/// The files behind paths, folder by folder in the order of their names; names that begin with a dot are left out, links to folders are not
/// followed.
struct FolderWalk: Sequence, IteratorProtocol {
    enum Found: Sendable {
        case file(String)
        case fault(String, Failure)
        var path: String {
            switch self {
            case .file(let path), .fault(let path, _): path
            }
        }
    }

    /// Deeper folders are a fault: a mount may show its own parent.
    static let depthMax = 64

    /// To be visited, the next one last.
    private var pending: [(path: String, depth: Int)]

    init(_ paths: [String]) { pending = paths.reversed().map { ($0, 0) } }

    mutating func next() -> Found? {
        while let (path, depth) = pending.popLast() {
            do throws(Failure) {
                guard let facts = try Files.facts(path) else {
                    throw Failure(.sourceMissing, "“\(path)” does not exist.", detail: path)
                }
                guard facts.kind == .folder else { return .file(path) }
                if depth > 0, Self.isLink(path) { continue }
                guard depth <= Self.depthMax else {
                    throw Failure(.sourceUnreadable, "The folders are nested too deep.", detail: path)
                }
                let names = try Files.names(in: path).filter { !$0.hasPrefix(".") }
                let prefix = path.hasSuffix("/") ? path : path + "/"
                pending.append(contentsOf: names.reversed().map { (prefix + $0, depth + 1) })
            } catch { return .fault(path, error) }
        }
        return nil
    }

    private static func isLink(_ path: String) -> Bool {
        var status = stat()
        return lstat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFLNK
    }
}
