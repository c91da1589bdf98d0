//! Errors of building a network from layers.

/// Reason for which layers do not make a network.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(crate) enum NetworkError {
    /// The rows do not have as many features as the image has values.
    #[error(
        "the rows have {features} features, but an image of {channels}×{height}×{width} has {} values: set `image` to what the columns hold, as [channels, height, width]",
        channels.saturating_mul(*height).saturating_mul(*width)
    )]
    Image {
        /// Features of a row.
        features: usize,
        /// Channels of the image.
        channels: usize,
        /// Height of the image.
        height: usize,
        /// Width of the image.
        width: usize,
    },
    /// A layer needs an image and has none.
    #[error(
        "a {layer} layer needs an image: set `image = [channels, height, width]` to what the columns hold"
    )]
    NoImage {
        /// The kind of layer.
        layer: &'static str,
    },
    /// A number is out of range.
    #[error("{what} must be {range}, not {value}")]
    Range {
        /// Of which number.
        what: &'static str,
        /// Possible values.
        range: &'static str,
        /// Given value.
        value: f64,
    },
    /// A window is larger than the image.
    #[error(
        "a {layer} layer has windows of {window}×{window}, but the image is {height}×{width} there: use larger images or fewer poolings"
    )]
    Window {
        /// The kind of layer.
        layer: &'static str,
        /// Side of the window.
        window: usize,
        /// Height of the image, with padding.
        height: usize,
        /// Width of the image, with padding.
        width: usize,
    },
    /// Channels cannot be divided into groups.
    #[error(
        "{channels} channels cannot be divided into {groups} groups of one size: choose another number in `norm`"
    )]
    Groups {
        /// Channels of a norm layer.
        channels: usize,
        /// Groups asked for.
        groups: usize,
    },
    /// An input does not fit to the output of the layers that it goes around.
    #[error("a {layer} layer goes from an image of {}×{} to one of {}×{}: choose images whose sides can be halved as often as the network does", from[1], from[2], to[1], to[2])]
    Around {
        /// The kind of layer.
        layer: &'static str,
        /// Channels, height, width before.
        from: [usize; 3],
        /// Channels, height, width behind.
        to: [usize; 3],
    },
    /// The output has another size than the mask to predict.
    #[error("the network ends in an image of {height}×{width}, but the mask has {pixels} pixels")]
    Mask {
        /// Height at the end.
        height: usize,
        /// Width at the end.
        width: usize,
        /// Pixels of the mask.
        pixels: usize,
    },
    /// The network is too large to be written down.
    #[error("a layer would have {0} weights or more: choose smaller layers")]
    TooLarge(u64),
}
