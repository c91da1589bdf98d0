//! Values below the windows of a convolution, as columns of a matrix, tile by tile.

use std::ops::Range;

/// Outputs of a tile: enough columns for a fast matrix product, few enough that they stay in the cache.
const COLUMNS: usize = 512;

/// The sizes of a convolution of images with square windows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ConvolutionSizes {
    pub(super) images: usize,
    pub(super) channels: usize,
    pub(super) height: usize,
    pub(super) width: usize,
    /// Channels of the outputs.
    pub(super) outputs: usize,
    /// Side of a window.
    pub(super) kernel: usize,
    pub(super) stride: usize,
    pub(super) padding: usize,
}

/// Outputs that are computed at once: some lines of one image, or several whole images.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Tile {
    images: Range<usize>,
    lines: Range<usize>,
}

impl ConvolutionSizes {
    /// Height of an output.
    pub(super) fn high(&self) -> usize {
        self.side(self.height)
    }

    /// Width of an output.
    pub(super) fn wide(&self) -> usize {
        self.side(self.width)
    }

    fn side(&self, of: usize) -> usize {
        (of + 2 * self.padding - self.kernel) / self.stride + 1
    }

    /// Values that a window sees.
    pub(super) fn window(&self) -> usize {
        self.channels * self.kernel * self.kernel
    }

    /// All outputs, in tiles.
    pub(super) fn tiles(&self) -> Vec<Tile> {
        let (high, wide) = (self.high(), self.wide());
        let (images, lines) = match COLUMNS / (high * wide) {
            0 => (1, (COLUMNS / wide).clamp(1, high)),
            images => (images, high),
        };
        let mut tiles = Vec::new();
        for first in (0..self.images).step_by(images) {
            for line in (0..high).step_by(lines) {
                tiles.push(Tile {
                    images: first..(first + images).min(self.images),
                    lines: line..(line + lines).min(high),
                });
            }
        }
        tiles
    }

    /// Columns of a tile.
    pub(super) fn columns(&self, tile: &Tile) -> usize {
        tile.images.len() * tile.lines.len() * self.wide()
    }

    /// The outputs of a line whose windows hold a value of the image at `shift` from their left, and the
    /// position in the line of the image that the first of them sees.
    fn inside(&self, shift: usize) -> (Range<usize>, usize) {
        let first = self.padding.saturating_sub(shift).div_ceil(self.stride);
        let end = (self.width + self.padding).saturating_sub(shift);
        let end = end.div_ceil(self.stride).min(self.wide());
        let first = first.min(end);
        let left = (first * self.stride + shift).saturating_sub(self.padding);
        (first..end, left)
    }

    /// Calls `run` for every run of outputs in a line of a tile: where it begins in the columns (window ×
    /// columns, row-major), how many outputs it has, and where in `images × channels × height × width`
    /// the first of them looks; the others follow at the distance of a stride.
    fn runs(&self, tile: &Tile, mut run: impl FnMut(usize, usize, usize)) {
        let (wide, columns) = (self.wide(), self.columns(tile));
        for channel in 0..self.channels {
            for down in 0..self.kernel {
                for right in 0..self.kernel {
                    let row = (channel * self.kernel + down) * self.kernel + right;
                    let (outputs, left) = self.inside(right);
                    let mut at = row * columns;
                    for image in tile.images.clone() {
                        let plane = (image * self.channels + channel) * self.height;
                        for line in tile.lines.clone() {
                            let seen = line * self.stride + down;
                            let within = seen.checked_sub(self.padding);
                            let within = within.filter(|&seen| seen < self.height);
                            if let Some(seen) = within.filter(|_| !outputs.is_empty()) {
                                let from = (plane + seen) * self.width + left;
                                run(at + outputs.start, outputs.len(), from);
                            }
                            at += wide;
                        }
                    }
                }
            }
        }
    }

    /// Writes what the windows of a tile see of `input` into `seen`: window × columns, row-major; 0
    /// outside of the images.
    pub(super) fn see(&self, tile: &Tile, input: &[f32], seen: &mut [f32]) {
        seen.fill(0.0);
        self.runs(tile, |at, count, from| {
            let into = &mut seen[at..at + count];
            if self.stride == 1 {
                into.copy_from_slice(&input[from..from + count]);
            } else {
                let values = input[from..].iter().step_by(self.stride);
                into.iter_mut()
                    .zip(values)
                    .for_each(|(to, from)| *to = *from);
            }
        });
    }

    /// Adds what is for the windows of a tile to the values that they see: the transpose of
    /// [`see`](Self::see).
    pub(super) fn add(&self, tile: &Tile, seen: &[f32], into: &mut [f32]) {
        self.runs(tile, |at, count, from| {
            let values = &seen[at..at + count];
            if self.stride == 1 {
                let into = &mut into[from..from + count];
                into.iter_mut()
                    .zip(values)
                    .for_each(|(to, from)| *to += *from);
            } else {
                let into = into[from..].iter_mut().step_by(self.stride);
                into.zip(values).for_each(|(to, from)| *to += *from);
            }
        });
    }

    /// The values of a tile in `images × outputs × high × wide`: for every output and image the number
    /// of the output, where its lines are there, and where in `outputs × columns`.
    fn blocks(&self, tile: &Tile, mut block: impl FnMut(usize, Range<usize>, Range<usize>)) {
        let (high, wide) = (self.high(), self.wide());
        let (count, mut at) = (tile.lines.len() * wide, 0);
        for output in 0..self.outputs {
            for image in tile.images.clone() {
                let from = ((image * self.outputs + output) * high + tile.lines.start) * wide;
                block(output, from..from + count, at..at + count);
                at += count;
            }
        }
    }

    /// The part of `images × outputs × high × wide` that belongs to a tile: outputs × columns.
    pub(super) fn part(&self, tile: &Tile, whole: &[f32]) -> Vec<f32> {
        let mut part = Vec::with_capacity(self.outputs * self.columns(tile));
        self.blocks(tile, |_, there, _| part.extend_from_slice(&whole[there]));
        part
    }

    /// Puts a part where [`part`](Self::part) takes it from, plus the bias of every output.
    pub(super) fn put(&self, tile: &Tile, part: &[f32], bias: &[f32], whole: &mut [f32]) {
        self.blocks(tile, |output, there, here| {
            let each = whole[there].iter_mut().zip(&part[here]);
            each.for_each(|(to, from)| *to = from + bias[output]);
        });
    }
}
