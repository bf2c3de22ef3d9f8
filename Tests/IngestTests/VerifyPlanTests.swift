import Digests
import Files
import Testing
import Vocabulary

@testable import Ingest

@Suite struct VerifyPlanTests {
    private let item = ItemID.named("i")
    private let path: RawPath = "/card/a.mp4"
    private let hash = Digest.sha256(Array("a".utf8))
    private let other = Digest.sha256(Array("b".utf8))

    private func known(_ change: (inout VerifyPlan.Known) -> Void) -> VerifyPlan.Known {
        var known = VerifyPlan.Known(item: item, source: path, sha256: hash, bytes: 10)
        change(&known)
        return known
    }

    private func status(
        _ known: [VerifyPlan.Known], sha256: SHA256Digest? = nil, bytes: Int = 10, path: RawPath? = nil,
        answers: VerifyPlan.Answers = [:]
    ) -> VerifyStatus {
        VerifyPlan(known).status(
            of: path ?? self.path, bytes: bytes, sha256: sha256 ?? hash, answers: answers
        ).status
    }

    @Test func onlyWhatTheBackendHasReadItselfIsSafe() {
        #expect(status([known { $0.isConfirmed = true }]) == .safe)
        #expect(status([known { $0.isStaged = true }]) == .staged)
        #expect(status([known { _ in }]) == .notTaken)
        #expect(status([]) == .notTaken)
        // Under whatever name it was picked.
        #expect(status([known { $0.isConfirmed = true }], path: "/other/name.mp4") == .safe)
    }

    @Test func whatTheBackendSaysNowCountsMoreThanWhatItSaid() {
        let confirmed = known { $0.isConfirmed = true }
        #expect(status([confirmed], answers: [item: [hash]]) == .safe)
        #expect(status([confirmed], answers: [item: []]) == .notTaken)
        #expect(status([confirmed], answers: [item: [other]]) == .notTaken)
        let sent = known { $0.isStaged = true }
        #expect(status([sent], answers: [item: [hash]]) == .safe)
        #expect(status([sent], answers: [item: []]) == .staged)
    }

    @Test func thePathOfOtherBytesIsChanged() {
        let confirmed = known { $0.isConfirmed = true }
        #expect(status([confirmed], sha256: other) == .changed)
        #expect(status([confirmed], sha256: other, bytes: 4) == .changed)
        #expect(status([confirmed], sha256: other, path: "/card/new.mp4") == .notTaken)
        // The same name later with bytes that are safe.
        let second = known {
            $0.sha256 = other
            $0.isConfirmed = true
        }
        #expect(status([confirmed, second], sha256: other) == .safe)
    }

    /// Nothing at all is the same bytes everywhere: what became of another empty file says nothing of this one.
    @Test func whatWasCutDownToNothingIsChanged() {
        let empty = Digest.sha256([UInt8]())
        let taken = known { $0.isConfirmed = true }
        #expect(status([taken], sha256: empty, bytes: 0) == .changed)
        for change: @Sendable (inout VerifyPlan.Known) -> Void in [
            { $0.isNoMedia = true },
            {
                $0.isNoMedia = true
                $0.isStaged = true
            }, { $0.isStaged = true }, { $0.isConfirmed = true },
        ] {
            var elsewhere = known(change)
            (elsewhere.sha256, elsewhere.bytes) = (empty, 0)
            elsewhere.source = "/card/empty.txt"
            #expect(status([taken, elsewhere], sha256: empty, bytes: 0) == .changed)
            #expect(status([elsewhere, taken], sha256: empty, bytes: 0) == .changed)
        }
        // Picked, and cut down before it was taken.
        let wanted = known {
            $0.sha256 = nil
            $0.bytes = 10
        }
        #expect(status([wanted], sha256: empty, bytes: 0) == .changed)
        #expect(status([wanted]) == .notTaken)
        // Taken when it was empty already.
        let here = known {
            ($0.sha256, $0.bytes) = (empty, 0)
            $0.isNoMedia = true
        }
        #expect(status([taken, here], sha256: empty, bytes: 0) == .notMedia)
    }

    @Test func aNewFileInThePlaceOfAnotherIsChangedEvenIfItIsNoMedia() {
        let taken = known { $0.isConfirmed = true }
        let refused = known {
            $0.sha256 = other
            $0.source = "/card/b.mp4"
            $0.isNoMedia = true
        }
        #expect(status([taken, refused], sha256: other) == .changed)
        #expect(status([taken, refused], sha256: other, path: "/card/b.mp4") == .notMedia)
    }

    @Test func whatIsNoMediaBlocksNothing() {
        let refused = known { $0.isNoMedia = true }
        #expect(status([refused]) == .notMedia)
        #expect(
            status([
                known {
                    $0.isNoMedia = true; $0.isStaged = true
                }
            ]) == .notMedia)
        #expect(status([], bytes: 0) == .notMedia)
        #expect(VerifyStatus.allCases.filter { !$0.blocks } == [.safe, .notMedia, .system])
    }
}

@Suite struct SettlePolicyTests {
    private func file(_ size: Int, modified: Int64 = 1) -> WalkedFile {
        WalkedFile(path: "/inbox/a.mov", size: size, modified: modified)
    }

    @Test func aFileIsFinishedWhenItHasBeenTheSameForLongEnough() {
        var policy = SettlePolicy(quietLooks: 3)
        for (size, isQuiet) in [(1, false), (2, false), (2, false), (2, true), (2, true), (3, false)] {
            policy.look(at: [file(size)])
            #expect(policy.isQuiet(file(size)) == isQuiet, "size \(size)")
        }
    }

    @Test func aNewTimeBeginsAnewAndSoDoesAFileThatWasAway() {
        var policy = SettlePolicy(quietLooks: 2)
        policy.look(at: [file(5)])
        policy.look(at: [file(5, modified: 2)])
        #expect(!policy.isQuiet(file(5, modified: 2)))
        policy.look(at: [])
        policy.look(at: [file(5, modified: 2)])
        #expect(!policy.isQuiet(file(5, modified: 2)))
        policy.look(at: [file(5, modified: 2)])
        #expect(policy.isQuiet(file(5, modified: 2)))
        policy.forget()
        #expect(!policy.isQuiet(file(5, modified: 2)))
    }
}
