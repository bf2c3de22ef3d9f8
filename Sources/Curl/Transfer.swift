internal import CCurl
import Glibc
import Synchronization
import Vocabulary

/// One exchange on its way through libcurl.
///
/// Unchecked: from the moment it is queued until its continuation is resumed only the connection thread touches it, but for `isCancelled`.
final class Transfer: @unchecked Sendable {
    let request: HTTPRequest
    let isCancelled = Atomic<Bool>(false)
    var continuation: CheckedContinuation<Result<HTTPResponse, Failure>, Never>?
    /// Set by a callback that made libcurl stop; says more than libcurl's own code.
    private(set) var fault: Failure?
    private(set) var easy: UnsafeMutableRawPointer?
    private var file: Int32 = -1
    private var position = 0
    private var reported = 0
    private var response = HTTPResponse(status: 0)
    private var headerList: UnsafeMutablePointer<curl_slist>?
    private var errorText = UnsafeMutablePointer<CChar>.allocate(capacity: Int(CURL_ERROR_SIZE))

    /// Where the answer is taken piece by piece.
    private let receive: (@Sendable (HTTPResponse, [UInt8]) -> Bool)?
    private var hungUp = false
    /// Waits for its turn to send.
    private(set) var isPaused = false
    private var lastByteAt = ContinuousClock.now

    init(_ request: HTTPRequest, receive: (@Sendable (HTTPResponse, [UInt8]) -> Bool)? = nil) {
        self.request = request
        self.receive = receive
        errorText.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
    }

    deinit {
        if let easy { curl_easy_cleanup(easy) }
        if file >= 0 { close(file) }
        curl_slist_free_all(headerList)
        errorText.deallocate()
    }

    // MARK: Setting up

    /// Makes the easy handle; it holds the transfer without owning it.
    func prepare() throws(Failure) -> UnsafeMutableRawPointer {
        if case .file(let path, _, _) = request.body {
            file = open(path, O_RDONLY | O_CLOEXEC)
            guard file >= 0 else {
                throw Failure(
                    .stagingMissing, "A file that was to be sent is no longer there: pick it again.",
                    detail: "open \(path): \(String(cString: strerror(errno)))")
            }
        }
        guard let easy = curl_easy_init() else {
            throw Failure(.internalError, "The network library could not be started.", detail: "curl_easy_init")
        }
        self.easy = easy
        try setBasics(easy)
        setBody(easy)
        setCallbacks(easy)
        return easy
    }

