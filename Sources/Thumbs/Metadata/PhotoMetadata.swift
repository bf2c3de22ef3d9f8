/// What a photo says about itself, from whichever block of metadata its format has.
struct PhotoMetadata: Sendable, Equatable {
    var orientation: Orientation?
    /// When the shutter was open, or what stands for it.
    var shot: CaptureTime?
    /// When satellites were asked for the place: mostly a little before.
    var located: CaptureTime?
    /// When the file was last written, which an editor changes: the last resort.
    var written: CaptureTime?
    /// Latitude, longitude in degrees.
    var position: GeoPosition?
    var camera: String?
    /// What a Live Photo's still and film have in common.
    var contentIdentifier: String?
    /// Numbers without a profile are Adobe RGB.
    var isAdobeRGB = false

    var taken: CaptureTime? { shot ?? located ?? written }

    init(
        orientation: Orientation? = nil, shot: CaptureTime? = nil, located: CaptureTime? = nil,
        written: CaptureTime? = nil,
        position: GeoPosition? = nil, camera: String? = nil, contentIdentifier: String? = nil, isAdobeRGB: Bool = false
    ) {
        (self.orientation, self.shot, self.located, self.written) = (orientation, shot, located, written)
        (self.position, self.camera, self.contentIdentifier) = (position, camera, contentIdentifier)
        self.isAdobeRGB = isAdobeRGB
    }

    /// Of all blocks of a file: EXIF before XMP before IPTC, and of several the first before what follows; one that cannot be read hides none.
    init(exif: [ByteView], xmp: ByteView?, iptc: ByteView? = nil) {
        self.init()
        for block in exif { self = completed(by: EXIF.read(block) ?? PhotoMetadata()) }
        self = completed(by: xmp, iptc)
    }

    func completed(by xmp: ByteView?, _ iptc: ByteView?) -> PhotoMetadata {
        completed(by: xmp.map(XMP.read) ?? PhotoMetadata()).completed(by: iptc.map(IPTC.read) ?? PhotoMetadata())
    }

    /// What this block does not know is taken from another.
    func completed(by other: PhotoMetadata) -> PhotoMetadata {
        var result = self
        result.orientation = orientation ?? other.orientation
        result.shot = shot ?? other.shot
        result.located = located ?? other.located
        result.written = written ?? other.written
        result.position = position ?? other.position
        result.camera = camera ?? other.camera
        result.contentIdentifier = contentIdentifier ?? other.contentIdentifier
        result.isAdobeRGB = isAdobeRGB || other.isAdobeRGB
        return result
    }

    /// Make and model as people say it: the model alone where it already starts with the make.
    static func camera(make: String?, model: String?) -> String? {
        guard let model else { return make }
        guard let make, !model.lowercased().hasPrefix(make.lowercased()) else { return model }
        // "NIKON CORPORATION" and "NIKON D800E": the first word is enough.
        let first = make.split(separator: " ").first.map(String.init) ?? make
        return model.lowercased().hasPrefix(first.lowercased()) ? model : "\(make) \(model)"
    }
}

/// Degrees, north and east positive.
struct GeoPosition: Sendable, Equatable {
    var latitude: Double
    var longitude: Double

    /// - Returns: nil for what is no place on Earth, and for 0/0, which cameras write when they do not know.
    init?(latitude: Double, longitude: Double) {
        guard latitude.isFinite, longitude.isFinite, abs(latitude) <= 90, abs(longitude) <= 180 else { return nil }
        guard latitude != 0 || longitude != 0 else { return nil }
        self.latitude = latitude
        self.longitude = longitude
    }
}
