import Glibc
import Processes
import Testing
import Vocabulary

@testable import MediaJobs

@Suite struct BreakdownTests {
    @Test(
        "each way of ending has its code",
        arguments: [
            (Breakdown.died, ChildExit.How.signalled(SIGSEGV), String?.none, FailureCode.mediaCrashed),
            (.died, .exited(1), nil, .mediaCrashed),
            (.died, .exited(0), nil, .mediaCrashed),
            (.died, .signalled(SIGABRT), "what(): std::bad_alloc", .overBudget),
            (.died, .signalled(SIGKILL), nil, .mediaKilled),
            (.died, .signalled(SIGTERM), nil, .mediaKilled),
            (.endless(.seconds(1)), .signalled(SIGKILL), nil, .mediaTimeout),
            (.noStart, .signalled(SIGKILL), nil, .mediaCrashed),
            (.died, .signalled(SIGXCPU), nil, .mediaTimeout),
            (.died, .signalled(SIGXFSZ), nil, .outputInvalid),
            (.silent, .signalled(SIGKILL), nil, .mediaTimeout),
            (.overdue(.seconds(1)), .signalled(SIGKILL), nil, .mediaTimeout),
            (.tookMemory(bytes: 1 << 30), .signalled(SIGKILL), nil, .overBudget),
            (.brokeProtocol("nonsense"), .signalled(SIGKILL), nil, .mediaProtocol),
            (.noStart, .exited(127), nil, .mediaCrashed),
        ])
    func code(_ breakdown: Breakdown, _ how: ChildExit.How, _ words: String?, _ code: FailureCode) {
        let failure = breakdown.failure(
            file: "a.mov", exit: ChildExit(how: how), lastWords: words, machineRanOut: false)
        #expect(failure.code == code)
    }

    @Test func onlyAKillThatWasNotForMemoryIsBegunAgainAtOnce() {
        let killed = ChildExit(how: .signalled(SIGKILL))
        let forMemory = Breakdown.died.failure(file: "a.mov", exit: killed, lastWords: nil, machineRanOut: true)
        #expect(forMemory.code == .mediaKilled && forMemory.remedy == .askUser)
        let bySomebody = Breakdown.died.failure(file: "a.mov", exit: killed, lastWords: nil, machineRanOut: false)
        #expect(bySomebody.remedy == .retryLater)
        let crashed = ChildExit(how: .signalled(SIGSEGV))
        #expect(
            Breakdown.died.failure(file: "a.mov", exit: crashed, lastWords: nil, machineRanOut: true).code
                == .mediaCrashed)
    }
}
