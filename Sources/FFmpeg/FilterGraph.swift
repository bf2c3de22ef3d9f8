import CFFmpeg
package import Vocabulary

/// Owns a chain of filters with one way in and one way out.
package struct FilterGraph: ~Copyable {
    private let pointer: UnsafeMutablePointer<AVFilterGraph>
    private let source: UnsafeMutablePointer<AVFilterContext>
    private let sink: UnsafeMutablePointer<AVFilterContext>

    private init(
        owning pointer: UnsafeMutablePointer<AVFilterGraph>, _ source: UnsafeMutablePointer<AVFilterContext>,
        _ sink: UnsafeMutablePointer<AVFilterContext>
    ) {
        self.pointer = pointer
        self.source = source
        self.sink = sink
    }
    deinit {
        var pointer: UnsafeMutablePointer<AVFilterGraph>? = pointer
        avfilter_graph_free(&pointer)
    }

    /// A graph for pictures like `frame`.
    /// - Parameters:
    ///   - chain: FFmpeg's filter notation.
    ///   - rate: frames a second, where known.
    package static func video(
        like frame: borrowing Frame, timeBase: Rational, rate: Rational, chain: String, threads: Int
    ) throws(Failure) -> FilterGraph {
        let aspect = frame.sampleAspect.isKnown ? frame.sampleAspect : Rational(1, 1)
        let arguments = [
            "video_size=\(frame.width)x\(frame.height)", "pix_fmt=\(frame.rawFormat)",
            "time_base=\(timeBase.num)/\(timeBase.den)",
            "pixel_aspect=\(aspect.num)/\(aspect.den)", rate.isKnown ? "frame_rate=\(rate.num)/\(rate.den)" : nil,
        ].compactMap(\.self).joined(separator: ":")
        return try make("buffer", arguments, "buffersink", chain, threads)
    }

    /// A graph for sound like `frame`, in a time base of one sample.
    /// - Parameter frameSamples: every frame that comes out has so many samples, but the last.
    package static func audio(
        like frame: borrowing Frame, timeBase: Rational, chain: String, frameSamples: Int
    ) throws(Failure) -> FilterGraph {
        let format = av_get_sample_fmt_name(AVSampleFormat(frame.rawFormat)).map { String(cString: $0) } ?? "none"
        let layout = describe(frame.pointer.pointee.ch_layout) ?? "\(frame.channels)C"
        let arguments =
            "time_base=\(timeBase.num)/\(timeBase.den):sample_rate=\(frame.sampleRate):sample_fmt=\(format):channel_layout=\(layout)"
        let graph = try make("abuffer", arguments, "abuffersink", chain, 1)
        if frameSamples > 0 { av_buffersink_set_frame_size(graph.sink, UInt32(frameSamples)) }
        return graph
    }

    private static func make(
        _ sourceName: String, _ arguments: String, _ sinkName: String, _ chain: String, _ threads: Int
    ) throws(Failure) -> FilterGraph {
        LibraryLog.install()
        var pointer: UnsafeMutablePointer<AVFilterGraph>? = try allocated(
            "avfilter_graph_alloc", avfilter_graph_alloc())
        guard let graph = pointer else { preconditionFailure("just allocated") }
        graph.pointee.nb_threads = Int32(threads)
        var source: UnsafeMutablePointer<AVFilterContext>?, sink: UnsafeMutablePointer<AVFilterContext>?
        var code = avfilter_graph_create_filter(&source, avfilter_get_by_name(sourceName), "in", arguments, nil, graph)
        if code >= 0 {
            code = avfilter_graph_create_filter(&sink, avfilter_get_by_name(sinkName), "out", nil, nil, graph)
        }
        guard code >= 0, let source, let sink else {
            avfilter_graph_free(&pointer)
            throw failure("avfilter_graph_create_filter", code)
        }
        let owner = FilterGraph(owning: graph, source, sink)
        var inputs = avfilter_inout_alloc(), outputs = avfilter_inout_alloc()
        defer {
            avfilter_inout_free(&inputs)
            avfilter_inout_free(&outputs)
        }
        // Named from the chain's side: its open input is our source's output.
        outputs?.pointee.name = av_strdup("in")
        outputs?.pointee.filter_ctx = source
        inputs?.pointee.name = av_strdup("out")
        inputs?.pointee.filter_ctx = sink
        try check("avfilter_graph_parse_ptr", avfilter_graph_parse_ptr(graph, chain, &inputs, &outputs, nil))
        try check("avfilter_graph_config", avfilter_graph_config(graph, nil))
        return owner
    }

    package var timeBase: Rational { Rational(av_buffersink_get_time_base(sink)) }

    /// The frame stays the caller's.
    package func push(_ frame: borrowing Frame) throws(Failure) {
        try check(
            "av_buffersrc_add_frame",
            av_buffersrc_add_frame_flags(source, frame.pointer, Int32(AV_BUFFERSRC_FLAG_KEEP_REF)))
    }
    package func finish() throws(Failure) {
        try check("av_buffersrc_add_frame", av_buffersrc_add_frame_flags(source, nil, 0))
    }
    /// - Returns: false when it needs more, or is at its end.
    package func pull(into frame: borrowing Frame) throws(Failure) -> Bool {
        let code = av_buffersink_get_frame(sink, frame.pointer)
        if code == rushes_error_again || code == rushes_error_end { return false }
        try check("av_buffersink_get_frame", code)
        return true
    }
}
