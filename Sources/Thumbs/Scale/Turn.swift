import CPlanes
import Vocabulary

extension Plane {
    /// The plane as it stands upright.
    func turned(_ orientation: Orientation, budget: MemoryBudget) throws(Failure) -> Plane {
        // Where the result's first row starts in the source, and which way its rows and columns go there.
        let start = orientation.source(x: 0, y: 0, stored: size)
        let isLeftwards = start.x > 0
        let isUpwards = start.y > 0
        // What the last sample does not cover, the first does not when it comes from the other end.
        let origin = (
            x: isLeftwards ? Double(size.width) - extent.width : 0,
            y: isUpwards ? Double(size.height) - extent.height : 0
        )
        let result = try Plane(
            orientation.size(ofStored: size),
            extent: orientation.swapsSides ? (extent.height, extent.width) : extent,
            origin: orientation.swapsSides ? (origin.y, origin.x) : origin, budget: budget)
        if orientation.swapsSides {
            // The rows of the result are the source's columns, from the left or from the right.
            rushes_planes_transpose(
                row(start.y), isUpwards ? -rowBytes : rowBytes,
                isLeftwards ? result.row(result.size.height - 1) : result.samples,
                isLeftwards ? -result.rowBytes : result.rowBytes, Int32(size.width), Int32(size.height))
            return result
        }
        for y in 0..<size.height {
            let from = row(isUpwards ? size.height - 1 - y : y)
            let to = result.row(y)
            if isLeftwards {
                for x in 0..<size.width { to[x] = from[size.width - 1 - x] }
            } else {
                to.update(from: from, count: size.width)
            }
        }
        return result
    }
}
