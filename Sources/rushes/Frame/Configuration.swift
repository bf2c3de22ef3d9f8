import Backend
import Files
import Foundation
import Ingest
import Vocabulary

/// Settings from outside: `RUSHES_*` variables, over a JSON5 file. Secrets come from a variable or a file, never from arguments.
struct Configuration: Sendable, Equatable {
    /// Where everything of this user's lives: catalog, staging, the embedded backend.
    var home: String
    /// `unix:PATH`, `http://…` or `https://…`; nil for the embedded backend.
    var server: String?
    var token: String?
    /// Read again for each request, so that a renewed token counts at once.
    var tokenFile: String?
    /// Folders that `rushes run` watches; what is put there is moved away.
    var inboxes: [String] = []
    /// Seconds for which a file in an inbox has to stay the same; nil for the default.
    var inboxQuiet: Int?
    /// Long sides of the thumbnails that the backend makes.
    var thumbnailSizes = ThumbSettings.standardSizes
    /// When files are sent.
    var conditions = ConditionPolicy()
    var metering = SurroundingsProbe.Metering.auto
    var bandwidth: BandwidthTimetable?
    var order = QueueOrder.chosen
    /// Where the backend keeps blobs; nil for its own folder.
    var store: S3Settings?

    /// The keys of the file.
    private struct Settings: Decodable {
        var home, server, token: String?
        var tokenFile: String?
        var inboxes: [String]?
        var inboxQuiet: Int?
        var thumbnailSizes: [Int]?
        var metered, meteredMax, needsPower, hours, bandwidth, order: String?
        var endpoint, bucket, region, accessKey, secretKey: String?
        enum CodingKeys: String, CodingKey, CaseIterable {
            case home, server, token, inboxes, metered, hours, bandwidth, order
            case meteredMax = "metered_max"
            case needsPower = "needs_power"
            case endpoint = "s3_endpoint"
            case bucket = "s3_bucket"
            case region = "s3_region"
            case accessKey = "s3_access_key"
            case secretKey = "s3_secret_key"
            case inboxQuiet = "inbox_quiet"
            case thumbnailSizes = "thumbnail_sizes"
            case tokenFile = "token_file"
        }
    }

    /// A value of which only the key counts.
    private struct Anything: Decodable { init(from decoder: any Decoder) {} }

