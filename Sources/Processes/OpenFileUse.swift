internal import CProcesses
public import Files
import Glibc

extension OpenFile {
    /// Tries at `isOnlyOpener`, and the wait between them.
    private static let tryCountMax = 100
    private static let tryMicroseconds: UInt32 = 5000

    /// Whether only this owner has the file open: nobody can change it behind our back any more, neither through a descriptor nor through a
    /// mapping. Nil where the file system cannot tell. The descriptor must be of an open of our own, not one that was handed to somebody.
    ///
    /// Waits for up to half a second, since a child that is just being started holds copies of all our descriptors until its exec.
    public func isOnlyOpener() -> Bool? {
        for _ in 0..<Self.tryCountMax {
            let answer = rushes_is_only_opener(descriptor)
            if answer != 0 { return answer < 0 ? nil : true }
            usleep(Self.tryMicroseconds)
        }
        return false
    }
}
