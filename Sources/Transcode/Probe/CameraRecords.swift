/// What camcorders write into the coded video itself, where their containers have no place for it.
enum CameraRecords {
    struct Record: Equatable {
        var takenAt: String?
        var camera: String?
    }

    /// AVCHD: "MDPM" in an H.264 user data SEI message, entries of one tag and four bytes. The meanings are ExifTool's (H264.pm).
    /// - Parameter packet: the first coded picture.
    static func avchd(_ packet: [UInt8]) -> Record? {
        let uuid: [UInt8] = [
            0x17, 0xEE, 0x8C, 0x60, 0xF8, 0x4D, 0x11, 0xD9, 0x8C, 0xD6, 0x08, 0x00, 0x20, 0x0C, 0x9A, 0x66,
        ]
        let lengthMax = 2048
        guard let start = packet.firstIndex(of: uuid + Array("MDPM".utf8)) else { return nil }
        let bytes = unescaped(packet[(start + 20)...].prefix(lengthMax))
        guard let count = bytes.first, bytes.count >= 1 + 5 * Int(count) else { return nil }
        var entries: [UInt8: [UInt8]] = [:]
        for number in 0..<Int(count) {
            entries[bytes[1 + 5 * number]] = Array(bytes[(2 + 5 * number)..<(6 + 5 * number)])
        }
        return Record(takenAt: date(entries[0x18], entries[0x19]), camera: camera(entries))
    }

    private static func date(_ high: [UInt8]?, _ low: [UInt8]?) -> String? {
        guard let high, let low, let century = bcd(high[1]), let year = bcd(high[2]), let month = bcd(high[3]),
            let day = bcd(low[0]),
            let hour = bcd(low[1]), let minute = bcd(low[2]), let second = bcd(low[3])
        else { return nil }
        let zone = high[0]
        let hours = Int(zone >> 1) & 0x0F
        let offset = "\(zone & 0x20 != 0 ? "-" : "+")\(hours < 10 ? "0" : "")\(hours):\(zone & 1 != 0 ? "30" : "00")"
        return CaptureTime.iso(century * 100 + year, month, day, hour, minute, second, zone: offset)
    }

    private static func camera(_ entries: [UInt8: [UInt8]]) -> String? {
        let makers: [UInt64: String] = [0x0103: "Panasonic", 0x0108: "Sony", 0x1011: "Canon", 0x1104: "JVC"]
        let maker = entries[0xE0].flatMap { makers[$0.bigEndian(0, bytes: 2)] }
        let model = [0xE4, 0xE5, 0xE6].compactMap { entries[$0] }.joined().prefix { $0 >= 0x20 && $0 < 0x7F }
        return CaptureMetadata.camera(make: maker, model: model.isEmpty ? nil : String(decoding: model, as: UTF8.self))
    }

    /// DV: packs 0x62 (date) and 0x63 (time) of the VAUX sections (IEC 61834-4), in blocks of 80 bytes.
    static func dv(_ packet: [UInt8]) -> Record? {
        let blockLength = 80, packLength = 5
        var date: [UInt8]?, time: [UInt8]?
        for block in stride(from: 0, to: packet.count - blockLength + 1, by: blockLength) where packet[block] >> 5 == 2
        {
            for pack in stride(from: block + 3, to: block + blockLength - packLength + 1, by: packLength) {
                let bytes = Array(packet[pack..<(pack + packLength)])
                if bytes[0] == 0x62, date == nil { date = bytes }
                if bytes[0] == 0x63, time == nil { time = bytes }
            }
            if date != nil, time != nil { break }
        }
        guard let date, let time, let day = bcd(date[2] & 0x3F), let month = bcd(date[3] & 0x1F),
            let year = bcd(date[4]),
            let second = bcd(time[2] & 0x7F), let minute = bcd(time[3] & 0x7F), let hour = bcd(time[4] & 0x3F)
        else { return nil }
        return Record(
            takenAt: CaptureTime.iso(year < 70 ? 2000 + year : 1900 + year, month, day, hour, minute, second, zone: ""),
            camera: nil)
    }

    private static func bcd(_ byte: UInt8) -> Int? {
        byte >> 4 < 10 && byte & 15 < 10 ? Int(byte >> 4) * 10 + Int(byte & 15) : nil
    }

    /// Takes out the 03 that keeps payload from looking like a start code (ISO/IEC 14496-10, 7.4.1).
    private static func unescaped(_ bytes: ArraySlice<UInt8>) -> [UInt8] {
        var result: [UInt8] = []
        var zeros = 0
        for byte in bytes {
            if zeros >= 2, byte == 3 {
                zeros = 0
                continue
            }
            zeros = byte == 0 ? zeros + 1 : 0
            result.append(byte)
        }
        return result
    }
}