    private func setBasics(_ easy: UnsafeMutableRawPointer) throws(Failure) {
        guard rushes_setopt_string(easy, CURLOPT_URL, request.url) == CURLE_OK,
            rushes_setopt_string(easy, CURLOPT_PROTOCOLS_STR, "http,https") == CURLE_OK
        else { throw Failure(.badRequest, "The backend's address is not a URL.", detail: request.url) }
        if let socket = request.socketPath {
            // sun_path holds 108 bytes with its closing zero (unix(7)).
            guard socket.utf8.count <= 107 else {
                throw Failure(
                    .socketPathTooLong, "The path of the backend's socket is too long: choose a shorter RUSHES_HOME.",
                    detail: socket)
            }
            _ = rushes_setopt_string(easy, CURLOPT_UNIX_SOCKET_PATH, socket)
        }
        _ = rushes_setopt_pointer(easy, CURLOPT_ERRORBUFFER, errorText)
        _ = rushes_setopt_long(easy, CURLOPT_NOSIGNAL, 1)
        _ = rushes_setopt_long(easy, CURLOPT_FOLLOWLOCATION, 0)
        _ = rushes_setopt_long(easy, CURLOPT_SSL_VERIFYPEER, 1)
        _ = rushes_setopt_long(easy, CURLOPT_SSL_VERIFYHOST, 2)
        // A house's own authority, named the way that OpenSSL's programs and Go's know.
        if let authorities = Self.authorities { _ = rushes_setopt_string(easy, CURLOPT_CAINFO, authorities) }
        _ = rushes_setopt_long(easy, CURLOPT_TCP_KEEPALIVE, 1)
        // Bulk over one HTTP/2 connection took 1.7 times as long as over several of HTTP/1.1 (measured).
        _ = rushes_setopt_long(easy, CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_1_1))
        _ = rushes_setopt_long(easy, CURLOPT_CONNECTTIMEOUT, request.limits.connectSeconds)
        if receive == nil {
            _ = rushes_setopt_long(easy, CURLOPT_LOW_SPEED_LIMIT, request.limits.slowBytesPerSecond)
            _ = rushes_setopt_long(easy, CURLOPT_LOW_SPEED_TIME, request.limits.slowSeconds)
        }
        lastByteAt = .now
        // Without this libcurl waits a second for "100 Continue" from servers that do not send it.
        headerList = curl_slist_append(headerList, "Expect:")
        for field in request.headers.fields {
            guard !(field.name + field.value).unicodeScalars.contains(where: { $0.value < 0x20 || $0.value == 0x7F })
            else { throw Failure(.badRequest, "A header holds a control character.", detail: field.name) }
            headerList = curl_slist_append(headerList, "\(field.name): \(field.value)")
        }
        _ = rushes_setopt_pointer(easy, CURLOPT_HTTPHEADER, headerList)
    }

    private static let authorities = getenv("SSL_CERT_FILE").map { String(cString: $0) }.flatMap {
        $0.isEmpty ? nil : $0
    }

    private func setBody(_ easy: UnsafeMutableRawPointer) {
        switch (request.method, request.body) {
        case (.get, _): _ = rushes_setopt_long(easy, CURLOPT_HTTPGET, 1)
        case (.head, _): _ = rushes_setopt_long(easy, CURLOPT_NOBODY, 1)
        case (_, .none) where request.method == .delete:
            _ = rushes_setopt_string(easy, CURLOPT_CUSTOMREQUEST, request.method.rawValue)
        case (.put, _), (.post, _), (.delete, _):
            _ = rushes_setopt_long(easy, CURLOPT_UPLOAD, 1)
            _ = rushes_setopt_string(easy, CURLOPT_CUSTOMREQUEST, request.method.rawValue)
            _ = rushes_setopt_offset(easy, CURLOPT_INFILESIZE_LARGE, curl_off_t(request.body.length))
            if case .file = request.body { _ = rushes_setopt_long(easy, CURLOPT_UPLOAD_BUFFERSIZE, 512 << 10) }
        }
    }

    private func setCallbacks(_ easy: UnsafeMutableRawPointer) {
        let this = Unmanaged.passUnretained(self).toOpaque()
        _ = rushes_setopt_pointer(easy, CURLOPT_PRIVATE, this)
        _ = rushes_setopt_transfer(easy, CURLOPT_READFUNCTION, onRead)
        _ = rushes_setopt_pointer(easy, CURLOPT_READDATA, this)
        _ = rushes_setopt_seek(easy, onSeek)
        _ = rushes_setopt_pointer(easy, CURLOPT_SEEKDATA, this)
        _ = rushes_setopt_transfer(easy, CURLOPT_WRITEFUNCTION, onBody)
        _ = rushes_setopt_pointer(easy, CURLOPT_WRITEDATA, this)
        _ = rushes_setopt_transfer(easy, CURLOPT_HEADERFUNCTION, onHeader)
        _ = rushes_setopt_pointer(easy, CURLOPT_HEADERDATA, this)
        _ = rushes_setopt_progress(easy, onProgress)
        _ = rushes_setopt_pointer(easy, CURLOPT_XFERINFODATA, this)
        _ = rushes_setopt_long(easy, CURLOPT_NOPROGRESS, 0)
    }

    // MARK: While it runs (called from libcurl)

    fileprivate func read(into buffer: UnsafeMutableRawPointer, count: Int) -> Int {
        if isCancelled.load(ordering: .relaxed) { return Int(CURL_READFUNC_ABORT) }
        var wanted = min(count, request.body.length - position)
        guard wanted > 0 else { return 0 }
        if let throttle = request.throttle {
            wanted = throttle.take(wanted)
            guard wanted > 0 else {
                isPaused = true
                return Int(CURL_READFUNC_PAUSE)
            }
        }
        switch request.body {
        case .none: return 0
        case .bytes(let bytes):
            bytes.withUnsafeBytes { bytes in
                guard let base = bytes.baseAddress else { return }
                buffer.copyMemory(from: base + position, byteCount: wanted)
            }
            position += wanted
            return wanted
        case .file(let path, let offset, _):
            let got = pread(file, buffer, wanted, off_t(offset + position))
            guard got > 0 else {
                fault = Failure(
                    .stagingDamaged, "A file that was being sent has become shorter or unreadable: pick it again.",
                    detail:
                        "pread \(path) at \(offset + position): \(got < 0 ? String(cString: strerror(errno)) : "end")")
                return Int(CURL_READFUNC_ABORT)
            }
            position += got
            return got
        }
    }

    /// Asks the throttle again; it may pause at once.
    func goOn() {
        isPaused = false
        if let easy { curl_easy_pause(easy, CURLPAUSE_CONT) }
    }

    /// libcurl sends a body again from its start when a kept connection turns out to be dead.
    fileprivate func seek(to offset: Int, origin: Int32) -> Int32 {
        guard origin == SEEK_SET, (0...request.body.length).contains(offset) else { return Int32(CURL_SEEKFUNC_FAIL) }
        position = offset
        return Int32(CURL_SEEKFUNC_OK)
    }

    fileprivate func receive(_ bytes: UnsafeRawBufferPointer) -> Int {
        lastByteAt = .now
        if let receive, status == 200 {
            response.status = 200
            hungUp = !receive(response, Array(bytes))
            return hungUp ? 0 : bytes.count
        }
        guard response.body.count + bytes.count <= request.limits.responseBytesMax else {
            fault = Failure(
                .backendError, "The backend's answer is longer than it may be.",
                detail: "over \(request.limits.responseBytesMax) bytes from \(request.method.rawValue)")
            return 0
        }
        response.body.append(contentsOf: bytes)
        return bytes.count
    }

    fileprivate func receiveHeader(_ line: UnsafeRawBufferPointer) -> Int {
        let text = String(decoding: line, as: UTF8.self)
        if text.hasPrefix("HTTP/") {
            // A new block: after "100 Continue", or of the repeated request.
            response.headers.removeAll()
            response.body.removeAll()
        } else if let colon = text.firstIndex(of: ":") {
            guard response.headers.count < request.limits.headerCountMax else { return 0 }
            // "\r\n" is one Character.
            let value = text[text.index(after: colon)...].drop { $0 == " " || $0 == "\t" }.prefix { !$0.isNewline }
            response.headers[String(text[..<colon])] = String(value)
        }
        return line.count
    }

    fileprivate func progressed(sent: Int) -> Int32 {
        if let progress = request.progress, sent - reported >= HTTPLimits.progressStep || sent < reported {
            reported = sent
            progress(sent)
        }
        return isCancelled.load(ordering: .relaxed) ? 1 : 0
    }

    private var status: Int {
        var status = 0
        if let easy { _ = rushes_getinfo_long(easy, CURLINFO_RESPONSE_CODE, &status) }
        return status
    }

    /// Of an answer that comes piece by piece: nothing has come for too long.
    func checkIdle() -> Bool {
        guard receive != nil, ContinuousClock.now - lastByteAt > .seconds(request.limits.idleSeconds) else {
            return false
        }
        fault = Failure(
            .backendUnreachable, "The backend has stopped answering.",
            detail: "no byte for \(request.limits.idleSeconds) s")
        return true
    }

    // MARK: The end

    /// - Parameter code: libcurl's verdict.
    func outcome(_ code: CURLcode) -> Result<HTTPResponse, Failure> {
        if isCancelled.load(ordering: .relaxed) { return .failure(Failure(.cancelled, "Stopped.")) }
        if hungUp { return .success(response) }
        if let fault { return .failure(fault) }
        if code == CURLE_OK {
            response.status = status
            return .success(response)
        }
        let words = String(cString: errorText)
        return .failure(CurlFault.failure(code, words.isEmpty ? String(cString: curl_easy_strerror(code)) : words))
    }

    func end(_ result: Result<HTTPResponse, Failure>) {
        if let easy { curl_easy_cleanup(easy) }
        easy = nil
        continuation?.resume(returning: result)
        continuation = nil
    }
}

