/// The command line. What it can do is in `Verbs`, one file each.
@main struct Program {
    static func main() async { await Frame.run() }
}
