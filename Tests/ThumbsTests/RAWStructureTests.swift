import Testing

@testable import Thumbs

@Suite struct RAWStructureTests {
    private static func raw(_ entries: [TIFFBuilder.Entry], magic: UInt8) -> RAWStructure? {
        var bytes = TIFFBuilder(bigEndian: false).directory(entries)
        bytes[2] = magic
        return RAWStructure(ByteView(bytes))
    }

    /// Panasonic's strips say that they lie nowhere.
    @Test func panasonicsDataBeginsWhereItsOwnTagSays() {
        let strips: [TIFFBuilder.Entry] = [.long(273, 0xFFFF_FFFF), .long(279, 4096)]
        #expect(Self.raw(strips + [.long(0x118, 8)], magic: 0x55)?.lacksBytes == false)
        #expect(Self.raw(strips, magic: 0x55)?.lacksBytes == false)
        #expect(Self.raw(strips + [.long(0x118, 4000)], magic: 0x55)?.lacksBytes == true)
        #expect(Self.raw(strips + [.long(0x118, 8)], magic: 42)?.lacksBytes == true)
    }
}
