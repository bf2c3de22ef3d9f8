import Digests
import Foundation

/// What is known of ETags. Their spelling is the store's: quoted or not, in capitals or not.
enum ETag {
    static func isSame(_ one: String, _ other: String) -> Bool {
        one.unquoted.lowercased() == other.unquoted.lowercased()
    }

    /// Of an object that was put together: the MD5 of its parts' MD5s, and their number. Nil when one is not known.
    static func composite(_ md5s: [String?]) -> String? {
        let digest = Digest(.md5)
        for md5 in md5s {
            guard let bytes = md5.flatMap([UInt8].init(hexadecimal:)), bytes.count == 16 else { return nil }
            digest.update(bytes)
        }
        return "\(digest.finalize().hexadecimal)-\(md5s.count)"
    }
}

extension String {
    /// An ETag in whatever spelling: `"x"`, `x`, `W/"x"`.
    var unquoted: String {
        let bare = hasPrefix("W/") || hasPrefix("w/") ? String(dropFirst(2)) : self
        return bare.trimmingCharacters(in: ["\"", " "])
    }
    var isMD5: Bool { utf8.count == 32 && allSatisfy(\.isHexDigit) }
    var isCompositeMD5: Bool {
        let halves = split(separator: "-")
        return halves.count == 2 && String(halves[0]).isMD5 && Int(halves[1]) != nil
    }
}
