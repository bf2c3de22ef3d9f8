import Files

/// When a file in an inbox is finished: its size and time have been the same for so many looks in a row. Counted in looks, not by a clock
/// that somebody may set. Pure.
struct SettlePolicy: Sendable {
    /// Looks in a row that must see the same, the first one included.
    let quietLooks: Int

    private struct Sight { var file: WalkedFile, looks: Int }
    private var sights: [RawPath: Sight] = [:]

    init(quietLooks: Int) { self.quietLooks = max(2, quietLooks) }

    /// - Parameter files: all that are there now; what is not among them is forgotten.
    mutating func look(at files: [WalkedFile]) {
        var now: [RawPath: Sight] = [:]
        for file in files {
            let before = sights[file.path]
            let looks = before?.file == file ? (before?.looks ?? 0) + 1 : 1
            now[file.path] = Sight(file: file, looks: min(looks, quietLooks))
        }
        sights = now
    }

    /// The folder was away: what comes back has to be quiet anew.
    mutating func forget() { sights = [:] }

    func isQuiet(_ file: WalkedFile) -> Bool {
        guard let sight = sights[file.path], sight.file == file else { return false }
        return sight.looks >= quietLooks
    }
}
