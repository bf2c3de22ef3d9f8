import FFmpeg
import Testing
import Vocabulary

@testable import Transcode

@Suite struct OrientationTests {
    /// a, b, c, d of a display matrix in units of 1.
    @Test(arguments: [
        ([1, 0, 0, 1], Orientation.upright, 0), ([0, 1, -1, 0], .clockwise90, 90), ([-1, 0, 0, -1], .rotated180, 180),
        ([0, -1, 1, 0], .clockwise270, 270), ([-1, 0, 0, 1], .mirrored, 0), ([1, 0, 0, -1], .flipped, 180),
        ([0, 1, 1, 0], .transposed, 90), ([0, -1, -1, 0], .transversed, 270),
    ])
    func aDisplayMatrixBecomesOneOfEightOrientations(_ units: [Int32], _ expected: Orientation, _ degrees: Int) {
        let one: Int32 = 1 << 16
        let matrix = [units[0] * one, units[1] * one, 0, units[2] * one, units[3] * one, 0, 0, 0, 1 << 30]
        #expect(Orientation(matrix: matrix) == expected)
        #expect(expected.degreesClockwise == degrees)
    }

    @Test func aMatrixOfTheWrongLengthTurnsNothing() { #expect(Orientation(matrix: [1, 2, 3]) == .upright) }
}

@Suite struct PictureSizeTests {
    @Test(arguments: [
        (3840, 2160, 1920, 1080), (2160, 3840, 1080, 1920), (1920, 839, 1920, 838), (161, 121, 160, 120),
        (1934, 2160, 1080, 1206), (7680, 4320, 1920, 1080), (320, 240, 320, 240), (1, 1, 2, 2),
    ])
    func aRenditionFitsEvenlyAndIsNeverEnlarged(_ width: Int, _ height: Int, _ toWidth: Int, _ toHeight: Int) {
        let size = PictureBounds.p1080.fit(width, height)
        #expect(size.width == toWidth)
        #expect(size.height == toHeight)
    }

    @Test(arguments: [(1920, 1080, 320, 180), (100, 50, 100, 50), (161, 121, 161, 121), (1080, 1920, 180, 320)])
    func aStillKeepsItsShapeAndIsNeverEnlarged(_ width: Int, _ height: Int, _ toWidth: Int, _ toHeight: Int) {
        let size = stillSize(width, height, longSide: 320)
        #expect(size.width == toWidth)
        #expect(size.height == toHeight)
    }

    @Test func squarePixelsComeBeforeTurning() {
        let facts = VideoFacts.ordinary {
            $0.width = 1440
            $0.sampleAspect = Rational(4, 3)
            $0.orientation = .clockwise90
        }
        #expect(facts.displaySize == (1080, 1920))
    }
}

@Suite struct PictureChainTests {
    private func chain(
        _ target: PictureChain.Target = .video, size: (width: Int, height: Int) = (1920, 1080),
        _ change: (inout VideoFacts) throws -> Void
    ) rethrows -> String {
        var facts = VideoFacts.ordinary()
        try change(&facts)
        return PictureChain(facts, size: size, target: target, fieldsBecomeFrames: true).description
    }

    @Test(arguments: [
        (1080, "matrixin=709"), (720, "matrixin=709"), (719, "matrixin=170m"), (576, "matrixin=170m"),
    ])
    func anUntaggedMatrixIsGuessedByTheNumberOfLines(_ height: Int, _ expected: String) {
        let chain = chain {
            $0.height = height
            $0.color = ColorTags()
        }
        #expect(chain.contains(expected))
    }

    @Test func aNamedMatrixIsBelievedWhateverTheSize() {
        #expect(chain { $0.color.matrix = "smpte170m" }.contains("matrixin=170m"))
    }

