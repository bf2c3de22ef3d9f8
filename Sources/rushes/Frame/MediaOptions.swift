import Files
import Glibc
import MediaJobs
import Vocabulary

// What the verbs that decode media share.
extension Arguments {
    /// Settings of the media processes, with the limits of the command line.
    func mediaSettings() throws(Failure) -> MediaSettings {
        var limits = MediaLimits()
        if let bytes = try bytes(.memory, in: (64 << 20)...(1 << 40)) { limits.memoryBytes = bytes }
        let settings = try MediaSettings.standard(limits: limits)
        if !settings.isWalledIn {
            Output.say(
                "WARNING: \(MediaSettings.sandboxVariable)=off: media is read without walls; a hostile file may do all "
                    + "that you may do on this machine.")
        }
        return settings
    }
}

/// Where a verb writes: checked before any work is done.
enum OutputPath {
    /// - Throws: `usage` when the path is the source itself, which would be lost, or holds what is not UTF-8, which was repaired and would name
    ///   another file; else what is wrong with the place.
    static func check(_ path: RawPath, source: RawPath) throws(Failure) {
        guard RawPath(path.description) == path else {
            throw Failure(.usage, "“\(path)” has bytes that are not UTF-8: give another name.")
        }
        try check(path.description, source: source)
    }

    /// - Throws: `usage` when the path is the source itself, which would be lost; else what is wrong with the place.
    static func check(_ path: String, source: RawPath) throws(Failure) {
        let folder = Files.folder(of: path)
        guard try Files.facts(folder)?.kind == .folder else {
            throw Failure(.sourceMissing, "The folder “\(folder)” does not exist: make it first.", detail: path)
        }
        // Of a run that was killed. What cannot be removed is in nobody's way.
        try? Draft.removeAbandoned(for: path)
        guard let old = try Files.facts(path) else { return }
        guard old.kind == .regular else {
            throw Failure(.usage, "“\(path)” is not a file and is not replaced: give another name.")
        }
        if let given = try Files.facts(source), given.device == old.device, given.inode == old.inode {
            throw Failure(.usage, "“\(path)” is the source itself: give another name.")
        }
    }
    /// What a name ends in says what is wanted. One without an ending leaves that open.
    /// - Throws: `usage` when that is not what is made.
    static func check(_ path: String, endsIn endings: [String]) throws(Failure) {
        let name = path.split(separator: "/").last ?? ""
        guard let dot = name.lastIndex(of: "."), dot != name.startIndex else { return }
        guard !endings.contains(name[name.index(after: dot)...].lowercased()) else { return }
        let list = endings.map { "." + $0 }.joined(separator: ", ")
        throw Failure(.usage, "“\(path)” cannot be made: give a name that ends in \(list).")
    }

    /// What Rushes writes is for this user only; what a person asked for by name has the permissions that their other files have.
    /// Losing that to a power cut loses no byte.
    static func share(_ path: String, mode: mode_t = 0o666) {
        let mask = umask(0)
        umask(mask)
        chmod(path, mode & ~mask)
    }
}
