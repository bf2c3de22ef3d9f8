/// Tells camera raws from plain TIFFs, both of which have the same first bytes, and finds a missing end. Pure.
struct RAWStructure {
    let structure: TIFFStructure
    /// Main directories and those below them.
    let directories: [TIFFStructure.Directory]
    let isRAW: Bool
    let isDNG: Bool

    init?(_ bytes: ByteView) {
        guard let structure = TIFFStructure(bytes) else { return nil }
        self.structure = structure
        let main = structure.directories()
        var directories: [TIFFStructure.Directory] = []
        for directory in main where directories.count < Self.directoryCountMax {
            directories += [directory] + structure.children(directory.entry(330))
        }
        self.directories = directories
        isDNG = main.first?.entry(50706) != nil
        // Colour filter array and linear raw; Nikon's, Sony's, Samsung's and Pentax' compressions.
        let photometrics: Set<Int> = [32803, 34892]
        let compressions: Set<Int> = [34713, 32767, 32769, 32770, 32772, 65535, 65000]
        // "CR" is Canon's mark; another magic number is that of Olympus or Panasonic.
        let isMarked =
            bytes.starts(with: "CR", at: 8) || ![42, 43].contains(bytes.u16(at: 2, bigEndian: structure.isBigEndian))
        isRAW =
            isDNG || isMarked
            || directories.contains {
                photometrics.contains(structure.integer($0.entry(262)) ?? 0)
                    || compressions.contains(structure.integer($0.entry(259)) ?? 0)
            }
    }

    /// True where strips or tiles lie behind the end of the file.
    var lacksBytes: Bool {
        if structure.directory(at: structure.firstDirectory) == nil { return true }
        // A page behind the end. Cameras write anything there.
        if !isRAW, let next = structure.directories().last?.next, next >= structure.bytes.count { return true }
        // Panasonic's strips are of no size, and often nowhere: the sensor's data begins where a tag of their own says.
        if structure.magic == TIFFStructure.panasonic {
            guard let place = directories.lazy.compactMap({ structure.integer($0.entry(0x118)) }).first else {
                return false
            }
            return place >= structure.bytes.count
        }
        var left = Self.stripCountMax
        return directories.contains { directory in
            [(273, 279), (324, 325), (513, 514)].contains { (offsets: UInt16, counts: UInt16) in
                guard let places = directory.entry(offsets), let lengths = directory.entry(counts) else { return false }
                let count = min(places.count, lengths.count, left)
                left -= count
                return (0..<count).contains { index in
                    guard let place = structure.integer(places, at: index),
                        let length = structure.integer(lengths, at: index)
                    else { return false }
                    return length > 0 && (sum(place, length).map { $0 > structure.bytes.count } ?? true)
                }
            }
        }
    }

    /// Strips and tiles of all directories together.
    static let stripCountMax = 1_000_000
    /// From so many on, no further main directory is read.
    static let directoryCountMax = 128
}
