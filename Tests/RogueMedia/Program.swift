import Processes

/// A worker that misbehaves as the job's file name says.
@main struct Program {
    static func main() {
        guard (try? Confinement.tieToParent()) != nil else { return }
        Rogue(MessageChannel(owning: ChildProgram.channelDescriptor)).serve()
    }
}
