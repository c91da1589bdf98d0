//! Decodes a PNG or JPEG picture.

use std::io::Cursor;

use png::{ColorType, Limits, Transformations};
use zune_jpeg::JpegDecoder;
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

/// Longest side of a picture, in pixels.
const SIDE: usize = 1 << 13;

/// A decoded picture: bytes row by row, the channels of a pixel one after the other.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Decoded {
    /// 1 for grey, 3 for red, green and blue.
    pub channels: usize,
    /// Pixels.
    pub height: usize,
    /// Pixels.
    pub width: usize,
    /// Values from 0 to 255.
    pub values: Vec<u8>,
}

/// Decodes a file, by how it begins. Transparency is left out, and 16 bits become 8.
///
/// # Errors
/// Expected and found content, as text.
pub(crate) fn decode(bytes: &[u8]) -> Result<Decoded, String> {
    if bytes.starts_with(b"\x89PNG\r\n\x1a\n") {
        png(bytes)
    } else if bytes.starts_with(&[0xff, 0xd8, 0xff]) {
        jpeg(bytes)
    } else {
        Err("expected a PNG or JPEG picture, found something else".into())
    }
}

fn sides(width: usize, height: usize) -> Result<(), String> {
    if (1..=SIDE).contains(&width) && (1..=SIDE).contains(&height) {
        Ok(())
    } else {
        Err(format!(
            "expected a picture of at most {SIDE}×{SIDE} pixels, found {width}×{height}"
        ))
    }
}

fn png(bytes: &[u8]) -> Result<Decoded, String> {
    let damaged = |error: png::DecodingError| format!("it is a damaged PNG picture: {error}");
    let limits = Limits {
        bytes: 8 * SIDE * SIDE,
    };
    let mut decoder = png::Decoder::new_with_limits(Cursor::new(bytes), limits);
    decoder.set_transformations(Transformations::normalize_to_color8());
    let mut reader = decoder.read_info().map_err(damaged)?;
    let info = reader.info();
    let (width, height) = (info.width as usize, info.height as usize);
    sides(width, height)?;
    let size = reader.output_buffer_size().unwrap_or(0);
    let mut values = vec![0; size];
    let frame = reader.next_frame(&mut values).map_err(damaged)?;
    values.truncate(frame.buffer_size());
    let (stored, channels) = match frame.color_type {
        ColorType::Grayscale => (1, 1),
        ColorType::GrayscaleAlpha => (2, 1),
        ColorType::Rgb => (3, 3),
        ColorType::Rgba => (4, 3),
        ColorType::Indexed => return Err("expected its palette, found none".into()),
    };
    if stored != channels {
        let pixels = values.chunks_exact(stored);
        values = pixels
            .flat_map(|pixel| &pixel[..channels])
            .copied()
            .collect();
    }
    Ok(Decoded {
        channels,
        height,
        width,
        values,
    })
}

