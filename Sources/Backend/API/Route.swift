import Vocabulary

/// What a request asks for. Pure.
enum Route: Sendable, Hashable {
    case openUpload
    case partURLs(UploadID)
    case parts(UploadID)
    case complete(UploadID)
    case reopen(UploadID)
    case abort(UploadID)
    case uploadOffset(UploadID)
    case tusOptions, tusCreate
    case tusOffset(UploadID)
    case tusPatch(UploadID)
    case tusEnd(UploadID)
    case putPart(token: String)
    case attach(ItemID)
    case item(ItemID)
    case removeItem(ItemID)
    case items
    case playback(ItemID)
    case media(BlobKey)
    case events
    case storageEvent
    case health, readiness, metrics

    enum Refusal: Error, Hashable {
        case unknown
        /// With the methods that would do.
        case method(String)
    }

    static func parse(method: String, path: String) -> Result<Route, Refusal> {
        let pieces = path.split(separator: "/", omittingEmptySubsequences: false).map(String.init)
        guard pieces.first == "" else { return .failure(.unknown) }
        let words = Array(pieces.dropFirst())
        let routes = routes(for: words)
        guard !routes.isEmpty else { return .failure(.unknown) }
        if let route = routes.first(where: { $0.method == method }) { return .success(route.route) }
        return .failure(.method(routes.map(\.method).joined(separator: ", ")))
    }

    private static func routes(for words: [String]) -> [(method: String, route: Route)] {
        switch words.count {
        case 1:
            switch words[0] {
            case "healthz": return [("GET", .health)]
            case "readyz": return [("GET", .readiness)]
            case "metrics": return [("GET", .metrics)]
            default: return []
            }
        case 2 where words[0] == "v1":
            switch words[1] {
            case "uploads": return [("POST", .openUpload)]
            case "tus": return [("POST", .tusCreate), ("OPTIONS", .tusOptions)]
            case "items": return [("GET", .items)]
            case "events": return [("GET", .events)]
            case "storage-events": return [("POST", .storageEvent)]
            default: return []
            }
        case 3 where words[0] == "v1": return single(words[1], words[2])
        case 4 where words[0] == "v1": return nested(words[1], words[2], words[3])
        default: return []
        }
    }

    private static func single(_ collection: String, _ name: String) -> [(method: String, route: Route)] {
        switch collection {
        case "uploads":
            guard let id = UploadID(rawValue: name) else { return [] }
            return [("DELETE", .abort(id)), ("HEAD", .uploadOffset(id))]
        case "tus":
            // Clients write the address with a slash at its end too.
            if name.isEmpty { return [("POST", .tusCreate), ("OPTIONS", .tusOptions)] }
            guard let id = UploadID(rawValue: name) else { return [] }
            return [
                ("HEAD", .tusOffset(id)), ("PATCH", .tusPatch(id)), ("DELETE", .tusEnd(id)), ("OPTIONS", .tusOptions),
            ]
        case "items":
            guard let id = ItemID(rawValue: name) else { return [] }
            return [("PUT", .attach(id)), ("GET", .item(id)), ("DELETE", .removeItem(id))]
        case "parts": return name.isEmpty ? [] : [("PUT", .putPart(token: name))]
        case "media":
            guard let key = BlobKey(rawValue: name) else { return [] }
            return [("GET", .media(key)), ("HEAD", .media(key))]
        default: return []
        }
    }

    private static func nested(_ collection: String, _ name: String, _ verb: String) -> [(method: String, route: Route)]
    {
        if collection == "items", verb == "playback", let id = ItemID(rawValue: name) {
            return [("GET", .playback(id))]
        }
        guard collection == "uploads", let id = UploadID(rawValue: name) else { return [] }
        switch verb {
        case "part-urls": return [("POST", .partURLs(id))]
        case "parts": return [("GET", .parts(id))]
        case "complete": return [("POST", .complete(id))]
        case "reopen": return [("POST", .reopen(id))]
        default: return []
        }
    }

    var isTus: Bool {
        switch self {
        case .tusOptions, .tusCreate, .tusOffset, .tusPatch, .tusEnd: true
        default: false
        }
    }

    /// Of a body that is taken into memory.
    var bodyBytesMax: Int {
        if case .complete = self { APIBounds.completeBytesMax } else { APIBounds.bodyBytesMax }
    }

    /// Health is for who watches over the server, parts and media for who holds a signed URL.
    var needsOwner: Bool {
        switch self {
        case .health, .readiness, .putPart, .media: false
        default: true
        }
    }
}
