package import Vocabulary

/// An animation's pictures as they are shown, in order, from whatever library decodes them.
package protocol AnimationSource: AnyObject {
    /// - Returns: nil at the end.
    func next() throws(Failure) -> AnimationPicture?
}

/// A whole picture and how long it stands.
package struct AnimationPicture {
    package var image: RGBAImage
    /// Seconds.
    package var duration: Double
    package init(image: RGBAImage, duration: Double) {
        self.image = image
        self.duration = duration
    }
}

/// What an animation's header says.
package struct AnimationHeader {
    package var width: Int
    package var height: Int
    package var frames: Int
    /// Seconds of one turn.
    package var duration: Double
    package init(width: Int, height: Int, frames: Int, duration: Double) {
        self.width = width
        self.height = height
        self.frames = frames
        self.duration = duration
    }
}