fn jpeg(bytes: &[u8]) -> Result<Decoded, String> {
    let damaged = |error: &dyn std::fmt::Debug| format!("it is a damaged JPEG picture: {error:?}");
    let options = DecoderOptions::default()
        .set_max_width(SIDE)
        .set_max_height(SIDE)
        .set_strict_mode(true);
    let mut decoder = JpegDecoder::new_with_options(Cursor::new(bytes), options);
    decoder.decode_headers().map_err(|error| damaged(&error))?;
    let grey = decoder.input_colorspace() == Some(ColorSpace::Luma);
    let (space, channels) = if grey {
        (ColorSpace::Luma, 1)
    } else {
        (ColorSpace::RGB, 3)
    };
    decoder.set_options(options.jpeg_set_out_colorspace(space));
    let values = decoder.decode().map_err(|error| damaged(&error))?;
    let info = decoder
        .info()
        .ok_or("it is a JPEG picture without a size")?;
    let (width, height) = (usize::from(info.width), usize::from(info.height));
    sides(width, height)?;
    if values.len() == channels * width * height {
        Ok(Decoded {
            channels,
            height,
            width,
            values,
        })
    } else {
        Err("it is a JPEG picture of another size than it says".into())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
pub(crate) mod tests {
    use super::*;

    /// A PNG file of these pixels.
    pub(crate) fn png_file(kind: ColorType, width: u32, height: u32, values: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut encoder = png::Encoder::new(&mut bytes, width, height);
        encoder.set_color(kind);
        encoder.set_depth(png::BitDepth::Eight);
        encoder
            .write_header()
            .unwrap()
            .write_image_data(values)
            .unwrap();
        bytes
    }

    /// A grey JPEG of 8×8 pixels, all of the value that `dc` says: 0 is 128, and every step 8 more.
    /// Written by hand: a quantisation table of ones but for 64 in the first place, and a code for
    /// one category of the first coefficient and one for the end of the block.
    pub(crate) fn flat_jpeg(bright: bool) -> Vec<u8> {
        let mut bytes = vec![0xff, 0xd8];
        let mut segment = |marker: u8, content: &[u8]| {
            bytes.extend([0xff, marker]);
            bytes.extend((content.len() as u16 + 2).to_be_bytes());
            bytes.extend(content);
        };
        let mut table = vec![0];
        table.extend([64; 64]);
        segment(0xdb, &table);
        segment(0xc0, &[8, 0, 8, 0, 8, 1, 1, 0x11, 0]);
        // One code of one bit: category 3 for the first coefficient; end of block for the others.
        let mut counts = [0u8; 16];
        counts[0] = 1;
        segment(0xc4, &[&[0x00], counts.as_slice(), &[3]].concat());
        segment(0xc4, &[&[0x10], counts.as_slice(), &[0]].concat());
        segment(0xda, &[1, 1, 0x00, 0, 63, 0]);
        // 0 (category), 111 = 7 or 000 = −7 (value), 0 (end of block), then ones.
        bytes.push(if bright { 0b0111_0111 } else { 0b0000_0111 });
        bytes.extend([0xff, 0xd9]);
        bytes
    }

    #[test]
    fn png_of_every_kind_is_decoded() {
        let grey = decode(&png_file(ColorType::Grayscale, 2, 1, &[7, 250])).unwrap();
        assert_eq!(
            (grey.channels, grey.height, grey.width, grey.values),
            (1, 1, 2, vec![7, 250])
        );
        let colour = decode(&png_file(ColorType::Rgb, 1, 2, &[1, 2, 3, 4, 5, 6])).unwrap();
        assert_eq!(
            (colour.channels, colour.height, colour.values),
            (3, 2, vec![1, 2, 3, 4, 5, 6])
        );
        let alpha = decode(&png_file(ColorType::Rgba, 1, 1, &[9, 8, 7, 100])).unwrap();
        assert_eq!((alpha.channels, alpha.values), (3, vec![9, 8, 7]));
        let alpha = decode(&png_file(ColorType::GrayscaleAlpha, 1, 1, &[9, 100])).unwrap();
        assert_eq!((alpha.channels, alpha.values), (1, vec![9]));
    }

    #[test]
    fn jpeg_is_decoded() {
        // 7 × 64 / 8 = 56 above or below the middle.
        for (bright, value) in [(true, 184), (false, 72)] {
            let flat = decode(&flat_jpeg(bright)).unwrap();
            assert_eq!((flat.channels, flat.height, flat.width), (1, 8, 8));
            assert!(
                flat.values.iter().all(|&pixel| pixel == value),
                "{:?}",
                flat.values
            );
        }
    }

    #[test]
    fn damaged_and_other_files_are_refused() {
        assert_eq!(
            decode(b"GIF89a").unwrap_err(),
            "expected a PNG or JPEG picture, found something else"
        );
        let good = png_file(ColorType::Grayscale, 4, 4, &[7; 16]);
        assert!(
            decode(&good[..good.len() - 20])
                .unwrap_err()
                .starts_with("it is a damaged PNG picture")
        );
        let good = flat_jpeg(true);
        assert!(
            decode(&good[..30])
                .unwrap_err()
                .starts_with("it is a damaged JPEG picture")
        );
        let mut wide = png_file(ColorType::Grayscale, 2, 1, &[0, 0]);
        wide[16..20].copy_from_slice(&70_000u32.to_be_bytes());
        assert!(decode(&wide).is_err(), "its checksum is wrong, too");
        assert_eq!(
            sides(70_000, 1).unwrap_err(),
            "expected a picture of at most 8192×8192 pixels, found 70000×1"
        );
    }
}
