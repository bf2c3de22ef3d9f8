/// What a file's name alone says, in bytes: names on cards are not always UTF-8.
struct FileNames {
    /// Lower-case ASCII letters; other bytes as they are. FAT and exFAT cards do not tell cases apart.
    static func folded(_ name: some Sequence<UInt8>) -> [UInt8] {
        name.map { (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains($0) ? $0 | 0x20 : $0 }
    }

    /// What follows the last dot, folded; empty where there is none or where the name starts with its only dot.
    static func fileExtension(_ name: [UInt8]) -> String {
        guard let dot = name.lastIndex(of: UInt8(ascii: ".")), dot > 0 else { return "" }
        return String(decoding: folded(name[(dot + 1)...]), as: UTF8.self)
    }

    /// The name without its last dot and what follows.
    static func stem(_ name: [UInt8]) -> [UInt8] {
        guard let dot = name.lastIndex(of: UInt8(ascii: ".")), dot > 0 else { return name }
        return Array(name[..<dot])
    }
}

/// Files and folders that cameras and operating systems leave beside the footage. Nobody chose them.
enum SystemFiles {
    private static let folders: Set<String> = [
        // macOS, Windows, Linux, Synology
        ".trashes", ".spotlight-v100", ".fseventsd", ".temporaryitems", ".documentrevisions-v100", ".apdisk",
        "system volume information", "$recycle.bin", "recycler", "lost+found", "@eadir",
        // Sony XAVC: thumbnails of the clips
        "thmbnl",
        // ASC MHL hash lists, ours among them
        MHLManifest.folderName,
    ]
    private static let names: Set<String> = [
        ".ds_store", ".localized", ".nomedia", "thumbs.db", "ehthumbs.db", "desktop.ini", "autorun.inf",
        ".volumeicon.icns",
        ".metadata_never_index", ".com.apple.timemachine.donotpresent", "cachedir.tag",
        // Sony and Panasonic clip databases
        "mediapro.xml", "cueup.xml", "discmeta.xml", "lastclip.txt", "indexmir.ind", "index.bdm", "movieobj.bdm",
        // What `rushes mhl` writes beside its hash list
        Receipt.name,
    ]
    private static let extensions: Set<String> = [
        // Small copies that cameras make for their own display: GoPro, DJI, Canon
        "thm", "lrv", "lrf",
        // Indexes: Canon catalogue, AVCHD, XDCAM
        "ctg", "bdm", "ind", "mpl", "cpi", "bdx", "tid", "tdt", "ppn", "smi", "bim",
    ]

    /// The same as glob patterns of gitignore(5), which tell cases apart.
    static var patterns: [String] {
        let globs = { (names: Set<String>) in names.sorted().map { name in name.map(glob).joined() } }
        return globs(folders).map { $0 + "/" } + globs(names) + globs(extensions).map { "*." + $0 }
            + ["._*", ".rushes-tmp-*"]
    }

    private static func glob(_ character: Character) -> String {
        character.isLetter ? "[\(character.lowercased())\(character.uppercased())]" : String(character)
    }

    static func isFolder(_ name: [UInt8]) -> Bool {
        folders.contains(String(decoding: FileNames.folded(name), as: UTF8.self))
    }

    static func isFile(_ name: [UInt8]) -> Bool {
        // AppleDouble files hold resource forks on foreign file systems.
        if name.starts(with: "._".utf8) || name.starts(with: ".rushes-tmp-".utf8) { return true }
        return names.contains(String(decoding: FileNames.folded(name), as: UTF8.self))
            || extensions.contains(FileNames.fileExtension(name))
    }
}
