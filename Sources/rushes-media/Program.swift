import Processes

/// The process that parses media. It is started by `MediaJobs` with one end of a message channel and nothing else.
@main struct Program {
    static func main() { leave(Worker.run()) }
}
