import Glibc
import HTTPServer
import Vocabulary

/// Who may ask for what.
extension API {
    /// Over the Unix socket the kernel says who it is; elsewhere a token does. Looked up for each request, so that one that was taken back is
    /// worth nothing from then on.
    func caller(of request: HTTPRequest) async throws(Failure) -> Caller {
        if let authorization = request.headers["authorization"] {
            guard let token = AccessToken(authorization: authorization), let row = try await valid(token) else {
                throw Failure(
                    .unauthorized, "This token is not valid (any more): make another with rushes token create.")
            }
            return Caller(owner: row.owner, shoot: row.shoot, token: token)
        }
        if case .local(let user) = request.peer, user == getuid() { return .local }
        throw Failure(.unauthorized, "A token is needed: give one with RUSHES_TOKEN or RUSHES_TOKEN_FILE.")
    }

    /// Whether a caller that was let in would be again.
    func isStillAdmitted(_ caller: Caller) async throws(Failure) -> Bool {
        guard let token = caller.token else { return true }
        return try await valid(token) != nil
    }

    private func valid(_ token: AccessToken) async throws(Failure) -> TokenRow? {
        guard let row = try await ledger.token(token.name), row.admits(token, at: clock()) else { return nil }
        return row
    }

    /// A caller of one shoot: what belongs to another one is not there for it, as another owner's is not.
    /// - Throws: `not-found`; `forbidden` where the request itself names another shoot or is about all of them.
    func admit(_ caller: Caller, to route: Route) async throws(Failure) {
        guard caller.shoot != nil else { return }
        switch route {
        case .partURLs(let id), .parts(let id), .complete(let id), .reopen(let id), .abort(let id),
            .uploadOffset(let id), .tusOffset(let id), .tusPatch(let id), .tusEnd(let id):
            try await admit(caller, toUpload: id)
        case .attach(let id), .item(let id), .removeItem(let id), .playback(let id):
            try await admit(caller, toItem: id)
        case .metrics: throw Self.anotherShoot
        case .openUpload, .tusOptions, .tusCreate, .putPart, .items, .media, .events, .storageEvent, .health,
            .readiness:
            return
        }
    }

    func admit(_ caller: Caller, toUpload id: UploadID) async throws(Failure) {
        guard let bound = caller.shoot, try await ledger.upload(id, owner: caller.owner) != nil else { return }
        guard try await ledger.shoot(of: id) == bound else { throw LedgerFault.unknown }
    }

    func admit(_ caller: Caller, toItem id: ItemID) async throws(Failure) {
        guard caller.shoot != nil, let item = try await ledger.item(id, owner: caller.owner) else { return }
        guard caller.mayTouch(item.shoot) else { throw LedgerFault.unknown }
    }

    /// - Parameter named: the shoot that the request names; nil for all.
    /// - Returns: the shoot that the answer is about; nil for all.
    func shoot(_ named: String?, for caller: Caller) throws(Failure) -> String? {
        guard let named else { return caller.shoot }
        guard caller.mayTouch(named) else { throw Self.anotherShoot }
        return named
    }

    private static let anotherShoot = Failure(
        .forbidden, "This token is for another shoot: use its own, or one for all shoots.")
}
