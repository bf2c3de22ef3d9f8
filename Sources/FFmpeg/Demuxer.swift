import CFFmpeg
import Glibc
package import Vocabulary

/// Owns an opened container over a descriptor.
package struct Demuxer: ~Copyable {
    private let pointer: UnsafeMutablePointer<AVFormatContext>
    private let input: DescriptorInput
    private let context: UnsafeMutablePointer<AVIOContext>
    private let clock: Clock
    private let tracks: TrackBoxes

    /// Of a container whose times may jump; nil of any other.
    private final class Clock {
        var joined: JoinedClock?
    }

    /// The containers that cameras, phones and recorders write. Everything that opens further files or addresses (playlists,
    /// image sequences, session descriptions) and everything that takes plain text for media stays outside.
    private static let allowedFormats = [
        "mov", "matroska", "avi", "wav", "w64", "mpegts", "mpegtsraw", "mpeg", "mpegvideo", "mxf", "asf", "ogg", "flac",
        "mp3", "aac", "flv", "live_flv", "dv", "aiff", "caf", "amr", "amrnb", "amrwb", "ac3", "eac3", "dts", "rm",
        "gif", "apng", "ivf",
        "nut", "gxf", "wtv", "nsv", "pva", "dhav", "h261", "h263", "h264", "hevc", "obu", "vc1", "m4v", "mjpeg",
        "yuv4mpegpipe", "au", "tta", "wv", "ape", "mpc", "mpc8", "r3d",
    ].joined(separator: ",")
    /// Of stills, FFmpeg reads JPEG 2000 alone; all others have a library of their own. Tests look at pixels as JPEG and BMP.
    private static let allowedPictures = "j2k_pipe,jpeg_pipe,bmp_pipe"

    package enum Purpose: Sendable { case media, picture }

    private init(
        owning pointer: UnsafeMutablePointer<AVFormatContext>, _ input: DescriptorInput,
        _ context: UnsafeMutablePointer<AVIOContext>
    ) {
        self.pointer = pointer
        self.input = input
        self.context = context
        clock = Clock()
        tracks = TrackBoxes(input)
        startClock()
    }
    deinit {
        var pointer: UnsafeMutablePointer<AVFormatContext>? = pointer
        avformat_close_input(&pointer)
        freeIOContext(context)
    }

    /// - Parameter usesEdits: false shows the streams as coded, without the edit list.
    /// - Throws: `source-unreadable` when the disk failed; otherwise what the library made of the bytes.
    package static func open(
        _ descriptor: Int32, for purpose: Purpose = .media, usesEdits: Bool = true
    ) throws(Failure) -> Demuxer {
        LibraryLog.install()
        let input = try DescriptorInput(descriptor)
        if purpose == .media { input.corrections = PCMSampleEntries.corrections(input) + EditLists.corrections(input) }
        let context = try input.makeContext()
        var pointer = avformat_alloc_context()
        guard let format = pointer else {
            freeIOContext(context)
            throw failure("avformat_alloc_context", rushes_error(ENOMEM))
        }
        format.pointee.pb = context
        format.pointee.flags |= AVFMT_FLAG_CUSTOM_IO
        // A file may name other files (data references, playlists): none of them is opened.
        format.pointee.io_open = { _, _, _, _, _ in rushes_error(EACCES) }
        var options: OpaquePointer?
        defer { av_dict_free(&options) }
        av_dict_set(&options, "format_whitelist", purpose == .media ? allowedFormats : allowedPictures, 0)
        av_dict_set(&options, "protocol_whitelist", "none", 0)
        if !usesEdits { av_dict_set(&options, "ignore_editlist", "1", 0) }

        let code = avformat_open_input(&pointer, nil, nil, &options)
        guard code >= 0, let format = pointer else {
            // The library has freed the format context itself.
            freeIOContext(context)
            try input.throwFault()
            throw failure("avformat_open_input", damage(code))
        }
        let demuxer = Demuxer(owning: format, input, context)
        // To read streams decodes what is not clear from headers: a picture would be decoded twice.
        guard purpose == .media else { return demuxer }
        if format.pointee.iformat.pointee.flags & AVFMT_TS_DISCONT != 0, demuxer.formatName.hasPrefix("mpeg") {
            format.pointee.probesize = Int64(lateProbeBytes)
            format.pointee.max_analyze_duration = lateProbeMicroseconds
        }
        let found = avformat_find_stream_info(format, nil)
        try input.throwFault()
        try check("avformat_find_stream_info", found)
        return demuxer
    }

    /// Transport and program streams have no header, and a track in them may begin late: a camera's sound after a countdown, a broadcast's
    /// after a cut. FFmpeg's own bounds are 5 MB and 5 s.
    private static let lateProbeBytes = 48 << 20
    private static let lateProbeMicroseconds: Int64 = 30_000_000

    /// FFmpeg's names for the container, comma-separated.
    package var formatName: String { String(cString: pointer.pointee.iformat.pointee.name) }
    /// 0 to 100: how sure the detection is.
    package var probeScore: Int { Int(pointer.pointee.probe_score) }
    package var metadata: [String: String] { metadataDictionary(pointer.pointee.metadata) }
    /// Seconds; nil where the container does not say and nothing could be guessed.
    package var duration: Double? {
        timestamp(pointer.pointee.duration).flatMap { $0 > 0 ? Double($0) / Double(AV_TIME_BASE) : nil }
    }
    package var fileSize: Int64 { input.size }

    package var streamCount: Int { Int(pointer.pointee.nb_streams) }
    package func stream(_ index: Int) -> StreamDescription {
        var stream = StreamDescription(raw(index), of: pointer)
        stream.isAuxiliary = tracks.auxiliary.contains(index)
        stream.isManifold = tracks.manifold.contains(index)
        return stream
    }
    package var streams: [StreamDescription] { (0..<streamCount).map { stream($0) } }
    func raw(_ index: Int) -> UnsafeMutablePointer<AVStream> {
        guard let stream = pointer.pointee.streams[index] else {
            preconditionFailure("stream \(index) of \(streamCount)")
        }
        return stream
    }

    /// Packets of other streams are not even read where the container allows that.
    package func keepOnly(_ kept: Set<Int>) {
        for index in 0..<streamCount {
            raw(index).pointee.discard = kept.contains(index) ? AVDISCARD_DEFAULT : AVDISCARD_ALL
        }
    }

    /// Times in a row that a demuxer may ask to be called again.
    private static let againMax = 4096

    /// - Returns: false at the end.
    package func read(into packet: borrowing Packet) throws(Failure) -> Bool {
        var code = av_read_frame(pointer, packet.pointer)
        for _ in 0..<Self.againMax where code == rushes_error_again { code = av_read_frame(pointer, packet.pointer) }
        if code >= 0 {
            makeContinuous(packet)
            return true
        }
        try input.throwFault()
        // The disk is well: that is how some demuxers (DV, RealMedia, PVA) say that the file ends inside a packet.
        if code == rushes_error_end || code == rushes_error(EIO) { return false }
        throw failure("av_read_frame", damage(code))
    }

    /// A container that is damaged from here on ends here; only a fault of the disk is thrown.
    package func readWhatCanBeRead(into packet: borrowing Packet) throws(Failure) -> Bool {
        do { return try read(into: packet) } catch {
            guard error.code == .corrupt || error.code == .internalError else { throw error }
            return false
        }
    }

    /// Goes to the keyframe at or before a time.
    /// - Parameter ticks: in the stream's time base.
    package func seek(stream: Int, to ticks: Int64) throws(Failure) {
        let code = av_seek_frame(pointer, Int32(stream), ticks, AVSEEK_FLAG_BACKWARD)
        try input.throwFault()
        try check("av_seek_frame", code)
        startClock()
    }

    /// The times of what was read so far jumped, and were made continuous. A place found by its time is then not the wanted one.
    package var hasJumped: Bool { clock.joined?.hasJumped ?? false }

    private func startClock() {
        clock.joined = pointer.pointee.iformat.pointee.flags & AVFMT_TS_DISCONT != 0 ? JoinedClock() : nil
    }

    private func makeContinuous(_ packet: borrowing Packet) {
        guard let time = packet.dts ?? packet.pts else { return }
        let timeBase = Rational(raw(packet.stream).pointee.time_base), microseconds = Rational(1, 1_000_000)
        guard
            let offset = clock.joined?.offset(
                stream: packet.stream, time: timeBase.convert(time, to: microseconds),
                duration: timeBase.convert(packet.duration, to: microseconds)), offset != 0
        else { return }
        let ticks = microseconds.convert(offset, to: timeBase)
        packet.pts = packet.pts.map { $0 + ticks }
        packet.dts = packet.dts.map { $0 + ticks }
    }

    /// One sample of the container's index.
    package struct IndexEntry: Sendable {
        package var position: Int64
        package var bytes: Int
        /// Decoding time in the stream's time base.
        package var timestamp: Int64
        package var isKey: Bool
        package var isDiscarded: Bool
    }
    package func indexCount(stream: Int) -> Int { Int(avformat_index_get_entries_count(raw(stream))) }
    package func indexEntry(stream: Int, _ number: Int) -> IndexEntry? {
        guard let entry = avformat_index_get_entry(raw(stream), Int32(number))?.pointee,
            let time = timestamp(entry.timestamp)
        else { return nil }
        return IndexEntry(
            position: entry.pos, bytes: Int(entry.size), timestamp: time,
            isKey: entry.flags & AVINDEX_KEYFRAME != 0, isDiscarded: entry.flags & AVINDEX_DISCARD_FRAME != 0)
    }
}

/// A demuxer is out of memory when a header asks for a buffer beyond all bounds: that is the header's fault.
private func damage(_ code: Int32) -> Int32 { code == rushes_error(ENOMEM) ? rushes_error_invalid_data : code }
