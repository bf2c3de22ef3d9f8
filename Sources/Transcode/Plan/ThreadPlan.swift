import Glibc

/// How many threads each stage gets. More of them finish sooner and cost more: HEVC decoded by frame threads takes a fifth more processor
/// time than by one (measured on 4K), while decoder and encoder keep two cores busy as it is.
struct ThreadPlan: Equatable {
    var decoder: Int
    var filter: Int
    var encoder: Int

    /// Beyond this frame threads only take memory.
    private static let decoderMax = 8
    private static let encoderMax = 16

    /// Of this machine.
    static var coreCount: Int { max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN))) }

    /// - Parameters:
    ///   - requested: for each stage; 0 leaves it to the plan.
    ///   - cores: at least 1.
    init(requested: Int, cores: Int) {
        guard requested == 0 else {
            (decoder, filter, encoder) = (requested, requested, requested)
            return
        }
        decoder = min(max(1, cores / 2), Self.decoderMax)
        filter = decoder
        encoder = min(cores, Self.encoderMax)
    }

    static let single = ThreadPlan(requested: 1, cores: 1)
}
