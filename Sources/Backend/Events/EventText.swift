import Vocabulary

/// Events as the wire wants them (WHATWG HTML, "Server-sent events"). JSON holds no line break, so one `data` line is enough.
enum EventText {
    /// - Parameters:
    ///   - retryMilliseconds: after which a client comes back when the stream breaks off.
    ///   - position: where the stream begins; the client names it when it comes back, even if nothing has happened meanwhile.
    static func beginning(retryMilliseconds: Int, position: Int) -> String {
        "retry: \(retryMilliseconds)\nid: \(position)\n\n"
    }

    static func item(_ event: EventRow) throws(Failure) -> String {
        let data = ItemEvent(
            itemID: event.item, shoot: event.shoot, generation: event.generation, state: event.state,
            reason: event.reason)
        return "id: \(event.number)\nevent: \(ItemEvent.name)\ndata: \(try JSON.text(data))\n\n"
    }

    static func reset(position: Int) -> String { "id: \(position)\nevent: \(ItemEvent.resetName)\ndata: {}\n\n" }

    /// - Parameter position: with it the client's place moves on past events that were not meant for it.
    static func heartbeat(position: Int) -> String { ": heartbeat\nid: \(position)\n\n" }
}
