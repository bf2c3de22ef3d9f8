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

    @Test func redGreenBlueIsNotBelievedOfLumaAndChroma() throws {
        let named = VideoFacts.ordinary { $0.color = ColorTags(matrix: "gbr") }
        #expect(named.effectiveMatrix == "bt709")
        let small = VideoFacts.ordinary {
            ($0.width, $0.height) = (192, 240)
            $0.color = ColorTags(matrix: "gbr")
        }
        #expect(small.effectiveMatrix == "smpte170m")
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
        #expect(
            chain.hasPrefix("premultiply=inplace=1,scale=") && chain.contains("out_range=limited,format=yuv444p12le,"))
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
        #expect(chain.hasPrefix("scale=") && chain.contains("out_range=limited,format=yuv444p,"))
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

    /// Black of full range is black, and white is white, whatever else has to be converted on the way.
    @Test(
        arguments: ["yuv420p", "yuvj420p", "yuv422p10le", "nv12", "uyvy422", "yuva420p", "yuva422p10le"], [true, false])
    func fullRangeKeepsItsContrast(_ name: String, _ isOdd: Bool) throws {
        let format = try PixelFormat.known(name)
        let isDeep = format.bitDepth > 8
        let facts = VideoFacts.ordinary {
            ($0.width, $0.height) = isOdd ? (63, 47) : (64, 48)
            $0.pixelFormat = format
            $0.hasAlpha = format.hasAlpha
            $0.color.range = .full
        }
        for target in [PictureChain.Target.video, .still] {
            let chain = PictureChain(facts, size: (32, 24), target: target, fieldsBecomeFrames: true)
            let levels = try [0, 255].map { value in
                let frame = try Frame.allocate(width: facts.width, height: facts.height, format: format)
                frame.fillFullRange(luma: value, isDeep: isDeep, isPacked: name == "uyvy422", rows: facts.height)
                // As its decoder would, the frame says itself what it is.
                let full = try Frame.allocate(), out = try Frame.allocate()
                try StillRenderer.filter(frame, chain: "setparams=range=full", into: full)
                try StillRenderer.filter(full, chain: chain.description, into: out)
                return try #require(out.withPlane(0) { first, stride in Int(first[12 * stride + 16]) })
            }
            let expected = target == .video ? [16, 235] : [0, 255]
            for (level, expected) in zip(levels, expected) {
                #expect(abs(level - expected) <= 2, "\(target) \(levels)")
            }
        }
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

extension Frame {
    /// Grey of one level, opaque, as a decoder gives it of a source of full range.
    fileprivate func fillFullRange(luma: Int, isDeep: Bool, isPacked: Bool, rows: Int) {
        for plane in 0..<4 {
            withPlane(plane) { first, stride in
                let lines =
                    plane == 1 || plane == 2 ? (rows + pixelFormat.chromaShift.y) >> pixelFormat.chromaShift.y : rows
                let value = plane == 0 ? luma : plane == 3 ? 255 : 128
                for index in 0..<(lines * stride) {
                    if isPacked {
                        first[index] = index.isMultiple(of: 2) ? 128 : UInt8(luma)
                    } else if isDeep {
                        let deep = value == 255 ? 1023 : value << 2
                        first[index] = UInt8(truncatingIfNeeded: index.isMultiple(of: 2) ? deep : deep >> 8)
                    } else {
                        first[index] = UInt8(value)
                    }
                }
            }
        }
    }
}

@Suite struct SoundMixTests {
    private func mix(_ names: [String]?, count: Int? = nil, codec: String = "aac", hasMix: Bool = false) -> SoundMix {
        SoundMix(
            ChannelPlaces(count: count ?? names?.count ?? 0, names: names), codec: codec, hasStereoMix: hasMix)
    }

    @Test func channelsWithoutNamesAreTakenByTheCustomOfTheirCodec() {
        #expect(mix(nil, count: 8) == .byNumber && mix(nil, count: 2, codec: "pcm_s16le") == .byNumber)
        #expect(mix(nil, count: 8, codec: "pcm_s24le") == .pair(left: 0, right: 1))
        #expect(mix(nil, count: 12) == .pair(left: 0, right: 1))
    }

    @Test(arguments: [
        (["FC", "FL", "FR", "BL"], 1, 2), (["LFE", "BL", "BR"], 1, 2), (["FL", "FC"], 0, 1), (["LFE", "FC"], 1, 1),
        (["BL", "FR", "BR", "FL"], 3, 1),
    ])
    func namesThatHaveNoMixAreReadForAPair(_ names: [String], _ left: Int, _ right: Int) {
        #expect(mix(names) == .pair(left: left, right: right))
        #expect(mix(names, hasMix: true) == .byName)
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
        ("late", { $0.start = 0.2 }), ("times of decoding", { $0.hasTimesOfDecoding = true }),
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
