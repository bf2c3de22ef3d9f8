import Testing

@testable import MediaJobs

@Suite struct MemoryPlanTests {
    private static let plans: [(memoryMiB: Int, processCountMax: Int, processes: Int, shared: Int, alone: Int)] = [
        (64, 2, 1, 0, 0), (100, 8, 1, 36, 36), (256, 2, 2, 64, 192), (256, 1, 1, 192, 192), (256, 16, 2, 64, 192),
        (4096, 2, 2, 1984, 4032), (1024, 16, 8, 64, 960),
    ]

    @Test(arguments: 0..<7)
    func allProcessesTogetherStayBelowTheMemory(row: Int) {
        let (memory, most, processes, shared, alone) = Self.plans[row]
        let plan = MemoryPlan(memoryBytes: memory << 20, processCountMax: most)
        #expect(plan.processCount == processes)
        #expect(plan.sharedBytes >> 20 == shared && plan.aloneBytes >> 20 == alone)
        #expect(plan.processCount * (plan.sharedBytes + MemoryPlan.processBytes) <= memory << 20)
        #expect(plan.aloneBytes + MemoryPlan.processBytes <= memory << 20)
    }

    @Test func whoNeedsSeveralPlacesIsNotPassedByThoseThatNeedOne() async throws {
        let admission = Admission(count: 2, waiterCountMax: 10)
        try await admission.enter()
        let (order, told) = AsyncStream<String>.makeStream()
        let large = Task {
            try await admission.enter(2)
            told.yield("large")
            admission.leave(2)
        }
        while admission.waiterCount < 1 { await Task.yield() }
        let small = Task {
            try await admission.enter()
            told.yield("small")
            admission.leave()
        }
        while admission.waiterCount < 2 { await Task.yield() }
        admission.leave()
        var names: [String] = []
        for await name in order.prefix(2) { names.append(name) }
        #expect(names == ["large", "small"])
        try await large.value
        try await small.value
    }

    @Test func whoGivesUpWaitingLetsThoseBehindGoOn() async throws {
        let admission = Admission(count: 2, waiterCountMax: 10)
        try await admission.enter()
        let large = Task { try await admission.enter(2) }
        while admission.waiterCount < 1 { await Task.yield() }
        let small = Task { try await admission.enter() }
        while admission.waiterCount < 2 { await Task.yield() }
        large.cancel()
        try await small.value
        await #expect(throws: (any Error).self) { try await large.value }
    }
}
