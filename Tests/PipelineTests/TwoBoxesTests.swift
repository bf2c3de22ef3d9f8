import Foundation
import Ingest
import LossyTransport
import Synchronization
import Testing
import Vocabulary

/// Two boxes at work on one home.
@Suite struct TwoBoxesTests {
    @Test(.timeLimit(.minutes(2))) func twoBoxesOnOneHomeShareTheWork() async throws {
        let stage = try await Stage()
        for index in 0..<10 { try stage.write("\(index).jpg", .photo, size: 100_000, seed: index) }
        let events = Mutex<[String]>([])
        var one = stage.settings()
        one.random = .seeded(1)
        var two = stage.settings()
        two.random = .seeded(2)
        async let first = stage.ingest(one)
        async let second: [ItemStatus] = { [two] in
            let box = try await Box.open(two)
            let report = try await box.enrol(PickRequest(paths: [stage.card], shoot: "test", prepare: .both))
            try await box.run(until: .itemsFinal(report.items)) { event in
                switch event {
                case .following: events.withLock { $0.append("following") }
                case .tookOver: events.withLock { $0.append("took over") }
                case .item, .waiting, .note: break
                }
            }
            return try await box.items(report.items)
        }()
        let (ofFirst, ofSecond) = try await (first.1, second)
        #expect(ofFirst.allSatisfy { $0.state == .ready } && ofSecond.allSatisfy { $0.state == .ready })
        #expect(try await Box.open(stage.settings()).items().count == 10)
        try await stage.end()
    }

    @Test(.timeLimit(.minutes(2))) func aBoxWithAnotherBackendThanTheOneAtWorkIsRefusedAndTakesNothing() async throws {
        let stage = try await Stage()
        try stage.write("a.jpg", .photo, size: 1000)
        let away = LossyTransport.away()
        let (isWorking, works) = AsyncStream.makeStream(of: Void.self)
        let firstBox = try await Box.open(stage.settings(away, patience: nil))
        _ = try await firstBox.enrol(PickRequest(paths: [stage.card], shoot: "test"))
        let first = Task {
            try await firstBox.run(until: .stopped) { event in
                if case .waiting(_?) = event { works.yield() }
            }
        }
        for await _ in isWorking { break }
        try stage.write("b.jpg", .photo, size: 1000, seed: 2)
        var settings = stage.settings()
        settings.serverName = "https://elsewhere"
        let box = try await Box.open(settings)
        let ofPick = await #expect(throws: Failure.self) {
            try await box.enrol(PickRequest(paths: [stage.card], shoot: "test"))
        }
        let ofRun = await #expect(throws: Failure.self) { try await box.run(until: .stopped) { _ in } }
        #expect(ofPick?.code == .alreadyRunning && ofRun?.code == .alreadyRunning)
        #expect(try await box.items().count == 1)
        first.cancel()
        await #expect(throws: Failure.self) { try await first.value }
        try await stage.ingest(stage.settings())
        try await stage.end()
    }

    @Test(.timeLimit(.minutes(2))) func theBoxThatLooksOnTakesOverWhenTheOtherOneGoes() async throws {
        let stage = try await Stage()
        for index in 0..<3 { try stage.write("\(index).jpg", .photo, size: 1000, seed: index) }
        // The first one gets nowhere, and stays until it is told to go.
        let away = LossyTransport.away()
        let (isWorking, works) = AsyncStream.makeStream(of: Void.self)
        let firstBox = try await Box.open(stage.settings(away, patience: nil))
        let report = try await firstBox.enrol(PickRequest(paths: [stage.card], shoot: "test"))
        let first = Task {
            try await firstBox.run(until: .stopped) { event in
                if case .waiting(_?) = event { works.yield() }
            }
        }
        for await _ in isWorking { break }

        let events = Mutex<[String]>([])
        var settings = stage.settings()
        settings.random = .seeded(2)
        let box = try await Box.open(settings)
        let second = try await box.enrol(PickRequest(paths: [stage.card], shoot: "test"))
        #expect(second.picks.allSatisfy { $0.outcome == .joined } && second.items == report.items)
        try await box.run(until: .itemsFinal(second.items)) { event in
            switch event {
            case .following(let process):
                events.withLock { $0.append("following") }
                #expect(process == Int(ProcessInfo.processInfo.processIdentifier))
                first.cancel()
            case .tookOver: events.withLock { $0.append("took over") }
            case .item, .waiting, .note: break
            }
        }
        await #expect(throws: Failure.self) { try await first.value }
        #expect(events.withLock { $0 } == ["following", "took over"])
        #expect(try await box.items(second.items).map(\.state) == Array(repeating: .ready, count: 3))
        try await stage.end()
    }
}
