import Testing
import Vocabulary

@testable import Ingest

@Suite struct UploadStateMachineTests {
    let id = UploadID.named("u1")

    func machine(parts: Int) throws -> UploadStateMachine {
        UploadStateMachine(grid: try PartGrid(size: parts * 10, partSize: 10))
    }
    func session(
        _ generation: Int, _ state: SessionState = .open, urls: [Int] = [], partSize: Int = 10, stored: Bool = false
    ) -> UploadSession {
        UploadSession(
            uploadID: id, generation: generation, state: state, partSize: partSize, partCount: nil,
            urls: Dictionary(uniqueKeysWithValues: urls.map { ("\($0)", "u\($0)") }), expiresAt: "",
            alreadyStored: stored)
    }
    func listing(_ generation: Int, _ parts: [Int], state: SessionState = .open, size: Int = 10) -> StoredParts {
        StoredParts(
            generation: generation, state: state,
            parts: parts.map { StoredParts.Part(partNumber: $0, size: size, etag: "e") })
    }

    @Test func aFileOfTwoPartsGoesStraightThrough() throws {
        var machine = try machine(parts: 2)
        #expect(machine.handle(.begun(.nothing)) == [.open([1, 2])])
        #expect(
            machine.handle(.session(session(1, urls: [1, 2])))
                == [.send(1, url: "u1", generation: 1), .send(2, url: "u2", generation: 1)])
        #expect(machine.handle(.stored(2, generation: 1)) == [])
        #expect(machine.handle(.stored(1, generation: 1)) == [.complete(generation: 1)])
        #expect(machine.handle(.completed) == [.finish(generation: 1)])
        #expect(machine.isEnded)
    }

    @Test func noMoreThanThreePartsAreInFlightAndURLsComeAFewAtATime() throws {
        var machine = try machine(parts: 9)
        _ = machine.handle(.begun(.nothing))
        let first = machine.handle(.session(session(1, urls: [1, 2, 3, 4])))
        #expect(
            first == [
                .send(1, url: "u1", generation: 1), .send(2, url: "u2", generation: 1),
                .send(3, url: "u3", generation: 1),
                .sign([5, 6, 7, 8], generation: 1),
            ])
        #expect(machine.handle(.stored(1, generation: 1)) == [.send(4, url: "u4", generation: 1)])
        #expect(machine.handle(.signed(generation: 1, [5: "u5", 6: "u6", 7: "u7", 8: "u8"])) == [])
        #expect(machine.handle(.stored(3, generation: 1)) == [.send(5, url: "u5", generation: 1)])
    }

    @Test func anUploadThatTheBackendHadNeverHeardOfIsOpenedAndThenTheStoreIsAsked() throws {
        var machine = try machine(parts: 3)
        #expect(machine.handle(.begun(.unheardOf)) == [.open([])])
        #expect(machine.handle(.session(session(2))) == [.list])
        #expect(machine.handle(.listed(listing(2, [1, 3]))) == [.sign([2], generation: 2)])
        #expect(machine.handle(.sessionLost(generation: 2)) == [.reopen(generation: 2)])
        #expect(machine.handle(.session(session(3))) == [.sign([1, 2, 3], generation: 3)])
    }

    @Test func anUploadTakenUpAgainAsksTheStoreAndSendsOnlyTheRest() throws {
        var machine = try machine(parts: 4)
        #expect(machine.handle(.begun(.session(generation: 2, acknowledged: [1]))) == [.list])
        #expect(machine.handle(.listed(listing(2, [1, 3]))) == [.sign([2, 4], generation: 2)])
        #expect(
            machine.handle(.signed(generation: 2, [2: "a", 4: "b"]))
                == [.send(2, url: "a", generation: 2), .send(4, url: "b", generation: 2)])
    }

    @Test func anAcknowledgedPartThatTheListingDoesNotNameIsNotSentAgainInItsGeneration() throws {
        var machine = try machine(parts: 2)
        _ = machine.handle(.begun(.session(generation: 1, acknowledged: [1])))
        #expect(machine.handle(.listed(listing(1, []))) == [.sign([2], generation: 1)])
        _ = machine.handle(.signed(generation: 1, [2: "b"]))
        #expect(machine.handle(.stored(2, generation: 1)) == [.complete(generation: 1)])
        // The backend really does not have it: the session is of no use.
        #expect(machine.handle(.incomplete(generation: 1)) == [.list])
        #expect(machine.handle(.listed(listing(1, [2]))) == [.reopen(generation: 1)])
        #expect(machine.handle(.session(session(2))) == [.sign([1, 2], generation: 2)])
    }

    @Test func aSessionThatIsAliveAfterAllIsListedAndTheRestIsSent() throws {
        var machine = try machine(parts: 3)
        _ = machine.handle(.begun(.nothing))
        _ = machine.handle(.session(session(1, urls: [1, 2, 3])))
        _ = machine.handle(.stored(1, generation: 1))
        #expect(machine.handle(.sessionLost(generation: 1, part: 2)) == [.reopen(generation: 1)])
        // The backend has looked and found it.
        #expect(machine.handle(.session(session(1))) == [.list])
        // Part 3 is still on its way: what becomes of it counts.
        #expect(machine.handle(.listed(listing(1, [1]))) == [.sign([2], generation: 1)])
        #expect(machine.handle(.signed(generation: 1, [2: "b"])) == [.send(2, url: "b", generation: 1)])
        #expect(machine.handle(.stored(2, generation: 1)) == [])
        #expect(machine.handle(.stored(3, generation: 1)) == [.complete(generation: 1)])
    }

    @Test func aPartThatArrivesWhileTheStoreIsAskedIsNotSentAgain() throws {
        var machine = try machine(parts: 3)
        _ = machine.handle(.begun(.nothing))
        _ = machine.handle(.session(session(1, urls: [1, 2, 3])))
        _ = machine.handle(.sessionLost(generation: 1, part: 1))
        #expect(machine.handle(.stored(2, generation: 1)) == [])
        _ = machine.handle(.session(session(1)))
        #expect(machine.handle(.stored(3, generation: 1)) == [])
        // A second one that was told the same, late.
        #expect(machine.handle(.sessionLost(generation: 1, part: 2)) == [])
        // The listing was made before.
        #expect(machine.handle(.listed(listing(1, []))) == [.sign([1], generation: 1)])
        _ = machine.handle(.signed(generation: 1, [1: "a"]))
        #expect(machine.handle(.stored(1, generation: 1)) == [.complete(generation: 1)])
    }

    @Test func aPartThatIsListedButStillOnItsWayIsWaitedForBeforeTheEnd() throws {
        var machine = try machine(parts: 2)
        _ = machine.handle(.begun(.nothing))
        _ = machine.handle(.session(session(1, urls: [1, 2])))
        _ = machine.handle(.sessionLost(generation: 1, part: 1))
        _ = machine.handle(.session(session(1)))
        #expect(machine.handle(.listed(listing(1, [1, 2]))) == [])
        // Refused now, it is at the store all the same.
        #expect(machine.handle(.partRefused(2, generation: 1)) == [.complete(generation: 1)])
    }

    @Test func aPartThatALivingSessionHasLostIsSentAgain() throws {
        var machine = try machine(parts: 2)
        _ = machine.handle(.begun(.session(generation: 1, acknowledged: [1, 2])))
        #expect(machine.handle(.listed(listing(1, [2]))) == [.complete(generation: 1)])
        #expect(machine.handle(.incomplete(generation: 1)) == [.list])
        #expect(machine.handle(.listed(listing(1, [2]))) == [.reopen(generation: 1)])
        #expect(machine.handle(.session(session(1))) == [.list])
        #expect(machine.handle(.listed(listing(1, [2]))) == [.sign([1], generation: 1)])
    }

    @Test func aBackendThatListsAllPartsAndMissesSomeEndsTheUpload() throws {
        var machine = try machine(parts: 1)
        _ = machine.handle(.begun(.session(generation: 1, acknowledged: [])))
        var actions = machine.handle(.listed(listing(1, [1])))
        var rounds = 0
        while actions == [.complete(generation: 1)] {
            rounds += 1
            try #require(rounds < 100)
            actions = machine.handle(.incomplete(generation: 1))
            if actions == [.list] { actions = machine.handle(.listed(listing(1, [1]))) }
        }
        #expect(rounds == UploadStateMachine.setbackMax + 1)
        #expect(machine.isEnded)
    }

    @Test func whatIsOfNoUseAndAliveIsAskedForToo() throws {
        var machine = try machine(parts: 2)
        #expect(machine.handle(.begun(.useless(generation: 3))) == [.reopen(generation: 3)])
        #expect(machine.handle(.session(session(3))) == [.list])
        #expect(machine.handle(.listed(listing(3, [2]))) == [.sign([1], generation: 3)])
    }

    @Test func aListedPartOfAnotherLengthIsNotTheFiles() throws {
        var machine = try machine(parts: 1)
        _ = machine.handle(.begun(.session(generation: 1, acknowledged: [])))
        #expect(machine.handle(.listed(listing(1, [1], size: 7))) == [.sign([1], generation: 1)])
    }

    @Test func aRefusedURLIsSignedAgainForThatPartOnly() throws {
        var machine = try machine(parts: 2)
        _ = machine.handle(.begun(.nothing))
        _ = machine.handle(.session(session(1, urls: [1, 2])))
        #expect(machine.handle(.urlRefused(1, generation: 1)) == [.sign([1], generation: 1)])
        #expect(machine.handle(.signed(generation: 1, [1: "new"])) == [.send(1, url: "new", generation: 1)])
    }

    @Test(arguments: [SessionState.expired, .aborted]) func aDeadSessionIsReopenedFromZero(state: SessionState) throws {
        var machine = try machine(parts: 2)
        _ = machine.handle(.begun(.session(generation: 1, acknowledged: [1])))
        #expect(machine.handle(.listed(listing(1, [1], state: state))) == [.reopen(generation: 1)])
        #expect(
            machine.handle(.session(session(2, urls: [1, 2])))
                == [.send(1, url: "u1", generation: 2), .send(2, url: "u2", generation: 2)])
    }

    @Test func lateNewsOfAnOlderGenerationChangesNothing() throws {
        var machine = try machine(parts: 2)
        _ = machine.handle(.begun(.nothing))
        _ = machine.handle(.session(session(1, urls: [1, 2])))
        #expect(machine.handle(.sessionLost(generation: 1)) == [.reopen(generation: 1)])
        _ = machine.handle(.session(session(2, urls: [1, 2])))
        #expect(machine.handle(.stored(2, generation: 1)) == [])
        #expect(machine.handle(.sessionLost(generation: 1)) == [])
        #expect(machine.handle(.failed(Failure(.ioError, "x"), generation: 1)) == [])
        #expect(machine.handle(.signed(generation: 1, [1: "old"])) == [])
        #expect(machine.handle(.stored(1, generation: 2)) == [])
        #expect(machine.handle(.stored(2, generation: 2)) == [.complete(generation: 2)])
    }

    @Test func bytesThatTheOwnerHasAreNotSent() throws {
        var machine = try machine(parts: 3)
        _ = machine.handle(.begun(.nothing))
        #expect(machine.handle(.session(session(1, .complete, stored: true))) == [.finish(generation: 1)])
    }

    @Test func aSessionThatKeepsVanishingEndsTheUpload() throws {
        var machine = try machine(parts: 1)
        var actions = machine.handle(.begun(.useless(generation: 1)))
        var generation = 1
        while actions == [.reopen(generation: generation)] {
            generation += 1
            actions = machine.handle(.session(session(generation, .expired)))
            try #require(generation < 100)
        }
        guard case .giveUp(let failure) = actions.first else {
            Issue.record("\(actions)")
            return
        }
        #expect(failure.code == .backendError)
        #expect(generation == UploadStateMachine.setbackMax + 1)
    }

    @Test func aPartThatIsRefusedForEverEndsTheUpload() throws {
        var machine = try machine(parts: 1)
        _ = machine.handle(.begun(.nothing))
        var actions = machine.handle(.session(session(1, urls: [1])))
        var rounds = 0
        while case .send = actions.first {
            rounds += 1
            try #require(rounds < 100)
            actions = machine.handle(.partRefused(1, generation: 1))
            if case .sign = actions.first { actions = machine.handle(.signed(generation: 1, [1: "again"])) }
        }
        #expect(rounds == UploadStateMachine.refusalMax + 1)
        #expect(machine.isEnded)
    }

    @Test func aPartThatIsNeverGivenAnAddressEndsTheUpload() throws {
        var machine = try machine(parts: 2)
        _ = machine.handle(.begun(.nothing))
        var actions = machine.handle(.session(session(1, urls: [1])))
        var rounds = 0
        while actions.contains(.sign([2], generation: 1)) {
            rounds += 1
            try #require(rounds < 100)
            actions = machine.handle(.signed(generation: 1, [:]))
        }
        #expect(rounds == UploadStateMachine.refusalMax + 1)
        #expect(machine.isEnded)
    }

    @Test func aPartThatIsNamedTwiceHasOneAddress() throws {
        var machine = try machine(parts: 1)
        _ = machine.handle(.begun(.nothing))
        var session = session(1)
        session.urls = ["1": "a", "01": "a", "x": "b"]
        #expect(machine.handle(.session(session)) == [.send(1, url: "a", generation: 1)])
    }

    @Test func aClampedPartSizeMakesAnotherGrid() throws {
        var machine = try machine(parts: 4)
        _ = machine.handle(.begun(.nothing))
        #expect(machine.handle(.session(session(1, urls: [1, 2], partSize: 20))) == [.sign([1, 2], generation: 1)])
        #expect(machine.grid.count == 2)
    }

    /// Plays thousands of legal worlds against the machine: parts and answers are lost, sessions die, listings know more than we do.
    @Test(arguments: 0..<200) func everyWorldEndsWithAllPartsAtTheStore(seed: Int) throws {
        var random = BoxRandom.seeded(UInt64(seed))
        let parts = Int.random(in: 1...12, using: &random)
        var machine = try machine(parts: parts)
        var generation = 0
        var held: Set<Int> = []
        var acknowledged: Set<Int> = []
        var isComplete = false
        var isLost = false
        var pending = machine.handle(.begun(.nothing))
        var steps = 0
        while !pending.isEmpty {
            steps += 1
            try #require(steps < 10_000, "seed \(seed)")
            let action = pending.remove(at: Int.random(in: 0..<pending.count, using: &random))
            let isUnlucky = Int.random(in: 0..<12, using: &random) == 0 && steps < 60
            switch action {
            case .open(let numbers):
                generation = 1
                pending += machine.handle(.session(session(1, urls: numbers)))
            case .reopen(let old):
                #expect(old == generation, "seed \(seed)")
                // The backend decides whether the session was lost.
                if isLost {
                    generation += 1
                    held = []
                    acknowledged = []
                    isLost = false
                }
                pending += machine.handle(.session(session(generation)))
            case .list: pending += machine.handle(.listed(listing(generation, Array(held))))
            case .sign(let numbers, let of):
                #expect(numbers.count <= UploadStateMachine.signedAheadMax)
                if of == generation {
                    pending += machine.handle(
                        .signed(generation: of, Dictionary(uniqueKeysWithValues: numbers.map { ($0, "u") })))
                }
            case .send(let number, _, let of):
                guard of == generation else {
                    pending += machine.handle(.sessionLost(generation: of))
                    continue
                }
                #expect(!acknowledged.contains(number), "seed \(seed): part \(number) was sent again")
                if isUnlucky {
                    switch Int.random(in: 0..<3, using: &random) {
                    case 0: pending += machine.handle(.urlRefused(number, generation: of))
                    case 1: pending += machine.handle(.sessionLost(generation: of, part: number))
                    default:
                        isLost = true
                        pending += machine.handle(.sessionLost(generation: of, part: number))
                    }
                } else if isLost {
                    pending += machine.handle(.sessionLost(generation: of, part: number))
                } else {
                    held.insert(number)
                    acknowledged.insert(number)
                    pending += machine.handle(.stored(number, generation: of))
                }
            case .complete(let of):
                #expect(of == generation && held.count == parts, "seed \(seed)")
                isComplete = true
                pending += machine.handle(.completed)
            case .finish: #expect(isComplete)
            case .giveUp(let failure): #expect(failure.code == .backendError, "seed \(seed)")
            }
        }
        #expect(machine.isEnded, "seed \(seed)")
    }
}