enum CurlFault {
    static func failure(_ code: CURLcode, _ words: String) -> Failure {
        let detail = "curl \(code.rawValue): \(words)"
        switch code {
        case CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CACERT_BADFILE:
            return Failure(
                .backendUnreachable, "The backend's certificate is not valid: check the server's address.",
                remedy: .askUser, detail: detail)
        case CURLE_UNSUPPORTED_PROTOCOL, CURLE_URL_MALFORMAT:
            return Failure(.badRequest, "The backend's address is not a URL of http or https.", detail: detail)
        case CURLE_OUT_OF_MEMORY:
            return Failure(.busy, "There is not enough memory for another transfer.", detail: detail)
        default:
            return Failure(
                .backendUnreachable, "The backend cannot be reached: check the network and the server.", detail: detail)
        }
    }
}

// C calls these; they must not be isolated to any actor.
private func transfer(_ pointer: UnsafeMutableRawPointer?) -> Transfer {
    guard let pointer else { preconditionFailure("libcurl calls back with the pointer that it was given") }
    return Unmanaged<Transfer>.fromOpaque(pointer).takeUnretainedValue()
}
private let onRead: rushes_transfer_fn = { buffer, size, count, pointer in
    guard let buffer else { return 0 }
    return transfer(pointer).read(into: buffer, count: size * count)
}
private let onSeek: rushes_seek_fn = { pointer, offset, origin in
    transfer(pointer).seek(to: Int(offset), origin: origin)
}
private let onBody: rushes_transfer_fn = { buffer, size, count, pointer in
    transfer(pointer).receive(UnsafeRawBufferPointer(start: buffer, count: size * count))
}
private let onHeader: rushes_transfer_fn = { buffer, size, count, pointer in
    transfer(pointer).receiveHeader(UnsafeRawBufferPointer(start: buffer, count: size * count))
}
private let onProgress: rushes_progress_fn = { pointer, _, _, _, sent in transfer(pointer).progressed(sent: Int(sent)) }
