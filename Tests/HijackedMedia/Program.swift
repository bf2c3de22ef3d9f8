import MediaWorker

/// The worker as it ships, with a decoder that a file can take over.
@main struct Program {
    static func main() { Worker.run(Hijack.decode) }
}
