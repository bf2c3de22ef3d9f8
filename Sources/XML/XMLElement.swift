/// One element of a document: its text, its attributes, and the elements in it. Names are as they are written, with their prefixes.
public struct XMLElement: Sendable, Hashable {
    public var name: String
    /// Without the text of the elements in it.
    public var text = ""
    public var children: [XMLElement] = []
    public var attributes: [String: String] = [:]

    public init(name: String) { self.name = name }

    public subscript(name: String) -> XMLElement? { children.first { $0.name == name } }
    public func all(_ name: String) -> [XMLElement] { children.filter { $0.name == name } }
    /// The text of the child of this name.
    public func text(_ name: String) -> String? { self[name]?.text }
}

/// What a document may cost.
public struct XMLBounds: Sendable, Hashable {
    /// Bytes of the document.
    public var bytesMax = 4 << 20
    public var depthMax = 16
    public var elementsMax = 50_000
    public init() {}
}

extension XMLElement {
    /// Text as it stands in a document, in an attribute too. Line ends are spelt out: a parser would make blanks of them.
    public static func escaped(_ text: String) -> String {
        var escaped = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "&": escaped += "&amp;"
            case "<": escaped += "&lt;"
            case ">": escaped += "&gt;"
            case "\"": escaped += "&quot;"
            case "\t", "\n", "\r": escaped += "&#\(scalar.value);"
            default: escaped.unicodeScalars.append(scalar)
            }
        }
        return escaped
    }
}
