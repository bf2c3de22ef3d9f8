import Foundation
import Testing
import Vocabulary

@testable import Thumbs

/// Small files that would cost much, found out before any pixel is decoded.
@Suite struct BombTests {
    @Test func aGIFWhoseCodesCannotFillItIsTruncated() throws {
        var file = ByteWriter(bigEndian: false)
        file.text("GIF89a")
        file.u16(20000, 20000)
        file.u8(0x80, 0, 0, 0, 0, 0, 255, 255, 255, 0x2C)
        file.u16(0, 0, 20000, 20000)
        file.u8(0, 2, 2, 0x44, 0x01, 0, 0x3B)
        let failure = #expect(throws: Failure.self) { try GIFFile(ByteView(file.bytes), limits: MediaLimits()) }
        #expect(failure?.code == .truncated)
    }

    @Test func packedRowsThatCannotFillThePictureAreDamage() throws {
        var file = ByteWriter()
        file.text("8BPS")
        file.u16(1, 0, 0, 0, 3)
        file.u32(2000, 2000)
        file.u16(8, 3)
        file.u32(0, 0, 0)
        file.u16(1)
        file.bytes += [UInt8](repeating: 0, count: 2 * 3 * 2000)
        let picture = try PSDFile(ByteView(file.bytes), limits: MediaLimits())
        let failure = #expect(throws: Failure.self) { try picture.decode(longSide: 1, budget: Pictures.roomy) }
        #expect(failure?.code == .corrupt)
    }

    @Test(arguments: [(64, nil), (66, nil), (67, .corrupt)] as [(Int, FailureCode?)])
    func passesOverALargePictureAreCounted(count: Int, code: FailureCode?) throws {
        var file = ByteWriter()
        file.u16(0xFFD8, 0xFFC2, 17)
        file.u8(8)
        file.u16(8000, 8000)
        file.u8(3, 1, 0x22, 0, 2, 0x11, 0, 3, 0x11, 0)
        for _ in 0..<count {
            file.u16(0xFFDA, 8)
            file.u8(1, 1, 0, 0, 0, 0)
        }
        file.u16(0xFFD9)
        var found: FailureCode?
        do throws(Failure) { _ = try JPEGFile(ByteView(file.bytes), limits: MediaLimits()) } catch {
            found = error.code
        }
        #expect(found == code)
    }

    /// 64 directories that each name 64 below them.
    @Test func directoriesOfOneFileAreBounded() throws {
        let (count, size) = (64, 2 + 12 + 4)
        let list = 8 + count * size
        var file = ByteWriter()
        file.text("MM")
        file.u16(42)
        file.u32(8)
        for index in 0..<count {
            file.u16(1, 330, 4)
            file.u32(count, list, index + 1 < count ? 8 + (index + 1) * size : 0)
        }
        for _ in 0..<count { file.u32(8) }
        let structure = try #require(RAWStructure(ByteView(file.bytes)))
        #expect(structure.directories.count < RAWStructure.directoryCountMax + TIFFStructure.directoryCountMax + 1)
    }
}
