import Testing
import Vocabulary
import XML

@Suite struct XMLTests {
    @Test func aStoresAnswerIsReadWithItsNamesAndTexts() throws {
        let text = """
             <?xml version="1.0" encoding="UTF-8"?>
            <ListPartsResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><IsTruncated>false</IsTruncated>
            <Part><PartNumber>1</PartNumber><ETag>&quot;a&amp;b&quot;</ETag></Part><Part><PartNumber>2</PartNumber></Part></ListPartsResult>
            """
        let root = try XMLDocument.parse(Array(text.utf8))
        #expect(root.name == "ListPartsResult")
        #expect(root.text("IsTruncated") == "false")
        #expect(root.all("Part").map { $0.text("PartNumber") } == ["1", "2"])
        #expect(root["Part"]?.text("ETag") == "\"a&b\"")
    }

    @Test(arguments: [
        "", "<a>", "<a></b>", "no document", "<html><br></html>", "<a/><b/>",
        "<!DOCTYPE a [<!ENTITY b \"bb\">]><a>&b;</a>", "<!DOCTYPE html><a/>",
        String(repeating: "<a>", count: 40) + String(repeating: "</a>", count: 40),
        "<a>" + String(repeating: "<b/>", count: 60_000) + "</a>",
    ]) func whatIsMalformedOrTooMuchIsRefused(text: String) {
        #expect(throws: Failure.self) { try XMLDocument.parse(Array(text.utf8)) }
    }
}
