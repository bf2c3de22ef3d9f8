// swift-tools-version: 6.2
import PackageDescription

// Every module is built the same way. Warnings are errors; C types cannot leave the module that wraps their library,
// because an import is internal unless it says otherwise.
let house: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .treatAllWarnings(as: .error),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
]

// Modules import downwards only; ARCHITECTURE.md draws it.
func module(_ name: String, uses dependencies: [Target.Dependency] = []) -> Target {
    .target(name: name, dependencies: dependencies, swiftSettings: house)
}
func program(_ name: String, uses dependencies: [Target.Dependency]) -> Target {
    .executableTarget(name: name, dependencies: dependencies, swiftSettings: house)
}
func tests(_ name: String, uses dependencies: [Target.Dependency], leaving excluded: [String] = []) -> Target {
    .testTarget(name: name, dependencies: dependencies, exclude: excluded, swiftSettings: house)
}
// Debian packages with a reason each: packages.txt.
func library(_ name: String, pkgConfig: String? = nil, apt: [String] = []) -> Target {
    .systemLibrary(name: name, pkgConfig: pkgConfig, providers: apt.isEmpty ? [] : [.apt(apt)])
}

let package = Package(
    name: "rushes",
    products: [
        .executable(name: "rushes", targets: ["rushes"]),
        .executable(name: "rushes-media", targets: ["rushes-media"]),
    ],
    targets: [
        // C libraries. Each has exactly one importer.
        library("CCrypto", pkgConfig: "libcrypto", apt: ["libssl-dev"]),
        library("CFiles"),
        library("CProcesses"),
        library("CSeccomp", pkgConfig: "libseccomp", apt: ["libseccomp-dev"]),
        library("CSQLite", pkgConfig: "sqlite3", apt: ["libsqlite3-dev"]),
        library("CCurl", pkgConfig: "libcurl", apt: ["libcurl4-openssl-dev"]),
        library("CXXHash", pkgConfig: "libxxhash", apt: ["libxxhash-dev"]),
        library("CExpat", pkgConfig: "expat", apt: ["libexpat1-dev"]),
        library("CMicrohttpd", pkgConfig: "libmicrohttpd", apt: ["libmicrohttpd-dev"]),
        library(
            "CFFmpeg", pkgConfig: "libavformat libavcodec libavfilter libswscale libswresample libavutil",
            apt: ["libavformat-dev", "libavcodec-dev", "libavfilter-dev", "libswscale-dev", "libswresample-dev"]),
        library("CTurboJPEG", pkgConfig: "libturbojpeg", apt: ["libturbojpeg0-dev"]),
        library("CJPEG", pkgConfig: "libjpeg", apt: ["libjpeg62-turbo-dev"]),
        library("CHEIF", pkgConfig: "libheif", apt: ["libheif-dev"]),
        library("CRaw", apt: ["libraw-dev"]),
        library("CLittleCMS", pkgConfig: "lcms2", apt: ["liblcms2-dev"]),
        library("CPNG", pkgConfig: "libpng", apt: ["libpng-dev"]),
        library("CWebP", pkgConfig: "libwebpdemux libwebp", apt: ["libwebp-dev"]),
        library("CTIFF", pkgConfig: "libtiff-4", apt: ["libtiff-dev"]),
        library("CJPEGXL", apt: ["libjxl-dev"]),
        library("CZlib", pkgConfig: "zlib", apt: ["zlib1g-dev"]),

        // Filters over rows of samples, in the processor's vector instructions.
        .target(name: "CPlanes"),
        // MD5 of four messages side by side.
        .target(name: "CMD5"),

        // Shared words, no I/O.
        module("Vocabulary"),

        // One thing each, no domain.
        module("Digests", uses: ["Vocabulary", "CCrypto", "CXXHash", "CMD5"]),
        module("Files", uses: ["Vocabulary", "Digests", "CFiles"]),
        module("SQLite", uses: ["Vocabulary", "Files", "CSQLite"]),
        module("Processes", uses: ["Vocabulary", "Files", "CProcesses", "CSeccomp"]),
        module("Curl", uses: ["Vocabulary", "CCurl"]),
        module("XML", uses: ["Vocabulary", "CExpat"]),
        module("HTTPServer", uses: ["Vocabulary", "CMicrohttpd"]),
        module("FFmpeg", uses: ["Vocabulary", "CFFmpeg"]),

        // Media: knows no queue and no network.
        module("Transcode", uses: ["Vocabulary", "FFmpeg"]),
        module(
            "Thumbs",
            uses: [
                "Vocabulary", "FFmpeg", "CTurboJPEG", "CJPEG", "CHEIF", "CRaw", "CLittleCMS", "CPNG", "CWebP", "CTIFF",
                "CJPEGXL", "CZlib", "CPlanes",
            ]),
        module("MediaJobs", uses: ["Vocabulary", "Files", "Digests", "Processes"]),

        // The two sides. They meet in Vocabulary.
        module("Ingest", uses: ["Vocabulary", "Files", "Digests", "SQLite", "Curl", "XML", "MediaJobs"]),
        module(
            "Backend", uses: ["Vocabulary", "Files", "Digests", "SQLite", "Curl", "XML", "HTTPServer", "MediaJobs"]),

        program(
            "rushes",
            uses: ["Vocabulary", "Files", "Digests", "Processes", "HTTPServer", "MediaJobs", "Ingest", "Backend"]),
        module("MediaWorker", uses: ["Vocabulary", "Files", "Digests", "Processes", "Transcode", "Thumbs"]),
        program("rushes-media", uses: ["MediaWorker"]),

        // What `make bench-photos` times: thumbnails in the worker's processes, and by the same code in one process.
        .executableTarget(
            name: "photo-bench", dependencies: ["MediaJobs", "Thumbs", "Vocabulary"], path: "Benchmarks/PhotoBench",
            swiftSettings: house),

        // What `make bench-upload` times beside the whole: sending and hashing alone.
        .executableTarget(
            name: "part-bench", dependencies: ["Curl", "Digests", "Files", "Vocabulary"], path: "Benchmarks/PartBench",
            swiftSettings: house),

        // A bad network for tests.
        .target(
            name: "LossyTransport", dependencies: ["Ingest", "Curl", "Vocabulary"], path: "Tests/LossyTransport",
            swiftSettings: house),

        // Real object stores for tests.
        .target(name: "TestStores", path: "Tests/TestStores", swiftSettings: house),

        tests("VocabularyTests", uses: ["Vocabulary"]),
        tests("FilesTests", uses: ["Files", "Digests", "SQLite", "Vocabulary"]),
        tests("TranscodeTests", uses: ["Transcode", "Thumbs", "FFmpeg", "Vocabulary"]),
        tests("ThumbsTests", uses: ["Thumbs", "FFmpeg", "Vocabulary"]),
        // A worker that misbehaves in every way that a test asks for.
        .executableTarget(
            name: "rogue-media", dependencies: ["Vocabulary", "Files", "Digests", "Processes"],
            path: "Tests/RogueMedia",
            swiftSettings: house),
        .target(name: "CAttempts", path: "Tests/CAttempts"),
        // The real worker with a decoder that does what a hostile file would make a hijacked one do.
        .executableTarget(
            name: "hijacked-media", dependencies: ["MediaWorker", "Vocabulary", "CAttempts"],
            path: "Tests/HijackedMedia",
            swiftSettings: house),
        tests(
            "MediaJobsTests",
            uses: [
                "MediaJobs", "Processes", "Files", "Vocabulary", "rogue-media", "hijacked-media", "rushes-media",
                "rushes",
            ]),
        tests(
            "BackendTests",
            uses: [
                "TestStores", "Backend", "HTTPServer", "SQLite", "Curl", "XML", "Digests", "Files", "MediaJobs",
                "Vocabulary",
            ]),
        tests("IngestTests", uses: ["Ingest", "Curl", "SQLite", "XML", "Digests", "Files", "MediaJobs", "Vocabulary"]),
        tests(
            "PipelineTests",
            uses: [
                "LossyTransport", "TestStores", "HTTPServer",
                "Ingest", "Backend", "Curl", "SQLite", "Digests", "Files", "MediaJobs", "Vocabulary", "rushes",
                "rushes-media", "hijacked-media",
            ],
            // Built by the test, to be preloaded.
            leaving: ["PowerCut/recorder.c"]),
    ]
)
