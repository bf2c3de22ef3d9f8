import Files
import Foundation
import Testing

/// Honest media with a mark at their end, by which `hijacked-media` knows what it is to do.
enum Hostile {
    static let honestPhoto = CommandLineRun.fixtures + "/exif-orientation-6.jpg"
    static let honestVideo = CommandLineRun.fixtures + "/conforming.mp4"

    static func photo(_ deed: String, in folder: String) throws -> String {
        try copy(of: honestPhoto, deed, to: "\(folder)/\(deed).jpg")
    }

    static func video(_ deed: String, in folder: String) throws -> String {
        try copy(of: honestVideo, deed, to: "\(folder)/\(deed).mp4")
    }

    private static func copy(of path: String, _ deed: String, to target: String) throws -> String {
        try FileManager.default.copyItem(atPath: path, toPath: target)
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: target)
        try mark(target, deed)
        return target
    }

    /// An empty box at the end of an MP4 would be the same to a reader; JPEG readers stop at the end of the picture.
    static func mark(_ path: String, _ deed: String) throws {
        let file = try FileHandle(forWritingTo: URL(fileURLWithPath: path))
        try file.seekToEnd()
        let words = "RUSHES-HIJACK \(deed)"
        let box = [UInt8]([0, 0, 0, 40]) + Array("free".utf8)
        try file.write(contentsOf: box + Array(words.padding(toLength: 32, withPad: " ", startingAt: 0).utf8))
        try file.close()
    }

    static func ffmpeg(_ arguments: [String]) throws {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = ["ffmpeg", "-v", "error", "-y"] + arguments
        process.standardInput = FileHandle.nullDevice
        try process.run()
        process.waitUntilExit()
        try #require(process.terminationStatus == 0)
    }
}
