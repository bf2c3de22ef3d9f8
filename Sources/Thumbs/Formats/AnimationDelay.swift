/// How long a picture of an animation stands. One rule for what headers say and for what is shown, or counts and times would disagree.
enum AnimationDelay {
    /// Seconds for a picture that gives no time, or one so short that no viewer keeps to it: as browsers do.
    static let missing = 0.1
    /// Seconds; with some room for rounding.
    private static let ignoredMax = 0.0105

    static func shown(_ said: Double) -> Double { said > ignoredMax ? said : missing }
}
