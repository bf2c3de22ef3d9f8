import Backend
import Curl
import Files
import Ingest
import MediaJobs
import Vocabulary

/// A box with its backend: a remote one, or the embedded one, which answers on a Unix socket in the home while the box works.
struct House: Sendable {
    let box: Box
    /// False where the backend in the home is the one to ask, and cannot be started since nothing can be written there.
    let canAsk: Bool
    private let embedded: EmbeddedBackend?
    private let media: MediaJobs

    /// - Parameters:
    ///   - server: as `--server` names it; it goes before the settings.
    ///   - patience: seconds for which nothing at all may get through; nil waits for ever.
    ///   - startsBackend: false where it is known that none will be asked.
    ///   - isLooking: nothing will be taken; the home may be one that cannot be written.
    static func open(
        _ configuration: Configuration, server: String?, media: MediaJobs, patience: Double? = 120,
        startsBackend: Bool = true, isLooking: Bool = false, inboxes: InboxSettings = .none
    ) async throws(Failure) -> House {
        if !isLooking { try configuration.makeHome() }
        var canAsk = true
        var embedded: EmbeddedBackend?
        let address: ServerAddress
        if let named = server ?? configuration.server {
            address = try self.address(named)
        } else {
            let backend = EmbeddedBackend(configuration, media: media, patience: patience)
            if startsBackend {
                do throws(Failure) { try await backend.start() } catch {
                    guard isLooking, error.code == .readOnly else { throw configuration.named(error) }
                    canAsk = false
                }
            }
            embedded = backend
            address = .socket(path: backend.socket)
        }
        // The own backend knows its user; a token in the settings is for another one.
        let needsToken = embedded == nil
        var settings = IngestSettings(home: configuration.home, server: address, media: .running(media)) {
            () throws(Failure) -> String? in needsToken ? try configuration.currentToken() : nil
        }
        settings.isTokenRenewed = needsToken && configuration.tokenFile != nil
        if embedded != nil { settings.serverName = IngestSettings.ownServerName }
        settings.conditions = configuration.conditions
        settings.order = configuration.order
        let probe = SurroundingsProbe(configuration.metering)
        settings.surroundings = { await probe.look() }
        settings.throttle = configuration.bandwidth.map { timetable in
            SendThrottle(rate: { timetable.rate(at: SurroundingsProbe.minute()) }, seconds: BoxClock.systemSteady)
        }
        settings.patience = patience
        settings.inboxes = inboxes
        do throws(Failure) {
            let box = isLooking ? try await Box.looking(settings) : try await Box.open(settings)
            return House(box: box, canAsk: canAsk, embedded: embedded, media: media)
        } catch {
            await embedded?.stop()
            throw configuration.named(error)
        }
    }

    var hasOwnBackend: Bool { embedded != nil }

    func close() async {
        await embedded?.stop()
        await media.shutDown()
    }

    private static func address(_ text: String) throws(Failure) -> ServerAddress {
        if text.hasPrefix("unix:") {
            let path = String(text.dropFirst(5))
            guard path.utf8.count <= Self.socketPathBytesMax else {
                throw Failure(
                    .socketPathTooLong,
                    "The socket's path has \(path.utf8.count) bytes, \(Self.socketPathBytesMax) at most: use a shorter one.",
                    detail: path)
            }
            return .socket(path: path)
        }
        guard text.hasPrefix("http://") || text.hasPrefix("https://") else {
            throw Failure(.usage, "--server takes unix:PATH, http://… or https://….")
        }
        // The address is kept with the items, and stands in receipts that others read.
        guard !text.dropFirst("https://".count).prefix(while: { $0 != "/" }).contains("@") else {
            throw Failure(
                .usage, "The server's address takes no user and no password: give a token in RUSHES_TOKEN.")
        }
        return .remote(url: text)
    }
    /// `sun_path` has 108 bytes with its closing zero (unix(7)).
    private static let socketPathBytesMax = 107
}

extension Configuration {
    func makeHome() throws(Failure) {
        do throws(Failure) { try Files.makeFolder(home) } catch {
            guard error.code != .diskFull else { throw error }
            throw cannotBeWritten(error)
        }
    }

    /// Whatever cannot be written in the home, it is the home that a person has to change. What is elsewhere, or has no path, keeps its own words.
    func named(_ failure: Failure) -> Failure {
        // Operators are told the whole path: `mkdir /home/a/.rushes/staging: …`, `/home/a/.rushes/catalog.db: …`.
        let isInHome = failure.detail.map { $0.contains(home + "/") || $0.contains(home + ":") } == true
        return failure.code == .readOnly && isInHome ? cannotBeWritten(failure) : failure
    }

    private func cannotBeWritten(_ failure: Failure) -> Failure {
        Failure(
            .readOnly,
            "The home “\(home)” cannot be made or written: change its permissions, or name another folder with RUSHES_HOME.",
            detail: failure.description)
    }

    /// From the file where one is named, since it may be renewed while we run.
    /// - Throws: `unauthorized`: for who writes the file anew, it is none for a moment, or half of one.
    func currentToken() throws(Failure) -> String? {
        guard let tokenFile else { return token }
        let bytes: [UInt8]
        do throws(Failure) { bytes = try OpenFile.reading(tokenFile).read(count: Self.tokenBytesMax, at: 0) } catch {
            throw Failure(
                .unauthorized, "The token file “\(tokenFile)” cannot be read: put the token there.",
                detail: error.description)
        }
        let token = String(decoding: bytes, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
        guard !token.isEmpty, token.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
            throw Failure(.unauthorized, "The token file “\(tokenFile)” does not hold one token, and nothing else.")
        }
        return token
    }
    private static let tokenBytesMax = 4096
}

/// The backend inside this process. Where another process already serves the folder, that one is used, and this one stands by to take its
/// place when it goes.
private actor EmbeddedBackend {
    nonisolated let socket: String
    private let settings: BackendSettings
    private var backend: Backend?
    private var standby: Task<Void, Never>?
    private static let standbyInterval = Duration.milliseconds(300)

    init(_ configuration: Configuration, media: MediaJobs, patience: Double?) {
        let folder = configuration.backendFolder
        socket = Configuration.socket(of: folder)
        var settings = BackendSettings(
            dataFolder: folder, listen: .unix(path: socket), store: configuration.store, media: media,
            thumbnailSizes: configuration.thumbnailSizes, log: { Output.say($0) })
        settings.storePatience = patience
        self.settings = settings
    }

    func start() async throws(Failure) {
        do throws(Failure) {
            backend = try await Backend.start(settings)
        } catch {
            guard error.code == .alreadyRunning else { throw error }
            standby = Task { await self.standBy() }
        }
    }

    private func standBy() async {
        while !Task.isCancelled, backend == nil {
            try? await Task.sleep(for: Self.standbyInterval)
            backend = try? await Backend.start(settings)
        }
    }

    func stop() async {
        standby?.cancel()
        await standby?.value
        await backend?.stop()
        backend = nil
    }
}
