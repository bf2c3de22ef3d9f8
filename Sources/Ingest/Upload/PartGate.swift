import Synchronization
import Vocabulary

/// Who may send a part next. Pure.
struct PartTurns<Waiter: Equatable & Sendable>: Sendable {
    /// What a part belongs to; the lower one goes first.
    enum Rank: Int, Sendable, CaseIterable {
        case askedSmall, asked, small, other

        /// - Parameter isAsked: a person has asked for the item.
        init(isAsked: Bool, bytes: Int) {
            switch (isAsked, IngestBounds.isSmall(bytes)) {
            case (true, true): self = .askedSmall
            case (true, false): self = .asked
            case (false, true): self = .small
            case (false, false): self = .other
            }
        }
    }

    let inFlightMax: Int
    private(set) var inFlight: [Rank: Int] = [:]
    private var waiting: [(rank: Rank, waiter: Waiter)] = []

    init(inFlightMax: Int) { self.inFlightMax = inFlightMax }

    mutating func wait(_ waiter: Waiter, _ rank: Rank) { waiting.append((rank, waiter)) }

    /// - Returns: false where it has had its turn already.
    mutating func leave(_ waiter: Waiter) -> Bool {
        guard let index = waiting.firstIndex(where: { $0.waiter == waiter }) else { return false }
        waiting.remove(at: index)
        return true
    }

    mutating func ended(_ rank: Rank) { inFlight[rank, default: 0] -= 1 }

    /// - Returns: the one whose turn it is, until there is none; he counts as in flight until `ended`.
    mutating func next() -> Waiter? {
        guard inFlight.values.reduce(0, +) < inFlightMax else { return nil }
        let ranks = Set(waiting.map(\.rank)).sorted { $0.rawValue < $1.rawValue }
        guard var rank = ranks.first, let last = ranks.last else { return nil }
        // Whatever keeps coming, the last ones in line have one turn of all: a film comes to its end while photos come in.
        if rank != last, inFlightMax > 1, inFlight[last, default: 0] == 0,
            inFlight.values.reduce(0, +) == inFlightMax - 1
        {
            rank = last
        }
        guard let index = waiting.firstIndex(where: { $0.rank == rank }) else { return nil }
        inFlight[rank, default: 0] += 1
        return waiting.remove(at: index).waiter
    }
}

/// Bounds the parts of all items that are on their way at once, so that what is small does not share the line with everything else.
final class PartGate: Sendable {
    typealias Turns = PartTurns<Int>
    private struct State {
        var turns: Turns
        var waiters: [Int: CheckedContinuation<Bool, Never>] = [:]
        /// Of the last waiter.
        var number = 0
    }
    private let state: Mutex<State>

    init(inFlightMax: Int) { state = Mutex(State(turns: Turns(inFlightMax: inFlightMax))) }

    /// Sends when it is its turn.
    /// - Throws: `cancelled` when the surrounding Swift task is, before its turn has come.
    func pass<Value: Sendable>(
        _ rank: Turns.Rank, _ send: @Sendable () async throws(Failure) -> Value
    ) async throws(Failure) -> Value {
        guard await enter(rank) else { throw Failure(.cancelled, "Stopped.") }
        defer { change { $0.turns.ended(rank) } }
        return try await send()
    }

    private func enter(_ rank: Turns.Rank) async -> Bool {
        let number = state.withLock { state in
            state.number += 1
            return state.number
        }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                change { state in
                    state.waiters[number] = continuation
                    state.turns.wait(number, rank)
                }
                if Task.isCancelled { leave(number) }
            }
        } onCancel: {
            leave(number)
        }
    }

    private func leave(_ number: Int) {
        let waiter = state.withLock { state in
            state.turns.leave(number) ? state.waiters.removeValue(forKey: number) : nil
        }
        waiter?.resume(returning: false)
    }

    private func change(_ body: (inout State) -> Void) {
        let called = state.withLock { state in
            body(&state)
            var called: [CheckedContinuation<Bool, Never>] = []
            while let next = state.turns.next() {
                if let waiter = state.waiters.removeValue(forKey: next) { called.append(waiter) }
            }
            return called
        }
        for waiter in called { waiter.resume(returning: true) }
    }
}
