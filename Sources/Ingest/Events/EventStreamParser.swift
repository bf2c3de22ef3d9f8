import Vocabulary

/// Bytes of an event stream, however they are split, to events (WHATWG HTML, "Server-sent events", 9.2.6). Pure, and bounded whatever comes.
struct EventStreamParser: Sendable {
    struct Event: Sendable, Equatable {
        var name: String
        var data: String
    }
    /// What the server calls the last thing that it sent; named when the stream is opened again.
    private(set) var lastID: String?
    /// Milliseconds that the server asks to wait before the stream is opened again.
    private(set) var retry: Int?

    /// Bytes of one line.
    static let lineMax = 64 << 10
    /// Bytes of all the data lines of one event.
    static let dataMax = 256 << 10
    /// Bytes of an id. Ours are numbers; it goes back in a header.
    static let idMax = 128

    private var line: [UInt8] = []
    private var data: String?
    private var name = ""
    private var isAtStart = true
    private var lastWasCR = false

    init(lastID: String? = nil) { self.lastID = lastID }

    /// - Throws: `backend-error` for what is no event stream; nothing after it means anything.
    mutating func take(_ bytes: some Sequence<UInt8>) throws(Failure) -> [Event] {
        var events: [Event] = []
        for byte in bytes {
            // Of "\r\n" the first ends the line and the second is nothing.
            let isSecondHalf = lastWasCR && byte == UInt8(ascii: "\n")
            lastWasCR = byte == UInt8(ascii: "\r")
            if isSecondHalf { continue }
            if byte == UInt8(ascii: "\n") || byte == UInt8(ascii: "\r") {
                if let event = try endLine() { events.append(event) }
            } else {
                guard line.count < Self.lineMax else { throw Self.nonsense("a line of over \(Self.lineMax) bytes") }
                line.append(byte)
            }
        }
        return events
    }

    private mutating func endLine() throws(Failure) -> Event? {
        var line = self.line[...]
        if isAtStart, line.starts(with: [0xEF, 0xBB, 0xBF]) { line = line.dropFirst(3) }
        isAtStart = false
        defer { self.line.removeAll(keepingCapacity: true) }
        guard !line.isEmpty else { return dispatch() }
        let colon = line.firstIndex(of: UInt8(ascii: ":")) ?? line.endIndex
        var value = line[colon...].dropFirst()
        if value.first == UInt8(ascii: " ") { value = value.dropFirst() }
        try take(field: String(decoding: line[..<colon], as: UTF8.self), value)
        return nil
    }

    private mutating func take(field: String, _ value: ArraySlice<UInt8>) throws(Failure) {
        let text = String(decoding: value, as: UTF8.self)
        switch field {
        case "event": name = text
        case "data":
            guard (data?.utf8.count ?? 0) + text.utf8.count < Self.dataMax else {
                throw Self.nonsense("an event of over \(Self.dataMax) bytes")
            }
            data = data.map { $0 + "\n" + text } ?? text
        case "id":
            // It becomes a header: nothing that could end one.
            guard value.count <= Self.idMax, value.allSatisfy({ (0x20..<0x7F).contains($0) }) else { return }
            lastID = text
        case "retry":
            guard !text.isEmpty, text.utf8.allSatisfy((UInt8(ascii: "0")...UInt8(ascii: "9")).contains) else { return }
            retry = Int(text)
        default: break
        }
    }

    private mutating func dispatch() -> Event? {
        defer { (name, data) = ("", nil) }
        return data.map { Event(name: name.isEmpty ? "message" : name, data: $0) }
    }

    private static func nonsense(_ detail: String) -> Failure {
        Failure(.backendError, "The backend's event stream cannot be understood.", detail: detail)
    }
}
