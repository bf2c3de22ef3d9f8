/// The one thing of IPTC's records (Information Interchange Model, version 4.2) that other metadata may lack: when the picture was made.
enum IPTC {
    /// Of one block; there are some dozens.
    static let recordCountMax = 10_000

    /// - Parameter block: from the first record on.
    static func read(_ block: ByteView) -> PhotoMetadata {
        var found: [UInt8: String] = [:]
        var offset = 0
        for _ in 0..<recordCountMax {
            // A length above 15 bits is that of the length.
            guard block.byte(at: offset) == 0x1C, let record = block.byte(at: offset + 1),
                let number = block.byte(at: offset + 2), let length = block.u16(at: offset + 3).map(Int.init),
                length < 1 << 15, let body = block.slice(at: offset + 5, count: length)
            else { break }
            if record == 2, (55...63).contains(number), found[number] == nil {
                found[number] = String(decoding: body.bytes, as: UTF8.self)
            }
            offset += 5 + length
        }
        // Day and time of creation, then of digitizing.
        for (day, time) in [(UInt8(55), UInt8(60)), (62, 63)] {
            if let day = found[day], let time = found[time], let shot = shot(day, time) {
                return PhotoMetadata(shot: shot)
            }
        }
        return PhotoMetadata()
    }

    /// `20220110` and `151544-0400`.
    private static func shot(_ day: String, _ time: String) -> CaptureTime? {
        let (day, clock) = (Array(day), Array(time.prefix(6)))
        guard day.count == 8, clock.count == 6, (day + clock).allSatisfy({ $0.isASCII && $0.isNumber }) else {
            return nil
        }
        func number(_ digits: ArraySlice<Character>) -> Int { Int(String(digits)) ?? 0 }
        return CaptureTime(
            year: number(day[..<4]), month: number(day[4..<6]), day: number(day[6...]), hour: number(clock[..<2]),
            minute: number(clock[2..<4]), second: number(clock[4...]), offset: String(time.dropFirst(6)),
            fraction: nil, source: "IPTC:DateCreated")
    }
}
