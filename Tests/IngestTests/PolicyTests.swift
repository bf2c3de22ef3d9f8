import Testing
import Vocabulary

@testable import Ingest

@Suite struct PartGridTests {
    @Test(arguments: [
        (0, 8 << 20, 1, 0), (1, 8 << 20, 1, 1), (8 << 20, 8 << 20, 1, 8 << 20), ((8 << 20) + 1, 8 << 20, 2, 1),
        (100, 7, 15, 2),
    ])
    func partsCoverTheFileOnceAndInOrder(size: Int, partSize: Int, count: Int, last: Int) throws {
        let grid = try PartGrid(size: size, partSize: partSize)
        #expect(grid.count == count)
        #expect(grid.parts.map(\.number) == Array(1...count))
        #expect(grid.parts.last?.length == last)
        var end = 0
        for part in grid.parts {
            #expect(part.offset == end)
            end += part.length
        }
        #expect(end == size)
    }

    @Test(arguments: [0, 1, 8 << 20, 78 << 30, 79 << 30, 300 << 30])
    func theAskedPartSizeFitsTheFileIntoTheBounds(size: Int) throws {
        let partSize = PartLimits.partSize(for: size)
        #expect(PartLimits.bytesRange.contains(partSize))
        #expect(partSize % (1 << 20) == 0)
        #expect(try PartGrid(size: size, partSize: partSize).count <= PartLimits.countMax)
    }

    @Test func aFileOverTheBoundsIsRefused() {
        let failure = #expect(throws: Failure.self) { try PartGrid(size: 400 << 30, partSize: 32 << 20) }
        #expect(failure?.code == .tooLarge)
    }
}

@Suite struct RetryPolicyTests {
    let policy = RetryPolicy()

    @Test(arguments: [
        (FailureCode.backendUnreachable, RetryPolicy.Blame.everybody), (.unauthorized, .everybody),
        (.quotaExceeded, .everybody), (.diskFull, .everybody), (.busy, .everybody), (.hashMismatch, .item),
        (.mediaCrashed, .item), (.sourceChanged, .item), (.conflict, .item), (.badRequest, .final),
        (.cancelled, .nobody),
    ])
    func theBlameIsWhereTheFaultIs(code: FailureCode, blame: RetryPolicy.Blame) {
        #expect(policy.blame(Failure(code, "x"), faults: 1, othersSucceeded: true) == blame)
    }

    @Test func aBackendFaultThatMeetsOnlyOneItemIsThatItems() {
        let failure = Failure(.backendError, "x")
        #expect(policy.blame(failure, faults: 100, othersSucceeded: false) == .everybody)
        #expect(policy.blame(failure, faults: policy.lonelyFaultMax - 1, othersSucceeded: true) == .everybody)
        #expect(policy.blame(failure, faults: policy.lonelyFaultMax, othersSucceeded: true) == .item)
    }

    @Test func delaysGrowToTheirBoundAndDiffer() {
        var random = BoxRandom.seeded(7)
        var ceiling = policy.backoff.firstDelay
        for faults in 1...40 {
            let delay = policy.backoff.delay(faults: faults, using: &random)
            #expect(delay <= ceiling && delay >= ceiling / 2)
            ceiling = min(ceiling * 2, policy.backoff.delayMax)
        }
        let two = (0..<2).map { _ in policy.backoff.delay(faults: 5, using: &random) }
        #expect(two[0] != two[1])
    }

    @Test func pollsBecomeRarerUpToABound() {
        var random = BoxRandom.seeded(3)
        #expect(PollPolicy().delay(count: 1, using: &random) < 0.2)
        #expect(PollPolicy().delay(count: 500, using: &random) <= PollPolicy().delayMax * 1.2)
        #expect(PollPolicy().delay(count: 500, using: &random) >= PollPolicy().delayMax * 0.8)
    }
}

