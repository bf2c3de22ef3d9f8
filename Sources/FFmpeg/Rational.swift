import CFFmpeg

/// A fraction as the libraries use it for time bases, rates and pixel shapes.
package struct Rational: Sendable, Equatable {
    package var num: Int32
    package var den: Int32

    package init(_ num: Int32, _ den: Int32) {
        self.num = num
        self.den = den
    }
    init(_ value: AVRational) { self.init(value.num, value.den) }

    /// False for the libraries' "unknown", 0/0 or 0/1.
    package var isKnown: Bool { num > 0 && den > 0 }
    package var double: Double { den == 0 ? 0 : Double(num) / Double(den) }
    package var inverse: Rational { Rational(den, num) }
    package func scaled(by num: Int, over den: Int) -> Rational {
        Rational(av_mul_q(c, AVRational(num: Int32(num), den: Int32(den))))
    }
    var c: AVRational { AVRational(num: num, den: den) }

    /// A count of `self` units in seconds.
    package func seconds(_ ticks: Int64) -> Double { Double(ticks) * double }
    /// The nearest count of `self` units.
    package func ticks(_ seconds: Double) -> Int64 {
        let ticks = (seconds / double).rounded()
        guard ticks.isFinite else { return 0 }
        return Int64(min(max(ticks, -Double(timestampMax)), Double(timestampMax)))
    }
    /// Converts a count of `self` units.
    package func convert(_ ticks: Int64, to other: Rational) -> Int64 {
        // The library answers an overflow with its "no timestamp".
        min(max(av_rescale_q(ticks, c, other.c), -timestampMax), timestampMax)
    }
}

/// Times beyond this come from damaged headers, and sums of them would overflow. In nanoseconds it is 52 days, in any other unit more.
private let timestampMax: Int64 = 1 << 52

/// The libraries' "no timestamp", and what cannot be one, as nil.
func timestamp(_ value: Int64) -> Int64? { value.magnitude > timestampMax.magnitude ? nil : value }

func duration(_ value: Int64) -> Int64 { min(max(value, 0), timestampMax) }
