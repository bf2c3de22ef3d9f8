/// Bytes as people write them: a whole number, with K, M or G for powers of 1024.
public enum ByteCount {
    /// Nil for what is none.
    public static func parse(_ text: some StringProtocol) -> Int? {
        let shift: Int? =
            switch text.last {
            case "K", "k": 10
            case "M", "m": 20
            case "G", "g": 30
            default: nil
            }
        let digits = shift == nil ? text[...] : text.dropLast()
        guard digits.utf8.allSatisfy(isDigit), let number = UInt(digits), number <= Int.max else { return nil }
        let (product, isOver) = Int(number).multipliedReportingOverflow(by: 1 << (shift ?? 0))
        return isOver ? nil : product
    }

    /// `UInt8("+8")` is a number too.
    public static func isDigit(_ byte: UInt8) -> Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) }
}
