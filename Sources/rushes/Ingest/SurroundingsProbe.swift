import Files
import Foundation
import Glibc
import Ingest
import Synchronization
import Vocabulary

/// Looks at network, power and clock; what costs something is remembered for some seconds.
final class SurroundingsProbe: Sendable {
    /// What the settings say about the network.
    enum Metering: String, Sendable {
        case auto, yes, no
    }

    private struct Seen {
        var isMetered = false
        var isOnPower = true
        var at = -Double.infinity
    }
    private let seen = Mutex(Seen())
    private let metering: Metering
    private let queue = DispatchQueue(label: "rushes.surroundings")
    /// Seconds.
    private static let keptFor = 15.0

    init(_ metering: Metering) { self.metering = metering }

    func look() async -> Surroundings {
        let now = BoxClock.systemSteady()
        var known = seen.withLock { $0 }
        if now - known.at > Self.keptFor {
            // Asking NetworkManager starts a program and waits for it.
            known = await withCheckedContinuation { continuation in
                queue.async { @Sendable in
                    continuation.resume(
                        returning: Seen(isMetered: self.isMetered(), isOnPower: Self.isOnPower(), at: now))
                }
            }
            let fresh = known
            seen.withLock { $0 = fresh }
        }
        return Surroundings(isMetered: known.isMetered, isOnPower: known.isOnPower, minute: Self.minute())
    }

    static func minute() -> Int {
        var moment = time(nil)
        var parts = tm()
        localtime_r(&moment, &parts)
        return Int(parts.tm_hour) * 60 + Int(parts.tm_min)
    }

    private func isMetered() -> Bool {
        switch metering {
        case .yes: true
        case .no: false
        case .auto: NetworkManagerWords.isMetered(Self.askNetworkManager())
        }
    }

    /// Empty where there is no NetworkManager, or it does not answer within seconds.
    private static func askNetworkManager() -> String {
        guard
            let pipe = popen(
                "LC_ALL=C timeout 3 nmcli -t -f GENERAL.DEVICE,GENERAL.STATE,GENERAL.METERED,IP4.GATEWAY,IP6.GATEWAY device show 2>/dev/null",
                "re")
        else { return "" }
        defer { pclose(pipe) }
        var bytes = [UInt8](repeating: 0, count: 64 << 10)
        let count = fread(&bytes, 1, bytes.count, pipe)
        return String(decoding: bytes.prefix(count), as: UTF8.self)
    }

    private static let supplies = "/sys/class/power_supply"

    private static func isOnPower() -> Bool {
        let names = (try? Files.names(in: supplies)) ?? []
        return PowerSupply.isOnPower(
            names.map { name in
                PowerSupply(
                    type: word("\(supplies)/\(name)/type"), online: word("\(supplies)/\(name)/online"),
                    status: word("\(supplies)/\(name)/status"))
            })
    }

    private static func word(_ path: String) -> String? {
        guard let bytes = try? OpenFile.reading(path).read(count: 64, at: 0) else { return nil }
        return String(decoding: bytes, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
    }
}

/// What `nmcli -t … device show` says. Pure.
enum NetworkManagerWords {
    /// Whether the network that leads out is one where bytes cost something. NetworkManager's guesses count.
    static func isMetered(_ text: String) -> Bool {
        var devices: [[String: String]] = [[:]]
        for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
            guard let colon = line.firstIndex(of: ":") else {
                devices.append([:])
                continue
            }
            let name = String(line[..<colon])
            // Some versions leave the blank line between two devices out.
            if name == "GENERAL.DEVICE", devices[devices.count - 1][name] != nil { devices.append([:]) }
            devices[devices.count - 1][name] = String(line[line.index(after: colon)...])
        }
        let connected = devices.filter { $0["GENERAL.STATE"]?.hasPrefix("100") == true }
        let leadingOut = connected.filter { device in
            ["IP4.GATEWAY", "IP6.GATEWAY"].contains { !["", "--"].contains(device[$0] ?? "") }
        }
        return leadingOut.contains { $0["GENERAL.METERED"]?.hasPrefix("yes") == true }
    }
}

/// One entry of /sys/class/power_supply, as the kernel words it (Documentation/ABI/testing/sysfs-class-power). Pure.
struct PowerSupply: Sendable {
    var type, online, status: String?

    /// A machine without a battery is always on power.
    static func isOnPower(_ supplies: [PowerSupply]) -> Bool {
        let batteries = supplies.filter { $0.type == "Battery" }
        if supplies.contains(where: { $0.type != "Battery" && $0.online == "1" }) { return true }
        return !batteries.contains { $0.status == "Discharging" }
    }
}
