import Ingest
import Testing
import Vocabulary

@testable import rushes

@Suite struct IngestWordsTests {
    @Test(arguments: [40, 60, 100])
    func aBarKeepsItsWidthWhateverItShows(width: Int) throws {
        var item = ItemProgress(
            id: try #require(ItemID(rawValue: "item-1")), name: "a\u{1B}\u{1B}-long-name-of-a-clip.mp4",
            state: .uploading)
        item.waiting = "for \u{1B}\u{1B}\u{1B}"
        let bar = IngestWords.bar(item, width: width)
        #expect(Columns.count(bar) <= width - 1)
        // The words are not cut for the sake of the name where there is room for both.
        #expect(width < 100 || bar.hasSuffix(#"\u{1B}\u{1B}\u{1B}"#), "\(bar)")
    }

    @Test(arguments: [
        (FailureCode.backendUnreachable, true), (.busy, true), (.unauthorized, true), (.quotaExceeded, true),
        (.alreadyRunning, true), (.internalError, false), (.databaseError, false), (.ioError, false),
        (.stagingDamaged, false), (.diskFull, false),
    ])
    func onlyWhatInterruptsPromisesThatNothingWasLost(code: FailureCode, isPromised: Bool) {
        // Whatever the message says.
        for message in ["It is so.", "It is so; nothing was lost."] {
            let ended = IngestWords.ended(Failure(code, message))
            #expect(
                ended.message == message
                    + (isPromised ? " Nothing was lost: the same command goes on where it was." : ""))
        }
    }

    @Test func onlyWhatCannotBeWrittenInTheHomeIsSaidOfTheHome() throws {
        let configuration = try Configuration(environment: ["HOME": "/h", "RUSHES_HOME": "/h/rushes"]) {
            _ throws(Failure) in nil
        }
        func isOfHome(_ code: FailureCode, _ detail: String?) -> Bool {
            configuration.named(Failure(code, "words", detail: detail)).message != "words"
        }
        #expect(isOfHome(.readOnly, "mkdir /h/rushes/staging: Permission denied"))
        #expect(isOfHome(.readOnly, "mkdir /h/rushes: Permission denied"))
        #expect(isOfHome(.readOnly, "/h/rushes/catalog.db: unable to open (14) in open"))
        #expect(!isOfHome(.readOnly, "mkdir /h/rushes2/staging: Permission denied"))
        #expect(!isOfHome(.readOnly, "bind 127.0.0.1:80: Permission denied"))
        #expect(!isOfHome(.readOnly, nil))
        #expect(!isOfHome(.sourceUnreadable, "open for reading /h/rushes/catalog.db: Permission denied"))
    }
}
