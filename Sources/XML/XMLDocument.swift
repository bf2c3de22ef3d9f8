internal import CExpat
public import Vocabulary

/// Reads whole documents by expat: well-formed or not at all, without a document type, within bounds.
public enum XMLDocument {
    /// - Returns: the root.
    /// - Throws: `backend-error` for what is no such document.
    public static func parse(_ bytes: [UInt8], bounds: XMLBounds = XMLBounds()) throws(Failure) -> XMLElement {
        guard bytes.count <= bounds.bytesMax else { throw fault("\(bytes.count) bytes") }
        // The declaration has to come first, and some stores send white space ahead while they work.
        let document = bytes.drop { [0x20, 0x09, 0x0A, 0x0D].contains($0) }
        guard let parser = XML_ParserCreate(nil) else { preconditionFailure("expat has no memory for a parser") }
        defer { XML_ParserFree(parser) }
        let tree = Tree(parser: parser, bounds: bounds)
        XML_SetUserData(parser, Unmanaged.passUnretained(tree).toOpaque())
        XML_SetElementHandler(parser, onStart, onEnd)
        XML_SetCharacterDataHandler(parser, onText)
        XML_SetStartDoctypeDeclHandler(parser, onDoctype)
        let status = document.withUnsafeBytes {
            XML_Parse(parser, $0.baseAddress?.assumingMemoryBound(to: CChar.self), Int32($0.count), 1)
        }
        guard status == XML_STATUS_OK, let root = tree.root else {
            throw fault(
                tree.breach ?? XML_ErrorString(XML_GetErrorCode(parser)).map { String(cString: $0) } ?? "not XML")
        }
        return root
    }

    private static func fault(_ detail: String) -> Failure {
        Failure(.backendError, "The store's answer cannot be understood.", detail: "XML: \(detail)")
    }
}

/// The elements that are open, innermost last.
private final class Tree {
    let parser: XML_Parser
    let bounds: XMLBounds
    var open: [XMLElement] = []
    var count = 0
    var root: XMLElement?
    var breach: String?

    init(parser: XML_Parser, bounds: XMLBounds) {
        self.parser = parser
        self.bounds = bounds
    }

    func stop(_ reason: String) {
        breach = reason
        XML_StopParser(parser, XML_Bool(XML_FALSE))
    }

    func start(_ name: String, _ attributes: [String: String]) {
        count += 1
        guard open.count < bounds.depthMax, count <= bounds.elementsMax else { return stop("too deep or too long") }
        var element = XMLElement(name: name)
        element.attributes = attributes
        open.append(element)
    }

    func end() {
        guard let element = open.popLast() else { return }
        if open.isEmpty { root = element } else { open[open.count - 1].children.append(element) }
    }

    func text(_ text: String) {
        guard !open.isEmpty else { return }
        open[open.count - 1].text += text
    }
}

private func tree(_ pointer: UnsafeMutableRawPointer?) -> Tree {
    guard let pointer else { preconditionFailure("expat calls back with the pointer that it was given") }
    return Unmanaged<Tree>.fromOpaque(pointer).takeUnretainedValue()
}
private let onStart: XML_StartElementHandler = { pointer, name, pairs in
    var attributes: [String: String] = [:]
    // Names and values in turn, up to a null.
    var pair = pairs
    while let known = pair, let name = known[0], let value = known[1] {
        attributes[String(cString: name)] = String(cString: value)
        pair = known + 2
    }
    tree(pointer).start(name.map { String(cString: $0) } ?? "", attributes)
}
private let onEnd: XML_EndElementHandler = { pointer, _ in tree(pointer).end() }
private let onText: XML_CharacterDataHandler = { pointer, text, count in
    guard let text else { return }
    tree(pointer).text(
        String(decoding: UnsafeRawBufferPointer(start: text, count: Int(count)), as: UTF8.self))
}
private let onDoctype: XML_StartDoctypeDeclHandler = { pointer, _, _, _, _ in tree(pointer).stop("a document type") }