@Suite struct ProgressMeterTests {
    @Test func whatWasShownNeverGoesBack() {
        var meter = ProgressMeter(total: 100, confirmed: 10)
        meter.update(confirmed: 10, inFlight: 50, at: 0)
        #expect(meter.fraction == 0.6)
        meter.update(confirmed: 10, inFlight: 0, at: 1)
        #expect(meter.fraction == 0.6)
        meter.update(confirmed: 100, inFlight: 40, at: 2)
        #expect(meter.fraction == 1)
    }

    @Test func theTimeLeftIsShownOnlyOnceTheRateHasSettled() {
        var meter = ProgressMeter(total: 10_000)
        for step in 0...3 { meter.update(confirmed: step * 100, inFlight: 0, at: Double(step)) }
        #expect(meter.secondsLeft == nil)
        for step in 4...40 { meter.update(confirmed: step * 100, inFlight: 0, at: Double(step)) }
        let left = meter.secondsLeft ?? 0
        #expect(abs(left - 60) < 1)
    }

    @Test func nothingToSendIsAllSent() { #expect(ProgressMeter(total: 0).fraction == 1) }
}

@Suite struct PreparePlanTests {
    func report(_ kind: MediaFacts.Kind?, delivery: MediaFacts.Delivery? = nil, reason: FailureCode? = nil)
        -> ProbeReport
    {
        var facts = kind.map { MediaFacts(kind: $0) }
        facts?.delivery = delivery
        return ProbeReport(file: "x", facts: facts, reason: reason.map { Reason($0, "x") })
    }

    @Test(arguments: [
        (PrepareMode.auto, false, PreparePlan.original), (.original, true, .original),
        (.both, false, .send(jobs: [.rendition], sendsOriginal: true)),
        (.rendition, false, .send(jobs: [.rendition], sendsOriginal: false)),
        (.auto, true, .send(jobs: [.rendition], sendsOriginal: true)),
    ])
    func aVideoIsPreparedAsAsked(mode: PrepareMode, isMetered: Bool, plan: PreparePlan) {
        #expect(PreparePlan(report: report(.video, delivery: .encode), mode: mode, isMetered: isMetered) == plan)
    }

    @Test func aConformingVideoIsItsOwnRendition() {
        #expect(
            PreparePlan(report: report(.video, delivery: .original), mode: .rendition, isMetered: false) == .original)
    }

    @Test func aPhotoGetsASmallStillAndSoundNothing() {
        #expect(
            PreparePlan(report: report(.photo), mode: .rendition, isMetered: false)
                == .send(jobs: [.thumbnail], sendsOriginal: true))
        #expect(PreparePlan(report: report(.audio), mode: .both, isMetered: false) == .original)
    }

    @Test(arguments: [
        FailureCode.truncated, .corrupt, .encrypted, .unsupportedCodec, .unsupportedHDR, .tooLarge, .tooLong, .noVideo,
    ])
    func aVerdictGatesProcessingNeverSafekeeping(code: FailureCode) {
        #expect(PreparePlan(report: report(.video, reason: code), mode: .both, isMetered: false) == .original)
    }

    @Test(arguments: [FailureCode.empty, .notMedia]) func whatIsNoMediaIsNotSent(code: FailureCode) {
        #expect(
            PreparePlan(report: report(nil, reason: code), mode: .both, isMetered: false) == .refuse(Reason(code, "x")))
    }

    @Test func aFileThatCouldNotBeProbedIsSentAsItIs() {
        #expect(PreparePlan(report: nil, mode: .both, isMetered: false) == .original)
    }
}

@Suite struct SpacePolicyTests {
    @Test func anItemWaitsUntilItFitsWithTheMargin() {
        let policy = SpacePolicy(marginBytes: 10)
        #expect(policy.decide(free: 110, given: 60, made: 40) == .go)
        #expect(policy.decide(free: 109, given: 60, made: 40) == .wait)
    }
}
