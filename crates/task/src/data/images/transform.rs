//! Brings a picture to another size, or to grey.

/// A picture or a row of features, channel by channel, each row by row.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Picture {
    /// Channels, height and width.
    pub shape: [usize; 3],
    /// Values; of pixels from 0 to 255.
    pub values: Vec<f32>,
}

impl Picture {
    /// From values in which the channels of a pixel are one after the other.
    pub(crate) fn from_pixels([channels, height, width]: [usize; 3], values: &[u8]) -> Self {
        let area = height * width;
        let value = |at: usize| f32::from(values[(at % area) * channels + at / area]);
        Self {
            shape: [channels, height, width],
            values: (0..channels * area).map(value).collect(),
        }
    }

    /// In one channel: the luminance `0.299 R + 0.587 G + 0.114 B` (ITU-R BT.601), as in JPEG and in
    /// Pillow's mode L. A picture that has one channel already is returned
    /// unchanged.
    #[must_use]
    pub(crate) fn grey(self) -> Self {
        let [channels, height, width] = self.shape;
        if channels != 3 {
            return self;
        }
        let area = height * width;
        let (red, rest) = self.values.split_at(area);
        let (green, blue) = rest.split_at(area);
        let pixels = red.iter().zip(green).zip(blue);
        let values = pixels.map(|((r, g), b)| 0.299 * r + 0.587 * g + 0.114 * b);
        Self {
            shape: [1, height, width],
            values: values.collect(),
        }
    }

    /// In three channels, which are equal if it was grey.
    #[must_use]
    pub(crate) fn colour(self) -> Self {
        match self.shape {
            [1, height, width] => Self {
                shape: [3, height, width],
                values: self.values.repeat(3),
            },
            _ => self,
        }
    }

    /// With this height and width: linear interpolation where it grows, and where it shrinks the mean
    /// under a triangle as wide as two new pixels, as Pillow's `BILINEAR`. Values are not rounded.
    #[must_use]
    pub(crate) fn resized(self, height: usize, width: usize) -> Self {
        let [channels, from_height, from_width] = self.shape;
        if (from_height, from_width) == (height, width) {
            return self;
        }
        let columns = kernels(from_width, width);
        let rows = kernels(from_height, height);
        let mut values = Vec::with_capacity(channels * height * width);
        for channel in self.values.chunks_exact(from_height * from_width) {
            let narrow: Vec<f32> = channel
                .chunks_exact(from_width)
                .flat_map(|row| columns.iter().map(|kernel| kernel.apply(|at| row[at])))
                .collect();
            for kernel in &rows {
                for column in 0..width {
                    values.push(kernel.apply(|at| narrow[at * width + column]));
                }
            }
        }
        Self {
            shape: [channels, height, width],
            values,
        }
    }
}

/// Weights of the old pixels in a new one along one axis.
struct ResizeKernel {
    first: usize,
    weights: Vec<f32>,
}

impl ResizeKernel {
    fn apply(&self, value: impl Fn(usize) -> f32) -> f32 {
        let taken = self.weights.iter().enumerate();
        taken
            .map(|(at, weight)| weight * value(self.first + at))
            .sum()
    }
}

/// The kernels of all new pixels along an axis.
fn kernels(from: usize, to: usize) -> Vec<ResizeKernel> {
    let scale = from as f64 / to as f64;
    let reach = scale.max(1.0);
    (0..to)
        .map(|at| {
            let centre = (at as f64 + 0.5) * scale;
            let first = (centre - reach + 0.5).floor().max(0.0) as usize;
            let end = ((centre + reach + 0.5).floor() as usize).min(from);
            let weight = |old: usize| {
                let away = (old as f64 + 0.5 - centre).abs() / reach;
                (1.0 - away).max(0.0)
            };
            let weights: Vec<f64> = (first..end).map(weight).collect();
            let sum: f64 = weights.iter().sum();
            ResizeKernel {
                first,
                weights: weights.iter().map(|weight| (weight / sum) as f32).collect(),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grey(height: usize, width: usize, values: &[f32]) -> Picture {
        Picture {
            shape: [1, height, width],
            values: values.to_vec(),
        }
    }

    fn close(found: &Picture, expected: &[f32]) {
        assert_eq!(found.values.len(), expected.len());
        let far = found
            .values
            .iter()
            .zip(expected)
            .any(|(a, b)| (a - b).abs() > 1e-3);
        assert!(!far, "{:?} is not {expected:?}", found.values);
    }

    #[test]
    fn channels_of_pixels_become_planes() {
        let picture = Picture::from_pixels([3, 1, 2], &[1, 2, 3, 4, 5, 6]);
        assert_eq!(picture.shape, [3, 1, 2]);
        assert_eq!(picture.values, [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
    }

    #[test]
    fn grey_is_the_luminance() {
        let picture = Picture::from_pixels([3, 1, 2], &[255, 0, 0, 10, 10, 10]).grey();
        assert_eq!(picture.shape, [1, 1, 2]);
        close(&picture, &[76.245, 10.0]);
        assert_eq!(picture.clone().grey(), picture);
        let colour = picture.colour();
        assert_eq!(
            (colour.shape, colour.values[4]),
            ([3, 1, 2], colour.values[0])
        );
    }

    #[test]
    fn sizes_change_as_in_pillow() {
        // Image.resize((2, 1), BILINEAR) of a row 0, 100, 200, 40 in mode F: support 2 around 1 and 3.
        close(
            &grey(1, 4, &[0.0, 100.0, 200.0, 40.0]).resized(1, 2),
            &[71.428_57, 117.142_86],
        );
        // To twice the width: a quarter and three quarters of neighbours.
        close(
            &grey(1, 2, &[0.0, 100.0]).resized(1, 4),
            &[0.0, 25.0, 75.0, 100.0],
        );
        // Along both axes, and each channel for itself.
        let picture = Picture {
            shape: [2, 2, 1],
            values: vec![0.0, 100.0, 8.0, 8.0],
        };
        close(
            &picture.resized(4, 1),
            &[0.0, 25.0, 75.0, 100.0, 8.0, 8.0, 8.0, 8.0],
        );
    }

    #[test]
    fn a_flat_picture_stays_flat_in_every_size() {
        for (from, to) in [
            (28, 16),
            (16, 28),
            (32, 28),
            (84, 7),
            (5, 5),
            (1, 9),
            (9, 1),
        ] {
            let picture = grey(from, from, &vec![7.0; from * from]).resized(to, to);
            close(&picture, &vec![7.0; to * to]);
        }
    }
}
