/// How many columns of a terminal a text takes. Pure.
enum Columns {
    static func count(_ text: some StringProtocol) -> Int { text.reduce(0) { $0 + width($1) } }

    /// The end of a text that has at most so many columns.
    static func suffix(_ text: String, _ columns: Int) -> String {
        var (taken, left) = ([Character](), columns)
        for character in text.reversed() {
            left -= width(character)
            if left < 0 { break }
            taken.append(character)
        }
        return String(taken.reversed())
    }

    /// The beginning of a text that has at most so many columns.
    static func prefix(_ text: String, _ columns: Int) -> String {
        var left = columns
        return String(
            text.prefix { character in
                left -= width(character)
                return left >= 0
            })
    }

    /// What a person sees as one character has two columns where any of it is wide, and none where it only marks the one before.
    static func width(_ character: Character) -> Int {
        if character.unicodeScalars.contains(where: isWide) { return 2 }
        let marks = character.unicodeScalars.allSatisfy {
            switch $0.properties.generalCategory {
            case .nonspacingMark, .enclosingMark, .format: true
            default: false
            }
        }
        return marks ? 0 : 1
    }

    /// East Asian wide and fullwidth characters (Unicode Standard Annex 11, the blocks that have them), and what is shown as a picture.
    private static let wide: [ClosedRange<UInt32>] = [
        0x1100...0x115F, 0x2E80...0x303E, 0x3041...0x4DBF, 0x4E00...0xA4CF, 0xA960...0xA97F, 0xAC00...0xD7A3,
        0xF900...0xFAFF, 0xFE30...0xFE6F, 0xFF00...0xFF60, 0xFFE0...0xFFE6, 0x1B000...0x1B2FF, 0x20000...0x3FFFD,
    ]
    private static func isWide(_ scalar: Unicode.Scalar) -> Bool {
        // A character may ask to be shown as a picture (variation selector 16).
        scalar.properties.isEmojiPresentation || scalar.value == 0xFE0F || wide.contains { $0.contains(scalar.value) }
    }
}
