import Vocabulary

/// What a person may ask of an item while others work on it.
public enum SteeringVerb: String, Sendable, CaseIterable {
    /// Stop for the time being, at once; nothing is thrown away.
    case pause
    case resume
    /// Give the item up: nothing of it stays at the backend, nothing that was made of it stays here.
    case cancel
    /// Once more, as the item's next generation.
    case retry
    /// Throw away the bytes of a given-up item that are only in staging.
    case discard
}

/// What a verb does to an item in some state: the whole table. Pure.
struct SteeringPolicy: Sendable {
    enum Decision: Sendable, Equatable {
        case go
        /// It is so already; in words.
        case already(String)
        /// It cannot be done; in words, with what can.
        case refuse(String)
    }

    /// - Parameter hasStaged: whether given files of the item are in staging.
    static func decide(_ verb: SteeringVerb, state: ItemState, intent: Intent, hasStaged: Bool) -> Decision {
        let isCancelling = intent == .cancelled && state != .cancelled
        return switch verb {
        case .pause: pause(state, intent, isCancelling)
        case .resume: resume(state, intent, isCancelling)
        case .cancel: cancel(state, isCancelling)
        case .retry: retry(state, intent, isCancelling)
        case .discard: discard(state, isCancelling, hasStaged)
        }
    }

    private static func pause(_ state: ItemState, _ intent: Intent, _ isCancelling: Bool) -> Decision {
        if isCancelling { return .refuse("is being cancelled") }
        if state.isFinal { return .refuse("is \(state.rawValue): there is nothing to pause") }
        return intent == .paused ? .already("paused already") : .go
    }

    private static func resume(_ state: ItemState, _ intent: Intent, _ isCancelling: Bool) -> Decision {
        if isCancelling { return .refuse("is being cancelled; rushes retry starts it again after that") }
        if state == .ready { return .already("ready") }
        if state.isFinal { return .refuse("is \(state.rawValue): \(hint(state))") }
        return intent == .paused ? .go : .already("on its way")
    }

    private static func cancel(_ state: ItemState, _ isCancelling: Bool) -> Decision {
        if isCancelling { return .go }
        return switch state {
        case .picked, .staged, .preparing, .uploading, .processing, .failed, .missing: .go
        case .cancelled: .already("cancelled already")
        case .ready: .refuse("is ready: the backend has it, and only there can it be deleted")
        case .rejected: .refuse("is rejected: there is nothing to cancel")
        }
    }

    private static func retry(_ state: ItemState, _ intent: Intent, _ isCancelling: Bool) -> Decision {
        if isCancelling { return .refuse("is still being cancelled: try again when it is") }
        return switch state {
        case .failed, .missing, .cancelled: .go
        case .ready: .already("ready")
        case .rejected: .refuse("is rejected for what it is: trying again would not change that")
        case .picked, .staged, .preparing, .uploading, .processing:
            intent == .paused ? .refuse("is paused: rushes resume lets it go on") : .already("on its way")
        }
    }

    private static func discard(_ state: ItemState, _ isCancelling: Bool, _ hasStaged: Bool) -> Decision {
        if isCancelling { return .refuse("is still being cancelled: try again when it is") }
        return switch state {
        case .cancelled, .rejected: hasStaged ? .go : .already("nothing of it is in staging")
        case .ready: .already("nothing of it is only in staging")
        case .failed, .missing, .picked, .staged, .preparing, .uploading, .processing:
            .refuse("is \(state.rawValue): rushes cancel comes first")
        }
    }

    private static func hint(_ state: ItemState) -> String {
        switch state {
        case .failed, .missing, .cancelled: "rushes retry starts it again"
        default: "there is nothing to go on with"
        }
    }
}
