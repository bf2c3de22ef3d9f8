internal import CMicrohttpd
import Glibc
import Vocabulary

/// Hands a response to the library.
func send(
    _ response: HTTPResponse, to connection: OpaquePointer, for request: HTTPRequest, _ core: ServerCore
) -> MHD_Result {
    switch response.body {
    case .bytes(let bytes): sendBytes(bytes, response, connection)
    case .file(let file): sendFile(file, response, connection, request)
    case .stream(let stream):
        queue(
            makeStreamResponse(stream, core, connection), status: response.status, headers: response.headers, connection
        )
    }
}

private func sendBytes(_ bytes: [UInt8], _ response: HTTPResponse, _ connection: OpaquePointer) -> MHD_Result {
    let made = bytes.withUnsafeBytes {
        MHD_create_response_from_buffer(
            $0.count, UnsafeMutableRawPointer(mutating: $0.baseAddress), .RESPMEM_MUST_COPY)
    }
    return queue(made, status: response.status, headers: response.headers, connection)
}

private func sendFile(
    _ file: FileBody, _ response: HTTPResponse, _ connection: OpaquePointer, _ request: HTTPRequest
) -> MHD_Result {
    let descriptor = open(file.path, O_RDONLY | O_CLOEXEC)
    var status = stat()
    guard descriptor >= 0, fstat(descriptor, &status) == 0 else {
        if descriptor >= 0 { close(descriptor) }
        let problem = HTTPResponse.problem(Failure(.gone, "These bytes are not there any more."), status: 410)
        if case .bytes(let bytes) = problem.body { return sendBytes(bytes, problem, connection) }
        return .NO
    }
    let size = Int(status.st_size)
    var headers = response.headers
    headers += [("Accept-Ranges", "bytes"), ("ETag", file.etag)]
    switch FileAnswer(headers: request.headers, etag: file.etag, size: size) {
    case .notModified:
        close(descriptor)
        return sendBytes([], HTTPResponse(status: 304, headers: headers), connection)
    case .rangeNotSatisfiable:
        close(descriptor)
        headers.append(("Content-Range", "bytes */\(size)"))
        return sendBytes([], HTTPResponse(status: 416, headers: headers), connection)
    case .whole:
        headers.append(("Content-Type", file.contentType))
        // The library owns the descriptor from here on.
        let made = MHD_create_response_from_fd_at_offset64(UInt64(size), descriptor, 0)
        if made == nil { close(descriptor) }
        return queue(made, status: response.status, headers: headers, connection)
    case .part(let range):
        headers += [
            ("Content-Type", file.contentType),
            ("Content-Range", "bytes \(range.lowerBound)-\(range.upperBound)/\(size)"),
        ]
        let made = MHD_create_response_from_fd_at_offset64(UInt64(range.count), descriptor, UInt64(range.lowerBound))
        if made == nil { close(descriptor) }
        return queue(made, status: 206, headers: headers, connection)
    }
}

/// A nil response (no memory) ends the connection.
private func queue(
    _ made: OpaquePointer?, status: Int, headers: [(name: String, value: String)], _ connection: OpaquePointer
) -> MHD_Result {
    guard let made else { return .NO }
    defer { MHD_destroy_response(made) }
    for header in headers { MHD_add_response_header(made, header.name, header.value) }
    return MHD_queue_response(connection, UInt32(status), made)
}