    /// - Parameters:
    ///   - environment: all variables.
    ///   - read: the contents of a file, nil where there is none.
    init(environment: [String: String], read: (String) throws(Failure) -> Data?) throws(Failure) {
        func variable(_ name: String) -> String? { environment[name].flatMap { $0.isEmpty ? nil : $0 } }
        let user = variable("HOME") ?? NSHomeDirectory()
        let file =
            variable("RUSHES_CONFIG") ?? (variable("XDG_CONFIG_HOME") ?? user + "/.config") + "/rushes/config.json5"
        var settings = Settings()
        if let data = try read(file) {
            let decoder = JSONDecoder()
            decoder.allowsJSON5 = true
            let known = Settings.CodingKeys.allCases.map(\.rawValue)
            let names = known.joined(separator: ", ")
            let unknown: [String]
            do {
                settings = try decoder.decode(Settings.self, from: data)
                unknown = try decoder.decode([String: Anything].self, from: data).keys.filter { !known.contains($0) }
            } catch {
                throw Failure(
                    .usage,
                    "The settings in “\(file)” cannot be read: they are a JSON5 object with \(names).",
                    detail: "\(error)")
            }
            // Passed over, a mistyped one would be a wish that nobody hears.
            guard unknown.isEmpty else {
                throw Failure(
                    .usage,
                    "“\(file)” sets \(unknown.sorted().joined(separator: ", ")), which is not known: there are \(names)."
                )
            }
        } else if variable("RUSHES_CONFIG") != nil {
            throw Failure(.usage, "The settings file “\(file)” of RUSHES_CONFIG does not exist.")
        }
        home =
            variable("RUSHES_HOME") ?? settings.home ?? (variable("XDG_DATA_HOME") ?? user + "/.local/share")
            + "/rushes"
        server = variable("RUSHES_SERVER") ?? settings.server
        token = variable("RUSHES_TOKEN") ?? settings.token
        tokenFile = variable("RUSHES_TOKEN_FILE") ?? settings.tokenFile
        inboxes = variable("RUSHES_INBOX")?.split(separator: ":").map(String.init) ?? settings.inboxes ?? []
        inboxQuiet = try Self.quiet(variable("RUSHES_INBOX_QUIET"), settings.inboxQuiet)
        thumbnailSizes = try Self.sizes(variable("RUSHES_THUMBNAIL_SIZES"), settings.thumbnailSizes)
        if let text = variable("RUSHES_METERED") ?? settings.metered {
            guard let known = SurroundingsProbe.Metering(rawValue: text) else {
                throw Failure(.usage, "RUSHES_METERED (metered) takes auto, yes or no.")
            }
            metering = known
        }
        if let text = variable("RUSHES_METERED_MAX") ?? settings.meteredMax {
            guard let bytes = ByteCount.parse(text) else {
                throw Failure(.usage, "RUSHES_METERED_MAX (metered_max) takes bytes with K, M or G.")
            }
            conditions.meteredBytesMax = bytes
        }
        if let text = variable("RUSHES_NEEDS_POWER") ?? settings.needsPower {
            guard ["yes", "no"].contains(text) else {
                throw Failure(.usage, "RUSHES_NEEDS_POWER (needs_power) takes yes or no.")
            }
            conditions.needsPower = text == "yes"
        }
        if let text = variable("RUSHES_HOURS") ?? settings.hours { conditions.hours = try AllowedHours(text) }
        if let text = variable("RUSHES_BANDWIDTH") ?? settings.bandwidth { bandwidth = try BandwidthTimetable(text) }
        if let text = variable("RUSHES_ORDER") ?? settings.order {
            order = try Self.order(text, named: "RUSHES_ORDER (order)")
        }
        if let endpoint = variable("RUSHES_S3_ENDPOINT") ?? settings.endpoint {
            store = try S3Settings(
                endpoint: endpoint, bucket: variable("RUSHES_S3_BUCKET") ?? settings.bucket ?? "",
                region: variable("RUSHES_S3_REGION") ?? settings.region,
                accessKey: variable("RUSHES_S3_ACCESS_KEY") ?? settings.accessKey ?? "",
                secretKey: variable("RUSHES_S3_SECRET_KEY") ?? settings.secretKey ?? "")
        }
    }

    static func order(_ text: String, named name: String) throws(Failure) -> QueueOrder {
        guard let order = QueueOrder(rawValue: text) else {
            throw Failure(.usage, "\(name) takes chosen, smallest or newest.")
        }
        return order
    }

    private static func quiet(_ text: String?, _ setting: Int?) throws(Failure) -> Int? {
        guard let quiet = text.map({ Int($0) }) ?? setting.map({ Optional($0) }) else { return nil }
        guard let quiet, (1...3600).contains(quiet) else {
            throw Failure(.usage, "RUSHES_INBOX_QUIET (inbox_quiet) takes seconds from 1 to 3600.")
        }
        return quiet
    }

    private static func sizes(_ text: String?, _ setting: [Int]?) throws(Failure) -> [Int] {
        let words = text?.split(separator: ",", omittingEmptySubsequences: false).map {
            $0.trimmingCharacters(in: .whitespaces)
        }
        guard let sizes = words.map({ $0.map { Int($0) ?? 0 } }) ?? setting else { return ThumbSettings.standardSizes }
        let (range, countMax) = (ThumbSettings.sizeRange, ThumbSettings.sizeCountMax)
        guard (1...countMax).contains(sizes.count), Set(sizes).count == sizes.count, sizes.allSatisfy(range.contains)
        else {
            throw Failure(
                .usage,
                "RUSHES_THUMBNAIL_SIZES (thumbnail_sizes) takes 1 to \(countMax) different sizes from \(range.lowerBound) to \(range.upperBound), separated by commas.",
                detail: "\(sizes)")
        }
        return sizes
    }

    static func current() throws(Failure) -> Configuration {
        try Configuration(environment: ProcessInfo.processInfo.environment) { path throws(Failure) in
            guard try Files.facts(path) != nil else { return nil }
            return Data(try OpenFile.reading(path).read(count: fileBytesMax, at: 0))
        }
    }
    private static let fileBytesMax = 64 << 10

    /// The embedded backend's data.
    var backendFolder: String { home + "/backend" }
    /// Where the embedded backend answers, and `rushes serve` without `--listen`.
    static func socket(of backendFolder: String) -> String { backendFolder + "/backend.sock" }
}