    @Test func standardRangeVideoIsNeverToneMapped() { #expect(!chain { _ in }.contains("tonemap")) }

    @Test(arguments: [(VideoFacts.HDR.hlg, "arib-std-b67"), (.pq(peak: nil), "smpte2084")])
    func highDynamicRangeIsMappedInLinearLightAfterScaling(_ hdr: VideoFacts.HDR, _ transfer: String) throws {
        let chain = chain {
            $0.hdr = hdr
            $0.color = ColorTags(range: .limited, primaries: "bt2020", transfer: transfer, matrix: "bt2020nc")
        }
        let steps = ["w=1920:h=1080", "transfer=linear", "tonemap=", "transfer=709"].map {
            chain.range(of: $0)?.lowerBound
        }
        let places = try steps.map { try #require($0) }
        #expect(places == places.sorted())
        #expect(chain.contains("transferin=\(transfer)"))
    }

    @Test func aPeakBeyondBeliefIsCapped() {
        let chain = chain { $0.hdr = .pq(peak: 65_535) }
        #expect(chain.contains("peak=40.0"))
    }

    @Test func fullRangeIsToldApartFromLimited() {
        #expect(chain { $0.color.range = .full }.contains("rangein=full"))
        #expect(chain { _ in }.contains("rangein=limited"))
    }

    @Test func transparencyIsFlattenedOnBlackBeforeItIsDropped() throws {
        let chain = try chain { $0.pixelFormat = try .known("yuva444p12le") }
        #expect(chain.hasPrefix("premultiply=inplace=1,format=yuv444p12le,"))
    }

    @Test func redGreenBlueEntersAsPlanes() throws {
        let chain = try chain { $0.pixelFormat = try .known("rgb24") }
        #expect(chain.hasPrefix("format=gbrp,"))
        #expect(chain.contains("matrixin=gbr"))
    }

    @Test func oddSidesLoseTheirSubsamplingFirst() {
        let chain = chain {
            $0.width = 161
            $0.height = 121
        }
        #expect(chain.hasPrefix("format=yuv444p,"))
    }

    @Test func interlacedVideoIsDeinterlacedBeforeScalingAndTurnedLast() throws {
        let chain = chain(size: (1080, 1920)) {
            $0.isInterlaced = true
            $0.orientation = .clockwise90
        }
        let deinterlace = try #require(chain.range(of: "bwdif=mode=send_field")),
            scale = try #require(chain.range(of: "w=1920:h=1080"))
        let turn = try #require(chain.range(of: "transpose=clock"))
        #expect(deinterlace.lowerBound < scale.lowerBound)
        #expect(scale.lowerBound < turn.lowerBound)
    }

    private static let primaries = [
        "bt709", "bt470m", "bt470bg", "smpte170m", "smpte240m", "film", "bt2020", "smpte428", "smpte431", "smpte432",
        "ebu3213",
    ]
    private static let matrices = [
        "bt709", "smpte170m", "bt470bg", "bt2020nc", "bt2020c", "smpte240m", "fcc", "ycgco", "ictcp",
        "chroma-derived-nc",
    ]

    /// A grey picture stays grey whatever matrix and primaries a source names.
    @Test(arguments: primaries, matrices)
    func everyColourThatASourceMayNameGoesThroughTheFilters(_ primaries: String, _ matrix: String) throws {
        let facts = VideoFacts.ordinary {
            ($0.width, $0.height) = (64, 48)
            $0.color = ColorTags(range: .limited, primaries: primaries, transfer: "bt709", matrix: matrix)
        }
        let chain = PictureChain(facts, size: (32, 24), target: .video, fieldsBecomeFrames: true)
        let out = try filtered(chain, format: "yuv420p", luma: 126)
        #expect(abs(out - 126) < 3)
    }

    private static let formats = [
        "yuv410p", "yuv411p", "yuv440p", "yuv422p", "yuv444p", "yuva420p", "yuva444p10le", "yuv420p12le", "yuv444p16le",
        "nv12",
        "uyvy422", "gray", "gray10le", "ya8", "rgb24", "bgr0", "rgba", "gbrp", "gbrap", "rgb48le", "rgb555le", "pal8",
        "monob",
        "xyz12le",
    ]
    @Test(arguments: formats)
    func everyPixelFormatGoesThroughTheFilters(_ name: String) throws {
        let format = try PixelFormat.known(name)
        let facts = VideoFacts.ordinary {
            ($0.width, $0.height) = (64, 48)
            $0.pixelFormat = format
        }
        let chain = PictureChain(facts, size: (32, 24), target: .video, fieldsBecomeFrames: true)
        _ = try filtered(chain, format: name, luma: 126)
    }

    @Test(arguments: [VideoFacts.HDR.hlg, .pq(peak: 1000), .pq(peak: nil)])
    func brighterStaysBrighterThroughToneMapping(_ hdr: VideoFacts.HDR) throws {
        let facts = VideoFacts.ordinary {
            ($0.width, $0.height) = (64, 48)
            $0.hdr = hdr
            $0.color = ColorTags(range: .limited, primaries: "bt2020", matrix: "bt2020nc")
        }
        let chain = PictureChain(facts, size: (32, 24), target: .video, fieldsBecomeFrames: true)
        let levels = try [40, 90, 140, 180].map { try filtered(chain, format: "yuv420p", luma: $0) }
        #expect(levels == levels.sorted() && Set(levels).count == levels.count)
        #expect(levels.allSatisfy { (16...235).contains($0) })
    }

    /// - Returns: the luma in the middle of what came out.
    private func filtered(_ chain: PictureChain, format: String, luma: Int) throws -> Int {
        let frame = try Frame.allocate(width: 64, height: 48, format: .known(format))
        for plane in 0..<4 {
            frame.withPlane(plane) { first, stride in
                let rows = plane == 1 && format == "pal8" ? 1 : plane == 0 ? 48 : 12
                for index in 0..<(rows * stride) { first[index] = plane == 0 ? UInt8(luma) : 128 }
            }
        }
        if format == "yuv420p" {
            for plane in 1..<3 {
                frame.withPlane(plane) { first, stride in for index in 0..<(24 * stride) { first[index] = 128 } }
            }
        }
        frame.pts = 0
        let graph = try FilterGraph.video(
            like: frame, timeBase: Rational(1, 25), rate: Rational(25, 1), chain: chain.description, threads: 1)
        try graph.push(frame)
        try graph.finish()
        let out = try Frame.allocate()
        #expect(try graph.pull(into: out))
        #expect(out.width == 32 && out.height == 24)
        return try #require(out.withPlane(0) { first, stride in Int(first[12 * stride + 16]) })
    }

    @Test func aStillIsMadeInTheColoursOfJFIF() {
        #expect(chain(.still) { _ in }.contains("matrix=170m:transfer=709:primaries=709:range=full"))
    }
}

@Suite struct TranscodePlanTests {
    @Test(
        arguments: [
            (0.0, nil, 0.0), (10.0, nil, 10.0), (1.0, 0.0, 0.0), (0.05, 0.0, 0.05), (0.0, 1.0, 0.0),
            (500.0, 0.0, 500.0),
        ] as [(Double, Double?, Double)])
    func theFirstPictureIsAtZeroUnlessTheSoundHasALead(_ video: Double, _ sound: Double?, _ expected: Double) {
        #expect(TranscodePlan.origin(video: video, sound: sound) == expected)
    }

    @Test(arguments: [(30.0, 1), (59.94, 1), (60.0, 1), (90.0, 2), (100.0, 2), (120.0, 2), (240.0, 4)])
    func framesBeyondSixtyASecondAreDroppedEvenly(_ rate: Double, _ keepEvery: Int) {
        let facts = VideoFacts.ordinary {
            $0.averageRate = rate
            $0.frames = Int(rate * 10)
        }
        #expect(TranscodePlan.keepEvery(facts, duration: 10) == keepEvery)
    }

    @Test func framesSqueezedIntoAnInstantOfALongRecordingAreAllKept() {
        let facts = VideoFacts.ordinary {
            $0.averageRate = 600
            $0.frames = 30
        }
        #expect(TranscodePlan.keepEvery(facts, duration: 1.24) == 1)
    }

    @Test(arguments: [
        (Rational(1, 25), Rational(1, 10_000)), (Rational(1, 90_000), Rational(1, 90_000)),
        (Rational(0, 1), Rational(1, 90_000)),
        (Rational(1, 1_000_000_000), Rational(1, 90_000)), (Rational(1, 600), Rational(1, 10_200)),
    ])
    func aCoarseTimeBaseIsRefinedToAMultipleOfItself(_ source: Rational, _ expected: Rational) {
        #expect(TranscodePlan.timeBase(source) == expected)
    }
}

@Suite struct ConformanceTests {
    @Test func anOrdinaryRecordingConforms() { #expect(Conformance.conforms(VideoFacts.ordinary())) }

    static let spoilers: [(String, @Sendable (inout VideoFacts) -> Void)] = [
        ("another codec", { $0.codec = "hevc" }), ("High 10", { $0.profile = 110 }),
        ("interlaced", { $0.isInterlaced = true }),
        ("full range", { $0.color.range = .full }), ("BT.601", { $0.color.matrix = "smpte170m" }),
        ("HDR", { $0.hdr = .hlg }),
        ("4K", { ($0.width, $0.height) = (3840, 2160) }), ("odd", { $0.width = 1919 }),
        ("stretched", { $0.sampleAspect = Rational(4, 3) }), ("turned", { $0.orientation = .clockwise90 }),
        ("120 frames a second", { $0.averageRate = 120 }), ("edited", { $0.hasEdits = true }),
        ("late", { $0.start = 0.2 }),
        ("rare key frames", { $0.keyframeIntervalMax = 11 }), ("unknown key frames", { $0.keyframeIntervalMax = nil }),
        ("10 bit", { $0.pixelFormat = PixelFormat(named: "yuv420p10le") ?? $0.pixelFormat }),
    ]
    @Test(arguments: spoilers.indices)
    func oneThingOutOfLineIsEnoughToEncode(_ index: Int) {
        let (name, change) = Self.spoilers[index]
        #expect(!Conformance.conforms(VideoFacts.ordinary(change)), "\(name)")
    }

    @Test func portraitAndUntaggedVideoConforms() {
        let facts = VideoFacts.ordinary {
            ($0.width, $0.height) = (1080, 1920)
            $0.color = ColorTags()
        }
        #expect(Conformance.conforms(facts))
    }
}

@Suite struct PosterPolicyTests {
    @Test func aGoodPictureBeatsABlackOneAndAFlatOne() {
        let good = PosterPolicy.Look(mean: 110, deviation: 40)
        #expect(PosterPolicy.isGood(good))
        for bad in [PosterPolicy.Look(mean: 2, deviation: 1), PosterPolicy.Look(mean: 128, deviation: 1)] {
            #expect(!PosterPolicy.isGood(bad))
            #expect(PosterPolicy.score(good, place: 1) > PosterPolicy.score(bad, place: 0.1))
        }
    }
}
