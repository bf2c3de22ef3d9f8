internal import CProcesses
public import Files
import Glibc
public import Vocabulary

/// One end of a SOCK_SEQPACKET pair: whole messages, each with at most one descriptor in the same packet. (On a stream socket a
/// descriptor can arrive with the wrong message.)
public final class MessageChannel: Sendable {
    public struct Message: Sendable {
        public let bytes: [UInt8]
        public let file: OpenFile?
    }

    public enum Received: Sendable {
        case message(Message)
        /// Nothing is waiting; only where the caller did not want to wait.
        case nothing
        /// The other end is closed.
        case end
        /// More bytes or descriptors came than are allowed; the packet is gone, and its descriptors are closed.
        case oversize
    }

    let end: OpenFile
    public var descriptor: Int32 { end.descriptor }

    /// - Parameter descriptor: a socket, owned by the channel from here on.
    public init(owning descriptor: Int32) { end = OpenFile(owning: descriptor, path: "a message channel") }

    public static func pair() throws(Failure) -> (MessageChannel, MessageChannel) {
        var ends: (Int32, Int32) = (-1, -1)
        let result = withUnsafeMutableBytes(of: &ends) {
            rushes_socketpair($0.baseAddress?.assumingMemoryBound(to: Int32.self))
        }
        try checked("socketpair", result)
        return (MessageChannel(owning: ends.0), MessageChannel(owning: ends.1))
    }

    /// - Parameters:
    ///   - descriptor: travels in the same packet; the sender keeps its own.
    ///   - waiting: false to fail instead of waiting for a receiver that does not read.
    /// - Returns: false when the other end is closed or, without `waiting`, does not take it.
    public func send(_ bytes: [UInt8], descriptor: Int32? = nil, waiting: Bool) throws(Failure) -> Bool {
        let sent = bytes.withUnsafeBytes {
            rushes_send(end.descriptor, $0.baseAddress, $0.count, descriptor ?? -1, waiting ? 1 : 0)
        }
        if sent == -Int(EPIPE) || sent == -Int(ECONNRESET) || (!waiting && sent == -Int(EAGAIN)) { return false }
        try checked("sendmsg", sent)
        return true
    }

    /// - Parameters:
    ///   - bytesMax: a longer message is `oversize`.
    ///   - allowsDescriptor: where false, a message with a descriptor is `oversize`, and the kernel never opens it here.
    public func receive(bytesMax: Int, allowsDescriptor: Bool, waiting: Bool) throws(Failure) -> Received {
        var flags: Int32 = 0
        var descriptor: Int32 = -1
        var got = 0
        let bytes = [UInt8](unsafeUninitializedCapacity: bytesMax) { buffer, count in
            if allowsDescriptor {
                got = rushes_receive(end.descriptor, buffer.baseAddress, bytesMax, &descriptor, &flags, waiting ? 1 : 0)
            } else {
                got = rushes_receive(end.descriptor, buffer.baseAddress, bytesMax, nil, &flags, waiting ? 1 : 0)
            }
            count = max(0, got)
        }
        if got == -Int(EAGAIN), !waiting { return .nothing }
        if got == -Int(ECONNRESET) || got == 0 { return .end }
        try checked("recvmsg", got)
        let file = descriptor < 0 ? nil : OpenFile(owning: descriptor, path: "a received file")
        guard flags & Int32(MSG_TRUNC | MSG_CTRUNC) == 0 else { return .oversize }
        return .message(Message(bytes: bytes, file: file))
    }
}
