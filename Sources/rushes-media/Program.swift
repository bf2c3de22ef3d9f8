import MediaWorker

/// The process that parses media. It is started by `MediaJobs` with one end of a message channel and nothing else.
@main struct Program {
    static func main() { Worker.run(Worker.decode) }
}
